"""Frozen or not, the same seeds give the same arms, up to scores equal in float precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from fakes import compiled, seeds_of, vectors_of
from hardly_trained import CONTEXT_KINDS, CONTEXTS, COUNT, FEW, trained
from numpy.typing import NDArray

from fastbandit import (
    Bandit,
    Exhaustive,
    GeneratorSearch,
    GradientAscent,
    UpperConfidence,
)
from fastbandit.interfaces import Search, SearchFit
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.settings.files import Settings
from fastbandit.types import Decision

pytestmark = [pytest.mark.usefixtures("hardly_any_training"), pytest.mark.slow]

MANY = vectors_of(3000, 8, seed=1)
EXPLORATIONS: dict[str, dict[str, Any]] = {
    "ts of dropout": {"exploration": "ts", "posterior": "dropout"},
    "ts of a last layer": {"exploration": "ts", "posterior": "last-layer"},
    "greedy of dropout": {"exploration": "greedy", "posterior": "dropout"},
    "greedy of a last layer": {"exploration": "greedy", "posterior": "last-layer"},
    "greedy of gradients": {"exploration": "greedy", "posterior": "gradient"},
    "ucb of gradients": {"exploration": "ucb"},
    "ucb of gradients by themselves": {
        "exploration": "ucb",
        "posterior": GradientPosterior(full_below=0),
    },
}
SEARCHES: dict[str, Search] = {
    "generator": GeneratorSearch(),
    "generator of many heads": GeneratorSearch(heads=70, lookups=1, steps=0, hops=1),
    "ascent": GradientAscent(),
    "ascent with few lookups": GradientAscent(starts=80, steps=3, lookups=2, enough=0.1),
    "exhaustive": Exhaustive(),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "two layers": {"hidden": [12, 7]},
    "three layers without product": {"hidden": [6, 9, 5], "product": False},
    "no wide path": {"wide": False},
    "neither": {"product": False, "wide": False, "leak": 0.01},
}
ARM_KINDS: dict[str, dict[str, Any]] = {
    "features": {"arms": FEW},
    "words": {"arms": scipy.sparse.random(150, 40, density=0.2, random_state=4, format="csr")},
    "ids alone": {"arms": None, "ids": [f"arm {number}" for number in range(150)]},
    "features and ids": {"arms": FEW, "embed_ids": True},
}


def assert_parity(bandit: Bandit, contexts: Any = CONTEXTS, **request: Any) -> None:
    frozen, seeds = bandit.freeze(), seeds_of(COUNT, first=5)
    for k in (1, 7):
        expected = bandit.select(contexts, seeds=seeds, k=k, **request)
        answer = frozen.select(contexts, seeds=seeds, k=k, **request)
        assert_same(answer, expected)


def assert_same(answer: Decision, expected: Decision) -> None:
    """Compare rows; other rows are as good where scores are equal to 1e-5."""
    is_tie = np.isclose(answer.scores, expected.scores, rtol=1e-5, atol=1e-6)
    is_same = answer.rows == expected.rows
    places = np.flatnonzero(~(is_same | is_tie).all(axis=1))
    assert not len(places), (
        f"contexts {places}: rows {answer.rows[places]} with scores {answer.scores[places]}, "
        f"expected {expected.rows[places]} with {expected.scores[places]}"
    )
    assert is_same.mean() > 0.99  # ties are rare
    np.testing.assert_allclose(answer.scores, expected.scores, rtol=1e-4, atol=1e-5)


def network(**changes: Any) -> Settings:
    return Settings(sections={"network": changes})


# -- what decides


@pytest.fixture(scope="module", params=EXPLORATIONS)
def of_posterior(hardly_any_training: None, request: pytest.FixtureRequest) -> Bandit:
    return trained(**EXPLORATIONS[request.param], arms=MANY[:1500])


@pytest.mark.parametrize("search", SEARCHES)
def test_every_exploration_by_every_search(of_posterior: Bandit, search: str) -> None:
    if is_bound(of_posterior) and search == "exhaustive":
        pytest.skip("a bound is found by a surrogate: see test_freezing.py")
    bandit = searching(of_posterior, SEARCHES[search])

    assert_parity(bandit)
    assert_parity(bandit, explore=False)


def is_bound(bandit: Bandit) -> bool:
    return isinstance(bandit.policy.exploration, UpperConfidence)


def searching(bandit: Bandit, search: Search) -> Bandit:
    """Return a bandit that learned the same and searches in another way."""
    state, plan = bandit._state, bandit.blueprint
    policy = replace(state.policy, search=search)
    if isinstance(search, GeneratorSearch):
        assert state.history is not None
        task = SearchFit(
            policy.model,
            policy.exploration,
            policy.arms,
            state.history.contexts,
            plan.training.generator,
            torch.Generator().manual_seed(1),
        )
        policy = replace(policy, search=search.fit(task, before=search))
    other = compiled(bandit)
    other._state = replace(state, policy=policy)
    return other


@pytest.mark.parametrize("shape", NETWORKS)
@pytest.mark.parametrize("search", ["generator", "ascent"])
@pytest.mark.parametrize("exploration", ["ts of dropout", "ts of a last layer"])
def test_every_shape_of_network(exploration: str, search: str, shape: str) -> None:
    preset = network(**NETWORKS[shape])

    assert_parity(trained(**EXPLORATIONS[exploration], search=search, preset=preset))


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_rewards_that_are_yes_or_no(exploration: str) -> None:
    assert_parity(trained(**EXPLORATIONS[exploration], reward="binary"))


# -- what it decides on


@pytest.mark.parametrize("arm", ARM_KINDS)
@pytest.mark.parametrize("context", CONTEXT_KINDS)
def test_every_kind_of_context_and_arm(context: str, arm: str) -> None:
    kind, contexts = CONTEXT_KINDS[context]

    assert_parity(trained(contexts, context=kind, **ARM_KINDS[arm]), contexts)


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("search", ["generator", "ascent"])
def test_arms_of_one_to_seventeen_columns(search: str, dim: int) -> None:
    arms, preset = vectors_of(200, dim), network(embedding=dim)

    bandit = trained(arms=arms, search=search, preset=preset)

    assert bandit.freeze().parts[1].arms.vectors.shape[1] == dim
    assert_parity(bandit)


@pytest.mark.parametrize("count", [1, 2, 6, 33])
@pytest.mark.parametrize("search", ["generator", "ascent", "exhaustive"])
def test_fewer_arms_than_are_asked_for(search: str, count: int) -> None:
    assert_parity(trained(arms=FEW[:count], search=search))


# -- which arms may be chosen


WAYS: dict[str, dict[str, Any]] = {
    "generator": {"search": "generator"},
    "ascent": {"search": "ascent"},
    "exhaustive": {"search": "exhaustive"},
    "ucb": {"exploration": "ucb"},
}


@pytest.fixture(scope="module", params=WAYS)
def of_many(hardly_any_training: None, request: pytest.FixtureRequest) -> Bandit:
    return trained(arms=MANY, **WAYS[request.param])


def masks(share: float, contexts: int = COUNT) -> NDArray[np.bool_]:
    return np.random.default_rng(5).random((contexts, len(MANY))) < share


def test_many_arms(of_many: Bandit) -> None:
    assert_parity(of_many)


@pytest.mark.parametrize("share", [0.002, 0.2, 0.4, 0.9])
def test_a_mask_for_all_contexts(of_many: Bandit, share: float) -> None:
    assert_parity(of_many, eligible=masks(share, 1)[0])


@pytest.mark.parametrize("share", [0.002, 0.2, 0.4])
def test_a_mask_for_each_context(of_many: Bandit, share: float) -> None:
    assert_parity(of_many, eligible=masks(share))


@pytest.mark.parametrize("column", range(4))
def test_a_mask_of_arms_on_one_side(of_many: Bandit, column: int) -> None:
    assert_parity(of_many, eligible=MANY[:, column] > 0.3)
    assert_parity(of_many, eligible=MANY[:, column] < -0.3)


def test_ids_for_all_contexts_and_ids_for_each(of_many: Bandit) -> None:
    assert_parity(of_many, eligible=[3, 1, 4, 159])
    assert_parity(of_many, eligible=[[number, 2 * number] for number in range(1, COUNT + 1)])


@pytest.mark.parametrize("gone", [range(100), range(0, 3000, 2), range(2500)])
def test_arms_discarded_before_freezing(of_many: Bandit, gone: range) -> None:
    bandit = compiled(of_many)
    bandit.discard_arms(gone)

    assert_parity(bandit)
    assert_parity(bandit, eligible=masks(0.5, 1)[0])


@pytest.mark.parametrize("gone", [0, 100, 2500])
def test_arms_added_before_freezing(of_many: Bandit, gone: int) -> None:
    bandit = compiled(of_many)
    bandit.discard_arms(range(gone))
    bandit.add_arms(vectors_of(200, 8, seed=9))

    assert_parity(bandit)


def test_an_id_that_was_discarded_and_added_again() -> None:
    bandit = trained(ids=[f"arm {number}" for number in range(len(FEW))])
    bandit.discard_arms(["arm 3", "arm 4"])
    bandit.add_arms(FEW[:1], ids=["arm 3"])

    assert bandit.freeze().select(CONTEXTS[:1], eligible=["arm 3"]).rows.tolist() == [[150]]
    assert_parity(bandit)


def test_arms_with_ids_of_their_own_added_before_freezing() -> None:
    bandit = trained(embed_ids=True)
    bandit.add_arms(vectors_of(20, 5, seed=9))

    assert_parity(bandit)
