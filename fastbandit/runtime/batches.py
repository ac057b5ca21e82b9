"""Many decisions at once: contexts and seeds in, rows and scores out, on all cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import draw_eligible_row
from fastbandit.arms.partitions import Floats, Positions
from fastbandit.cores import in_parts
from fastbandit.errors import NotFiniteError
from fastbandit.runtime.ahead import decide
from fastbandit.runtime.frozen_catalogue import EligibleRows, FrozenCatalogue
from fastbandit.runtime.parts import FrozenModel
from fastbandit.runtime.popularity import Popularity
from fastbandit.runtime.propensity import are_uniform
from fastbandit.search.slates import pick_apart

Seeds = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Answers:
    """Rows (B, k) with their scores, best first, then -1; and for each context what it cost.

    Costs are evaluations, look-ups, and 1 where a number of the context was clipped.
    """

    rows: Positions
    scores: Floats
    costs: NDArray[np.int64]

    @staticmethod
    def of(contexts: int, k: int) -> Answers:
        """Return room for the answers to so many contexts."""
        return Answers(
            np.empty((contexts, k), dtype=np.int32),
            np.empty((contexts, k), dtype=np.float32),
            np.empty((contexts, 3), dtype=np.int64),
        )

    def slate(self, catalogue: FrozenCatalogue, *, k: int, diversity: float) -> Answers:
        """Pick k arms that differ out of more."""
        points = catalogue.points_of(self.rows)
        picked = pick_apart(self.scores, points, k=k, diversity=diversity)
        rows = np.take_along_axis(self.rows, picked, axis=1)
        scores = np.take_along_axis(self.scores, picked, axis=1)
        return Answers(rows, scores, self.costs)


class Terms(NamedTuple):
    """So many arms are chosen, of those eligible; any of these with probability epsilon.

    Before the first update they are chosen by popularity, where that is known.
    """

    k: int
    eligible: Any = None
    epsilon: float = 0.0
    threads: int | None = None
    popularity: Popularity | None = None


def decide_all(
    model: FrozenModel, catalogue: FrozenCatalogue, contexts: Floats, seeds: Seeds, terms: Terms
) -> Answers:
    """Choose arms for each context."""
    answers = Answers.of(len(seeds), terms.k)
    some = catalogue.eligible_for_each(terms.eligible, contexts=len(seeds))
    rows_of = cache(lambda number: catalogue.rows_of(some[number]))

    def work(eligible: EligibleRows, first: int, last: int) -> None:
        part = slice(first, last)
        answer = (answers.rows[part], answers.scores[part], answers.costs[part])
        request = (contexts[part], seeds[part])
        decide(model, catalogue, eligible, request, answer)

    if len(some) > 1:
        for number, one in enumerate(some):
            work(one, number, number + 1)
    elif len(seeds):
        in_parts(len(seeds), partial(work, some[0]), threads=terms.threads)
    for number in are_uniform(seeds, terms.epsilon).tolist():
        rows = rows_of(number if len(some) > 1 else 0)
        work(catalogue.only_drawn(rows, int(seeds[number]), count=terms.k), number, number + 1)
    wrong = np.flatnonzero(answers.costs[:, 0] < 0)
    if len(wrong):
        raise NotFiniteError(
            f"The contexts need finite numbers of ordinary size: got a row, {wrong[0]}, that is "
            f"infinite once embedded ({len(wrong)} such rows). Scale or drop those rows."
        )
    if len(seeds) and answers.rows[:, 0].min() < 0:
        raise no_score()
    return answers


def no_score() -> NotFiniteError:
    """Return why no arm was chosen: where no score is a number, none is the best."""
    return NotFiniteError(
        "An arm needs a score that is a number: got none for a context. Scale the contexts, or go "
        "back to an older version."
    )


def draw_all(catalogue: FrozenCatalogue, seeds: Seeds, terms: Terms) -> Answers:
    """Draw arms for each seed, as a bandit does that learned nothing: any, or popular ones."""
    some = catalogue.eligible_for_each(terms.eligible, contexts=len(seeds))
    rows_of = cache(lambda number: catalogue.rows_of(some[number]))
    rows, total = np.full((len(seeds), terms.k), -1, dtype=np.int32), catalogue.rows.total
    popularity = terms.popularity
    grouped = cache(lambda known, number: known.grouped(rows_of(number), total=total))
    is_any = {*are_uniform(seeds, terms.epsilon).tolist()}
    for number, seed in enumerate(seeds.tolist()):
        which = number if len(some) > 1 else 0
        if popularity is None or number in is_any:
            drawn = draw_eligible_row(seed, rows_of(which), total=total, count=terms.k)
        else:
            drawn = popularity.draw(seed, grouped(popularity, which), count=terms.k)
        rows[number, : len(drawn)] = drawn
    scores = np.where(rows >= 0, 0.0, -np.inf).astype(np.float32)
    return Answers(rows, scores, np.zeros((len(seeds), 3), dtype=np.int64))
