"""A bandit begins from a log that another policy made, and goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import same_decision, same_weights, vectors_of

from fastbandit import Bandit, Box
from fastbandit.errors import FastbanditError

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(30, 3, seed=1)
CONTEXTS = vectors_of(200, 3, seed=2)
TAKEN = np.arange(200) % 30
LIKED = (TAKEN == 7).astype(float)
LOG: dict[str, Any] = {"contexts": CONTEXTS, "arms": TAKEN, "rewards": LIKED}
KINDS: dict[str, dict[str, Any]] = {
    "dropout": {"arms": ARMS, "search": "exhaustive"},
    "last layer": {"arms": ARMS, "search": "exhaustive", "posterior": "last-layer"},
    "gradient": {"arms": ARMS, "exploration": "ucb", "search": "exhaustive"},
    "bootstrap": {"arms": ARMS, "search": "exhaustive", "posterior": "bootstrap"},
    "variational": {"arms": ARMS, "search": "exhaustive", "posterior": "variational"},
    "arm effects": {"ids": range(30)},
}


def new(kind: str = "dropout") -> Bandit:
    return Bandit(**KINDS[kind], context=3, seed=3)


def share_of_seven(bandit: Bandit, *, explore: bool) -> float:
    arms = bandit.select(CONTEXTS, explore=explore).arms
    return float(np.mean([arm == 7 for arm in arms]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_trusted_log_is_learned_as_ones_own_interactions(kind: str) -> None:
    warm, updated = new(kind), new(kind)

    assert warm.fit(**LOG) is warm
    updated.update(**LOG)

    assert same_weights(warm, updated)
    assert same_decision(warm.select(CONTEXTS), updated.select(CONTEXTS))
    assert not warm.select(CONTEXTS).uniform


@pytest.mark.parametrize("kind", KINDS)
def test_a_bandit_goes_on_from_a_log_that_it_trusts_less(kind: str) -> None:
    bandit = new(kind).fit(**LOG, trust=0.25, propensities=np.linspace(0.02, 1, 200))
    chosen = bandit.select(CONTEXTS[:20])
    bandit.update(contexts=CONTEXTS[:20], arms=chosen.arms, rewards=np.zeros(20))

    assert bandit.version == 2
    assert np.isfinite(bandit.select(CONTEXTS).scores).all()


def test_an_arm_liked_in_the_log_is_preferred() -> None:
    bandit = new("arm effects").fit(**LOG, trust=0.5)

    assert share_of_seven(bandit, explore=False) > 0.5
    assert share_of_seven(bandit, explore=True) > 0.3


def test_what_is_trusted_less_is_outvoted_sooner() -> None:
    shares = []
    for trust in (1.0, 0.05):
        bandit = new("arm effects").fit(**LOG, trust=trust)
        bandit.update(contexts=CONTEXTS[:20], arms=[7] * 20, rewards=np.zeros(20))
        model: Any = bandit.policy.model
        shares.append(model.fitted.effects.means[7, 0])

    assert shares[1] < shares[0]


def test_a_log_may_come_after_updates() -> None:
    bandit = new("arm effects")
    bandit.update(contexts=CONTEXTS[:50], arms=TAKEN[:50], rewards=np.zeros(50))

    bandit.fit(**LOG)

    assert bandit.version == 2
    assert share_of_seven(bandit, explore=False) > 0.5


def test_points_of_a_box_can_be_logged() -> None:
    bandit = Bandit(arms=Box([0.0], [1.0], cover=32), context=3, reward="real")

    bandit.fit(contexts=CONTEXTS, arms=np.linspace(0, 1, 200)[:, None], rewards=LIKED, trust=0.5)

    assert not bandit.select(CONTEXTS).uniform


@pytest.mark.parametrize("kind", ["dropout", "arm effects"])
def test_weights_survive_saving_and_loading(kind: str, tmp_path: Path) -> None:
    bandit = new(kind).fit(**LOG, trust=0.25)
    bandit.save(tmp_path)

    loaded = Bandit.load(tmp_path)

    for each in (bandit, loaded):
        each.update(contexts=CONTEXTS[:20], arms=TAKEN[:20], rewards=np.ones(20))
    assert same_weights(loaded, bandit)
    history = loaded._state.history
    assert history is not None
    assert history.total == pytest.approx(0.25 * 200 + 20)


def test_an_empty_log_teaches_nothing() -> None:
    bandit = new().fit(contexts=CONTEXTS[:0], arms=[], rewards=[])

    assert bandit.version == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"propensities": [0.5]},
        {"propensities": np.zeros(200)},
        {"propensities": np.full(200, 2.0)},
        {"trust": 0.0},
        {"trust": 2.0},
        {"arms": ["nobody"] * 200},
        {"rewards": np.full(200, 0.5)},
        {"contexts": CONTEXTS[:, :2]},
        {"contexts": CONTEXTS[:10]},
    ],
    ids=str,
)
def test_a_log_that_cannot_be_right_changes_nothing(wrong: dict[str, Any]) -> None:
    bandit = new().fit(**LOG)
    before = bandit._state

    with pytest.raises(FastbanditError):
        bandit.fit(**{**LOG, **wrong})

    assert bandit._state is before
