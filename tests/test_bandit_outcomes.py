"""A reward may be a combination of outcomes, which is weighted anew without losing any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import same_decision, vectors_of

from fastbandit import Bandit
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.files.manifest import BANDIT, read_arrays, write_arrays

pytestmark = pytest.mark.usefixtures("little_training")

CONTEXTS = vectors_of(60, 4, seed=2)
ARMS = ["small", "large"] * 30
QUALITY = np.where(np.arange(60) % 2, 0.9, 0.5)
COST = np.where(np.arange(60) % 2, 1.0, 0.1)


def new(reward: Any = None, **changes: Any) -> Bandit:
    weights = {"quality": 1.0, "cost": -0.1} if reward is None else reward
    return Bandit(ids=["small", "large"], context=4, reward=weights, seed=3, **changes)


def teach(bandit: Bandit, **outcomes: Any) -> Bandit:
    bandit.update(contexts=CONTEXTS, arms=ARMS, rewards=outcomes)
    return bandit


def favourite(bandit: Bandit) -> str:
    """Return the arm that it takes mostly."""
    arms = bandit.select(CONTEXTS, explore=False).arms
    return max(("small", "large"), key=list(arms).count)


def plain(rewards: Any) -> Bandit:
    """Return a bandit that learned the same as numbers."""
    bandit = new("real")
    bandit.update(contexts=CONTEXTS, arms=ARMS, rewards=rewards)
    return bandit


def test_a_combination_is_learned_like_its_numbers() -> None:
    combined = teach(new(), quality=QUALITY, cost=COST).select(CONTEXTS)

    same_decision(combined, plain(QUALITY - 0.1 * COST).select(CONTEXTS))


def test_other_weights_lead_to_other_arms_from_the_same_history() -> None:
    bandit = teach(new(), quality=QUALITY, cost=COST)
    assert favourite(bandit) == "large"

    bandit.reweight({"cost": -2.0})

    assert favourite(bandit) == "small"
    assert bandit.version == 2
    assert bandit.history is not None
    assert bandit.history.rewards == pytest.approx(QUALITY - 2.0 * COST)


def test_only_interactions_with_all_weighted_outcomes_are_learned() -> None:
    is_known = np.arange(60) < 20
    bandit = teach(new(), quality=np.where(is_known, QUALITY, np.nan), cost=COST)

    assert bandit.history is not None
    assert len(bandit.history) == 20
    other = new("real")
    rewards = (QUALITY - 0.1 * COST)[:20]
    other.update(contexts=CONTEXTS[:20], arms=ARMS[:20], rewards=rewards)
    same_decision(bandit.select(CONTEXTS), other.select(CONTEXTS))


def test_outcomes_without_a_reward_stay_and_are_learned_once_weights_allow() -> None:
    bandit = teach(new(), quality=[None] * 60, cost=COST)
    assert bandit.version == 0

    bandit.reweight({"quality": 0.0})

    assert bandit.history is not None
    assert len(bandit.history) == 60
    assert favourite(bandit) == "small"


def test_an_outcome_that_had_no_weight_may_get_one_later() -> None:
    bandit = teach(new(), quality=QUALITY, cost=COST, latency=1 - COST)

    bandit.reweight({"latency": -5.0})

    assert bandit.history is not None
    assert bandit.history.rewards == pytest.approx(QUALITY - 0.1 * COST - 5 * (1 - COST), abs=1e-6)


def test_a_saved_bandit_goes_on_with_its_outcomes(tmp_path: Path) -> None:
    bandit = teach(new(), quality=np.where(np.arange(60) < 40, QUALITY, np.nan), cost=COST)
    bandit.save(tmp_path / "saved")

    loaded = Bandit.load(tmp_path / "saved")

    for one in (bandit, loaded):
        one.update(contexts=CONTEXTS, arms=ARMS, rewards={"quality": QUALITY, "cost": COST})
        one.reweight({"cost": -2.0, "quality": 0.5})
    same_decision(bandit.select(CONTEXTS), loaded.select(CONTEXTS))
    assert loaded.blueprint.weights == (("quality", 0.5), ("cost", -2.0))
    assert loaded.history is not None
    assert len(loaded.history) == 100


def test_single_rewards_are_observed_where_all_outcomes_are_known() -> None:
    bandit = teach(new(), quality=QUALITY, cost=COST)

    given = {"quality": [0.1, None], "cost": [0.3, 0.3]}
    bandit.observe(contexts=CONTEXTS[:2], arms=["small", "small"], rewards=given)

    assert bandit.history is not None
    assert len(bandit.history) == 61
    bandit.reweight({"quality": 0.0})
    assert len(bandit.history) == 62


def test_a_log_of_outcomes_warms_a_bandit_up() -> None:
    bandit = new().fit(contexts=CONTEXTS, arms=ARMS, rewards={"quality": QUALITY, "cost": COST})

    assert favourite(bandit) == "large"


def test_weights_that_cannot_be_used_leave_a_bandit_as_it_was() -> None:
    bandit = teach(new(), quality=QUALITY, cost=COST)

    with pytest.raises(SettingError, match="finite numbers"):
        bandit.reweight({"cost": np.inf})
    with pytest.raises(SettingError, match="Only a reward that is a combination"):
        new("binary").reweight({"cost": 1.0})

    assert bandit.blueprint.weights == (("quality", 1.0), ("cost", -0.1))
    assert bandit.version == 1


def test_damaged_outcomes_are_refused(tmp_path: Path) -> None:
    teach(new(), quality=QUALITY, cost=COST).save(tmp_path / "saved")
    manifest, arrays = read_arrays(tmp_path / "saved", kind=BANDIT, format=3, older=())
    copies = {name: array.copy() for name, array in arrays.items()}
    copies["history.outcomes.cost"][3] = np.inf
    notes = {
        key: value for key, value in manifest.items() if key not in ("arrays", "kind", "format")
    }
    write_arrays(tmp_path / "bad", copies, notes, kind=BANDIT, format=3)

    with pytest.raises(SnapshotError, match="not finite"):
        Bandit.load(tmp_path / "bad")
