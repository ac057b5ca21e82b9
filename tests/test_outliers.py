"""A context far from all others has a bounded say in what is learned and decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import seeds_of, vectors_of
from numpy.typing import NDArray

from fastbandit import Bandit, Dense, FeaturesAndIds, FrozenBandit, Ids

ARMS = vectors_of(40, 3, seed=1)
CONTEXTS = vectors_of(1500, 3, seed=2)
NEXT = vectors_of(300, 3, seed=3)
WILD = [1e6, -1e6, 1e30]
KINDS: dict[str, dict[str, Any]] = {
    "features": {"arms": ARMS, "search": "exhaustive"},
    "ids": {"ids": range(40)},
}


def are_liked(contexts: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Tell which arms a context likes: the fifth that lie most in its direction."""
    likings = contexts @ ARMS.T
    return likings > np.quantile(likings, 0.8, axis=1, keepdims=True)


def trained(kind: str, wild: float | None = None) -> Bandit:
    """Return a bandit after 1,500 interactions, one number of which may be wild."""
    bandit = Bandit(**KINDS[kind], context=3, seed=4)
    told, rows = CONTEXTS.copy(), np.arange(1500) % 40
    if wild is not None:
        told[7, 1] = wild
    rewards = are_liked(CONTEXTS)[np.arange(1500), rows]
    bandit.update(contexts=told, arms=rows, rewards=rewards.astype(float))
    return bandit


def share_liked(bandit: Bandit) -> float:
    rows = bandit.select(NEXT, explore=False).rows[:, 0]
    return float(are_liked(NEXT)[np.arange(len(NEXT)), rows].mean())


@pytest.fixture(scope="module")
def clean() -> dict[str, float]:
    """The share of liked arms where no context is wild, by the kind of arms."""
    return {kind: share_liked(trained(kind)) for kind in KINDS}


@pytest.mark.parametrize("wild", [1e6, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_one_wild_context_hardly_changes_what_is_learned(
    kind: str, wild: float, clean: dict[str, float]
) -> None:
    assert clean[kind] > 0.8
    assert share_liked(trained(kind, wild)) > clean[kind] - 0.05


@pytest.fixture(scope="module")
def bandits(little_training: None) -> dict[str, Bandit]:
    """A bandit of each kind that learned little, and one whose contexts have ids beside."""
    both = FeaturesAndIds(Dense(3), Ids(2))
    found = {kind: trained(kind) for kind in KINDS}
    found["dense with ids"] = Bandit(arms=ARMS, context=both, search="exhaustive")
    found["dense with ids"].update(
        contexts=(CONTEXTS, np.arange(1500) % 2), arms=np.arange(1500) % 40, rewards=np.ones(1500)
    )
    return found


def mixed(kind: str, wild: float) -> Any:
    """Return contexts of which every third is wild."""
    contexts = NEXT[:12].copy()
    contexts[::3, 2] = wild
    return (contexts, np.arange(12) % 2) if kind == "dense with ids" else contexts


@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("kind", [*KINDS, "dense with ids"])
def test_a_decision_says_which_contexts_were_clipped(
    kind: str, wild: float, bandits: dict[str, Bandit]
) -> None:
    bandit, contexts, seeds = bandits[kind], mixed(kind, wild), seeds_of(12)
    frozen = bandit.freeze()

    decision = bandit.select(contexts, seeds=seeds)
    answer = frozen.select(contexts, seeds=seeds)

    assert decision.clipped.tolist() == [place % 3 == 0 for place in range(12)]
    assert answer.clipped.tolist() == decision.clipped.tolist()
    assert np.isfinite(decision.scores).all()
    assert np.allclose(answer.scores, decision.scores, atol=1e-5)


def test_how_wild_a_context_is_changes_no_score(bandits: dict[str, Bandit]) -> None:
    seeds = seeds_of(12)
    some, more = (
        bandits["features"].select(mixed("features", wild), seeds=seeds) for wild in (1e6, 1e30)
    )

    assert some.arms == more.arms
    assert some.scores.tolist() == more.scores.tolist()


def test_one_choice_says_whether_its_context_was_clipped(bandits: dict[str, Bandit]) -> None:
    for kind in KINDS:
        frozen = bandits[kind].freeze()

        assert frozen.select_one([0.0, 0.0, 1e9]).clipped
        assert not frozen.select_one([0.0, 0.0, 1.0]).clipped


def test_nothing_is_clipped_before_the_first_update() -> None:
    bandit = Bandit(arms=ARMS, context=3)

    assert not bandit.select(mixed("features", 1e30)).clipped.any()
    assert not bandit.freeze().select(mixed("features", 1e30)).clipped.any()


def test_a_frozen_bandit_clips_once_loaded(bandits: dict[str, Bandit], tmp_path: Path) -> None:
    frozen, seeds = bandits["features"].freeze(), seeds_of(12)
    frozen.save(tmp_path)

    loaded = FrozenBandit.load(tmp_path)

    contexts = mixed("features", 1e6)
    one, two = (each.select(contexts, seeds=seeds) for each in (frozen, loaded))
    assert two.clipped.tolist() == one.clipped.tolist()
    assert two.scores.tolist() == one.scores.tolist()


def test_a_new_arm_far_from_all_others_is_clipped_alike(bandits: dict[str, Bandit]) -> None:
    bandit = Bandit(arms=ARMS, context=3, search="exhaustive")
    bandit.update(contexts=CONTEXTS[:40], arms=range(40), rewards=np.ones(40))
    model = bandit.policy.model

    some, more = (
        model.embed_arms(kind.read(np.full((1, 3), wild), what="arms"))
        for kind, wild in ((Dense(3), 1e6), (Dense(3), 1e30))
    )

    assert torch.equal(some, more)
