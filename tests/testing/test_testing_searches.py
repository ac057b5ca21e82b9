"""Every search through the laws of fastbandit/testing/searches.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from arm_spaces import DIM, SPACES
from fakes import LITTLE, BowlReward, catalogue_of, seeds_of, vectors_of
from torch import Generator

from fastbandit import Exhaustive, GeneratorSearch, GradientAscent
from fastbandit.arms.catalogue import Catalogue
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.interfaces import ArmSpace, Exploration, Search, SearchFit
from fastbandit.score import Choice, Score
from fastbandit.search.spanner import SpannerSearch
from fastbandit.testing.searches import check_cost_does_not_grow, check_search
from fastbandit.types import Inputs

SEARCHES: dict[str, Search] = {
    "exhaustive": Exhaustive(chunk=64),
    "ascent": GradientAscent(steps=5),
    "ascent, few look-ups": GradientAscent(steps=5, lookups=2, hops=0),
    "ascent from a scan": GradientAscent(starts=3, steps=5, scan=40),
    "ascent, one neighbour": GradientAscent(starts=5, steps=5, neighbours=1, hops=0),
    "spanner": SpannerSearch(),
    "spanner alone": SpannerSearch(size=8, hops=0),
    "generator": GeneratorSearch(),
    "generator, one head": GeneratorSearch(
        heads=1, hidden=64, lookups=1, neighbours=3, steps=0, hops=0
    ),
}
EXPLORATIONS: dict[str, Exploration] = {
    "ucb": UpperConfidence(0.5),
    "ts": ThompsonSampling(0.7),
}


def bowl_score(arms: ArmSpace, exploration: Exploration, *, count: int = 6) -> Score:
    contexts = torch.from_numpy(vectors_of(count, DIM, seed=4))
    score = exploration.score(BowlReward(DIM), contexts, seeds=seeds_of(count))
    return score.through(arms.to_embedding)


def ready(search: Search, arms: ArmSpace, exploration: Exploration) -> Search:
    """Train the generator of a search that has one."""
    if not isinstance(search, GeneratorSearch):
        return search
    contexts = Inputs(dense=vectors_of(50, DIM, seed=5))
    rng = torch.Generator().manual_seed(1)
    task = SearchFit(BowlReward(DIM), exploration, arms, contexts, LITTLE.generator, rng)
    return search.fit(task, before=search)


@pytest.mark.parametrize("exploration", ["ts", "ucb"])
@pytest.mark.parametrize(
    ("name", "space"),
    [(n, s) for n in SEARCHES for s in SPACES],
)
def test_searches(name: str, space: str, exploration: str) -> None:
    arms, how = SPACES[space](), EXPLORATIONS[exploration]
    search = ready(SEARCHES[name], arms, how)

    check_search(search, bowl_score(arms, how), arms, seeds=seeds_of(6))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "each its own"])
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_among_eligible_arms(
    name: str, share: float, is_shared: bool, rng: Generator
) -> None:
    arms, how = SPACES["catalogue"](), EXPLORATIONS["ts"]
    search = ready(SEARCHES[name], arms, how)
    eligible = torch.rand(1 if is_shared else 6, 400, generator=rng) < share
    eligible[:, 7] = True

    check_search(search, bowl_score(arms, how), arms, seeds=seeds_of(6), eligible=eligible)


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "exhaustive"])
def test_only_exhaustive_search_is_linear_in_the_arms(name: str) -> None:
    how = EXPLORATIONS["ts"]
    small, large = (catalogue_of(vectors_of(count, DIM)) for count in (3_000, 6_000))
    search = ready(SEARCHES[name], small, how)

    def choice(arms: Catalogue) -> Choice:
        return search.best(bowl_score(arms, how), arms, count=1, seeds=seeds_of(6))

    check_cost_does_not_grow(choice(small), choice(large))


class Cheating:
    """Wraps a search and spoils its answer."""

    def __init__(self, spoil: Callable[[Choice], Choice]) -> None:
        self.spoil = spoil

    def best(self, *args: Any, **settings: Any) -> Choice:
        return self.spoil(Exhaustive().best(*args, **settings))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: replace(c, scores=c.scores + 1), "scores of the chosen"),
        (lambda c: replace(c, evaluations=c.evaluations - 1), "evaluations claimed"),
        (lambda c: replace(c, lookups=c.lookups + 1), "look-ups claimed"),
        (lambda c: replace(c, rows=torch.zeros_like(c.rows)), "comes twice"),
        (lambda c: replace(c, rows=torch.full_like(c.rows, -1)), "0 arms for"),
    ],
)
def test_a_search_that_cheats_is_caught(spoil: Callable[[Choice], Choice], message: str) -> None:
    arms = SPACES["catalogue"]()

    with pytest.raises(AssertionError, match=message):
        check_search(Cheating(spoil), bowl_score(arms, Greedy()), arms, seeds=seeds_of(6))
