"""FrozenBandit: decides in tens of microseconds, without torch, from many threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import list_ids
from fastbandit.arms.partitions import Floats
from fastbandit.arms.rows import Upserted
from fastbandit.arms.stale_ids import check_known, drop_stale
from fastbandit.errors import FastbanditError, NotFiniteError, SettingError
from fastbandit.features.kinds import is_size
from fastbandit.runtime.ahead import decide
from fastbandit.runtime.batches import Answers, Terms, decide_all, draw_all, no_score
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.explanation import Asked, Explanation, check_learned
from fastbandit.runtime.few_draws import best_of_few
from fastbandit.runtime.folder import Stored, read_folder, write_folder
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.frozen_explanation import explain_frozen
from fastbandit.runtime.live_catalogue import LiveCatalogue
from fastbandit.runtime.offered_arms import KnownOffers, Offer, offered_catalogue
from fastbandit.runtime.parts import FrozenModel, check_delta
from fastbandit.runtime.popularity import Popularity
from fastbandit.runtime.propensity import (
    Propensities,
    check_epsilon,
    is_certain,
    is_uniform,
    propensities_of,
    propensity_seeds,
)
from fastbandit.runtime.request_buffers import OwnBuffers
from fastbandit.runtime.seeds import SeedCounter, read_seed
from fastbandit.runtime.shown import html_of_frozen, text_of_frozen
from fastbandit.search.slates import candidates_for, check_diversity
from fastbandit.types import Chosen, Decision, Inputs


class FrozenBandit:
    """A bandit that decides and no longer learns: what `Bandit.freeze` returns.

    Safe to call from many threads: they share arrays that never change. Arms can be added
    and discarded at any time; the next decision knows.
    """

    def __init__(
        self, model: FrozenModel, catalogue: FrozenCatalogue, codec: Codec, *, decisions: int = 0
    ) -> None:
        self._model, self._codec, self._arms = model.with_lists(), codec, LiveCatalogue(catalogue)
        self._greedy = model.greedy().with_lists()
        self._as_frozen = (self._model, self._greedy)
        self._popularity: Popularity | None = None  # what version 0 knows
        self._seeds = SeedCounter(codec.seed, decisions)
        is_compiled, shape = codec.context.is_compiled, model.to_embedding.shape
        columns = model.encoder.shape[1] - 1 if is_compiled else shape[1]
        self._buffers = OwnBuffers(len(model.own_shared) or columns)

    # -- deciding

    def select_one(
        self,
        context: Any,
        *,
        seed: int | None = None,
        explore: bool = True,
        eligible: Any = None,
        epsilon: float = 0.0,
        strict: bool = False,
    ) -> Chosen:
        """Choose one arm for one context: the quickest way to ask.

        `eligible` is a list of ids, a mask of rows, or a predicate on columns such as
        {"price": {"<=": 10}}. With probability `epsilon` the arm is any eligible one, and always
        before the first update or delta. The seed fixes all of it. Ids that no arm has are dropped
        from `eligible`, unless `strict`.
        """
        self._buffers.mine.write(self._codec, context)
        if strict:
            check_known(eligible, self._arms.now.ids)
        if seed is not None:
            return self._select_by(read_seed(seed), context, explore, eligible, epsilon)
        number = self._seeds.take(1)
        try:
            return self._select_by(self._seeds.seed_of(number), context, explore, eligible, epsilon)
        except FastbanditError:
            self._seeds.give_back(number, 1)
            raise

    def _select_by(
        self, seed: int, context: Any, explore: bool, eligible: Any, epsilon: float
    ) -> Chosen:
        """Choose for the context that lies in this thread's buffers."""
        buffers, codec = self._buffers.mine, self._codec
        if codec.version == 0:
            seeds = np.array([seed], np.uint64)
            terms: dict[str, Any] = {"explore": explore, "epsilon": epsilon, "seeds": seeds}
            one = self.select(codec.read_one(context), eligible=eligible, **terms)
            dropped = int(one.dropped[0])
            return Chosen(one.arms[0], int(one.rows[0, 0]), 0.0, seed, 0, 0, 0, dropped=dropped)
        buffers.seeds[0] = seed
        model, answer = self._model if explore else self._greedy, buffers.answer
        while True:
            catalogue, some, dropped = self._arms.now, self._arms.now.all_eligible, 0
            if eligible is not None:
                known, counts = drop_stale(eligible, catalogue.rows, contexts=1)
                some, dropped = catalogue.eligible(known), int(counts[0])
            if epsilon and is_uniform(seed, check_epsilon(epsilon)):
                some = catalogue.only_drawn(catalogue.rows_of(some), seed, count=1)
            decide(model, catalogue, some, buffers.request, answer, buffers.workspace)
            ((evaluations, lookups, clipped),) = answer[2].tolist()
            if evaluations < 0:
                raise NotFiniteError(
                    f"A context needs finite numbers: got {buffers.contexts[0].tolist()}. Fill or "
                    f"drop what is missing."
                )
            row = answer[0].item()
            if row < 0:
                raise no_score()
            if catalogue is self._arms.now or self._arms.now.rows.are_live(row):
                break  # else the arm was discarded meanwhile
        score = codec.in_reward(answer[1].item())
        cost = (evaluations, lookups, bool(clipped) or buffers.is_clipped, dropped)
        return Chosen(catalogue.ids.id(row), row, score, seed, codec.version, *cost)

    def select(
        self,
        contexts: Any,
        *,
        k: int = 1,
        diversity: float = 0.0,
        eligible: Any = None,
        explore: bool = True,
        epsilon: float = 0.0,
        seeds: NDArray[np.uint64] | None = None,
        threads: int | None = None,
    ) -> Decision:
        """Choose `k` arms for each context, as `Bandit.select` does, on all cores.

        `eligible` may be a predicate on columns, or a list of them, one for each context; ids that
        no arm has are dropped from it.
        With probability `epsilon` the arms of a context are any `k` eligible ones, and always
        before the first update or delta. A slate with `diversity` needs epsilon=0.
        """
        if check_diversity(diversity) and epsilon:
            raise SettingError(
                f"A slate with diversity={diversity} needs epsilon=0, as how likely its arms are "
                f"is not known: got epsilon={epsilon}. Leave out one of the two."
            )
        if not is_size(k):
            raise SettingError(
                f"The number of arms k needs to be at least 1: got {k!r}. Ask for one or more."
            )
        inputs = self._codec.read(contexts)
        first, numbers = self._seeds.seeds_for(len(inputs), seeds)
        any_arm, popular = self._codec.version == 0, self._popularity
        candidates = int(k) if any_arm else candidates_for(int(k), diversity)
        popularity = popular if popular is None or explore else popular.greedy()
        epsilon = check_epsilon(epsilon)
        model = self._model if explore else self._greedy  # one for all, whatever delta comes
        while True:
            catalogue = self._arms.now
            try:
                known, dropped = drop_stale(eligible, catalogue.rows, contexts=len(inputs))
                terms = Terms(candidates, known, epsilon, threads, popularity)
                answers = self._answer(model, catalogue, inputs, numbers, terms)
            except FastbanditError:
                self._seeds.give_back(first, len(numbers))
                raise
            if catalogue is self._arms.now or self._arms.now.rows.are_live(answers.rows):
                break  # else an arm was discarded meanwhile
        if candidates > k:
            answers = answers.slate(catalogue, k=int(k), diversity=diversity)
        ids, rows, scores, costs = catalogue.ids, answers.rows, answers.scores, answers.costs
        return Decision(
            arms=ids.ids(rows[:, 0]) if k == 1 else [ids.ids(row[row >= 0]) for row in rows],
            rows=rows.astype(np.int64),
            scores=scores if any_arm else self._codec.in_rewards(scores),
            seeds=numbers,
            version=self._codec.version,
            uniform=any_arm and popularity is None,
            evaluations=costs[:, 0].copy(),
            lookups=costs[:, 1].copy(),
            clipped=costs[:, 2] > 0,
            dropped=dropped,
        )

    def _answer(
        self,
        model: FrozenModel,
        catalogue: FrozenCatalogue,
        inputs: Inputs,
        seeds: NDArray[np.uint64],
        terms: Terms,
    ) -> Answers:
        """Choose arms for each context."""
        encoding = self._codec.context
        if self._codec.version == 0:
            return draw_all(catalogue, seeds, terms)
        contexts = inputs.dense if encoding.is_compiled else encoding.embed(inputs)
        assert contexts is not None
        answers = decide_all(model, catalogue, contexts, seeds, terms)
        if not encoding.is_compiled:
            answers.costs[:, 2] = encoding.is_clipped(inputs)
        return answers

    def propensities(
        self,
        context: Any,
        *,
        draws: int = 1000,
        epsilon: float = 0.01,
        eligible: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Propensities:
        """Estimate how likely each arm is for one context, by so many draws, on all cores.

        These are the probabilities of decisions that are made with the same `epsilon`.
        """
        catalogue, is_exact, given = self._arms.now, is_certain(self._model), check_epsilon(epsilon)
        seeds = propensity_seeds(seed, draws)[: (1 if is_exact else draws) * bool(self.version)]
        inputs = self._codec.read_one(context)
        some = catalogue.eligible_for_each(eligible, contexts=1)[0]
        if self._popularity is not None:
            among = self._popularity.grouped(catalogue.rows_of(some), total=catalogue.rows.total)
            return self._popularity.propensities(among, catalogue.ids, epsilon=given)
        drawn = best_of_few(self._model, catalogue, some, inputs, seeds, threads=threads)
        if drawn is None:
            repeated, once = inputs.take(0 * np.arange(len(seeds))), Terms(1, some, 0.0, threads)
            drawn = self._answer(self._model, catalogue, repeated, seeds, once).rows[:, 0]
        terms: dict[str, Any] = {"eligible_count": some.size, "is_exact": is_exact}
        return propensities_of(drawn, catalogue.ids, epsilon=given if self.version else 1, **terms)

    def explain(
        self,
        context: Any,
        arm: Any,
        *,
        seed: int | None = None,
        eligible: Any = None,
        features: Any = None,
        draws: int = 0,
        epsilon: float = 0.01,
    ) -> Explanation:
        """Return what an arm's score is made of: a part for each feature, which sum to it.

        With the `seed` of a decision it is the score under that draw, else the expected reward.
        None stands for the typical context. The runner-up is the best other arm that is `eligible`.
        `features` of the arm, one row, are used where its coordinates do not tell them. With
        `draws` the propensity is estimated as well, as by `propensities`.
        """
        check_learned(self.version, what="An explanation")
        inputs = self._codec.read_one(self._codec.typical if context is None else context)
        asked = Asked(arm, None if seed is None else read_seed(seed), self.version)
        terms: dict[str, Any] = {"seeds": np.array([asked.seed or 0], dtype=np.uint64)}
        best = self.select(inputs, k=2, eligible=eligible, explore=seed is not None, **terms)
        given: dict[str, Any] = {"best": best.rows[0].tolist(), "features": features}
        if draws:
            terms = {"draws": draws, "epsilon": epsilon, "eligible": eligible}
            given["propensity"] = self.propensities(inputs, **terms).of(arm)
        return explain_frozen(self.parts, inputs, asked, **given)

    def warm(self) -> None:
        """Compile what decisions need: after an installation that takes some twenty seconds."""
        catalogue, buffers, model = self._arms.now, self._buffers.mine, self._model
        buffers.contexts[:], buffers.seeds[:] = 0.0, 0
        for some in (catalogue.all_eligible, catalogue.only(catalogue.rows.live_rows[:1])):
            decide(model, catalogue, some, buffers.request, buffers.answer)
            best_of_few(model, catalogue, some, Inputs(buffers.contexts), buffers.seeds, threads=1)
        self._seeds.seed_of(0)
        if len(model.own):  # the first delta must not wait for a compiler
            nothing = np.zeros((0, *model.own.shape[1:]), dtype=np.float32)
            model.with_own(np.zeros(0, dtype=np.int64), nothing, nothing)

    def apply_delta(self, rows: NDArray[np.integer], means: Floats, deviations: Floats) -> None:
        """Let arms have other constants (n,) or weights (n, K) of their own from now on, by row.

        They are all that changed since the bandit was frozen: what an earlier delta changed, and
        this one does not name, is as it was frozen. A decision under way goes on with what it
        began with. Before the first update they are popularity: row -1, all others, comes first.
        """
        if self._codec.version == 0:
            total = self._arms.now.rows.total
            self._popularity = Popularity.of(rows, means, deviations, arms=total)
            return
        model, greedy = self._as_frozen
        changed = check_delta(model.own, rows, means, deviations)
        self._model, self._greedy = model.with_own(*changed), greedy.with_own(*changed)

    # -- the arms

    __repr__, _repr_html_ = text_of_frozen, html_of_frozen

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        return len(self._arms.now)

    def __contains__(self, id: Any) -> bool:
        """Whether an arm can be chosen."""
        return self._arms.now.rows.is_live(id)

    @property
    def version(self) -> int:
        """The number of the update behind what it decides, 0 before the first."""
        return self._codec.version

    @property
    def waiting(self) -> int:
        """The number of arms that are not in partitions yet: all of them scored each time."""
        return len(self._arms.now.more)

    @property
    def bytes_per_arm(self) -> float:
        """The bytes an arm takes in memory, partitions and neighbour graph included, ids not."""
        arrays = (*self._arms.now.arms.arrays, self._arms.now.positions)
        return sum(array.nbytes for array in arrays) / len(self._arms.now.arms.order)

    @property
    def columns(self) -> Columns | None:
        """The columns that predicates speak of, one value for each row there ever was."""
        return self._arms.now.rows.columns

    @property
    def parts(self) -> tuple[FrozenModel, FrozenCatalogue, Codec]:
        """What it decides with now; none of the three ever changes."""
        return self._model, self._arms.now, self._codec

    def set_columns(self, columns: Any) -> None:
        """Set the columns that predicates speak of, in place of those they had.

        A mapping or frame, with one value for each row there ever was, discarded arms included.
        """
        self._arms.change(lambda now: (replace(now, rows=now.rows.with_columns(columns)), None))

    def add_arms(
        self, arms: Any = None, *, ids: Iterable[Any] | None = None, columns: Any = None
    ) -> None:
        """Let more arms be chosen from now on; they go into partitions in the background."""
        listed = None if ids is None else list_ids(ids)
        points = self._codec.points(arms, listed)
        self._arms.change(lambda now: (now.added(points, listed, columns), None))

    def upsert_arms(
        self, arms: Any, *, ids: Iterable[Any], columns: Any = None, is_trial: bool = False
    ) -> Upserted:
        """Add arms; one whose id can be chosen already is changed, or left if it is the same.

        A trial changes nothing: it counts what would happen, or raises what it would raise.
        """
        listed = list_ids(ids)
        points = self._codec.points(arms, listed)
        return self._arms.change(
            lambda now: now.upserted(points, listed, columns, by_id=arms is None), is_trial=is_trial
        )

    def discard_arms(self, ids: Iterable[Any], *, is_trial: bool = False) -> list[Any]:
        """Never choose these arms again: no decision that ends after this returns one.

        Returns the ids of those that could not be chosen anyway. A trial changes nothing.
        """
        return self._arms.change(lambda now: now.discarded(list_ids(ids)), is_trial=is_trial)

    def offering(self, arms: Sequence[Offer] | KnownOffers) -> FrozenBandit:
        """Return a bandit that chooses among these arms alone, in the catalogue or not.

        Those with features are scored by them, and by what was learned of just these before.
        """
        catalogue, rows = offered_catalogue(self._arms.now, self._codec, arms)
        other, known = copy(self), rows[rows < (len(self._model.own) or self._arms.now.rows.total)]
        other._arms = LiveCatalogue(catalogue)
        other._model, other._greedy = self._model.of_rows(known), self._greedy.of_rows(known)
        if self._popularity is not None:
            other._popularity = self._popularity.of_rows(rows[rows < len(self._popularity.groups)])
        return other

    def index(self, *, wait: bool = True) -> None:
        """Put all arms into partitions anew, in the background where `wait` is False."""
        self._arms.index(wait=wait)

    # -- what outlives the process

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder, whole or not at all."""
        stored = Stored(self._model, self._arms.now, self._codec, self._seeds.decisions)
        write_folder(stored, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True) -> FrozenBandit:
        """Map a saved bandit into memory; `verify` compares its files with their checksums."""
        stored = read_folder(Path(folder), verify=verify)
        return cls(stored.model, stored.catalogue, stored.codec, decisions=stored.decisions)
