"""A bandit of many arms decides by compiled code, which chooses what torch would choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import seeds_of, vectors_of

from fastbandit import Bandit, Box, GeneratorSearch
from fastbandit.runtime.freezing import can_freeze
from fastbandit.types import Decision

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(1500, 4, seed=1)
CONTEXTS = vectors_of(30, 4, seed=2)
SEEDS = seeds_of(30, first=5)
WAYS: dict[str, dict[str, Any]] = {
    "generator": {},
    "ascent": {"search": "ascent"},
    "exhaustive": {"search": "exhaustive"},
    "ucb": {"exploration": "ucb"},
}
REQUESTS: dict[str, dict[str, Any]] = {
    "one arm": {},
    "some arms": {"k": 5},
    "expected rewards": {"explore": False},
    "a few eligible": {"eligible": [3, 1, 4, 159], "k": 2},
    "a mask": {"eligible": ARMS[:, 0] > 0.3},
}


def trained(**settings: Any) -> Bandit:
    bandit = Bandit(**{"arms": ARMS, "context": 4, "reward": "real", **settings})
    return learned(bandit)


def learned(bandit: Bandit) -> Bandit:
    arms = bandit.select(CONTEXTS).arms
    bandit.update(contexts=CONTEXTS, arms=arms, rewards=CONTEXTS[:, 0] + CONTEXTS[:, 1] ** 2)
    return bandit


def by_torch(bandit: Bandit, **request: Any) -> Decision:
    """Decide as the bandit does where arms are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbandit.runtime.freezing.COMPILED_ABOVE", 10**9)
        alone = Bandit.__new__(Bandit)
        alone.__dict__.update(bandit.__dict__)
        alone._state = type(bandit._state)(bandit.policy, version=bandit.version)
        return alone.select(CONTEXTS, seeds=SEEDS, **request)


def compiled_of(bandit: Bandit) -> Any:
    assert bandit._state.compiled is not None
    return bandit._state.compiled.frozen


@pytest.fixture(scope="module", params=WAYS)
def bandit(little_training: None, request: pytest.FixtureRequest) -> Bandit:
    return trained(**WAYS[request.param])


@pytest.mark.parametrize("name", REQUESTS)
def test_the_same_seeds_give_the_same_arms_as_torch(bandit: Bandit, name: str) -> None:
    decision = bandit.select(CONTEXTS, seeds=SEEDS, **REQUESTS[name])
    expected = by_torch(bandit, **REQUESTS[name])

    assert compiled_of(bandit) is not None
    assert decision.arms == expected.arms
    np.testing.assert_array_equal(decision.rows, expected.rows)
    np.testing.assert_allclose(decision.scores, expected.scores, rtol=1e-4, atol=1e-5)
    assert (decision.evaluations <= expected.evaluations).all()  # none is scored twice
    assert (decision.lookups <= expected.lookups).all()
    assert decision.version == expected.version


def test_seeds_are_counted_by_the_bandit(bandit: Bandit) -> None:
    first, second = bandit.select(CONTEXTS), bandit.select(CONTEXTS)

    assert len({*first.seeds.tolist(), *second.seeds.tolist()}) == 60


def test_it_is_made_once_for_many_decisions() -> None:
    bandit = trained()
    bandit.select(CONTEXTS)
    compiled = compiled_of(bandit)

    bandit.select(CONTEXTS)
    bandit.select(CONTEXTS, seeds=SEEDS)

    assert compiled_of(bandit) is compiled


def test_what_is_learned_later_counts() -> None:
    bandit = learned(trained())

    decision = bandit.select(CONTEXTS, seeds=SEEDS)

    assert decision.version == 2
    assert decision.arms == by_torch(bandit).arms


def test_arms_that_come_and_go_count_at_once() -> None:
    bandit = trained(search="exhaustive", posterior="neural")
    chosen = set(bandit.select(CONTEXTS, seeds=SEEDS).arms)

    bandit.discard_arms(chosen)
    assert not chosen & set(bandit.select(CONTEXTS, seeds=SEEDS).arms)

    bandit.add_arms(ARMS[sorted(chosen)])
    again = bandit.select(CONTEXTS, seeds=SEEDS)
    assert again.rows.min() >= len(ARMS)
    assert again.arms == by_torch(bandit).arms


def test_few_arms_are_left_to_torch() -> None:
    bandit = trained(arms=ARMS[:512])
    bandit.select(CONTEXTS)

    assert compiled_of(bandit) is None


@pytest.mark.parametrize(
    "settings",
    [{"exploration": "ucb", "search": "exhaustive"}, {"search": GeneratorSearch(neighbours=3)}],
)
def test_what_cannot_be_frozen_is_left_to_torch(settings: dict[str, Any]) -> None:
    bandit = trained(**settings)
    bandit.select(CONTEXTS)

    assert not can_freeze(bandit.policy)
    assert compiled_of(bandit) is None


def test_a_box_is_left_to_torch() -> None:
    bandit = trained(arms=Box((0.0, 0.0), (1.0, 1.0)))
    bandit.select(CONTEXTS)

    assert compiled_of(bandit) is None
