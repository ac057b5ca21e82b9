"""The best arm without a look at the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import BestArmBandit
from fastbandit.demo.synthetic import Synthetic

WORLD = Synthetic("h1", 3, 40, noise=0.3, seed=1)


def teach_arms(bandit: Any, rewards: dict[int, list[float]]) -> None:
    pairs = [(arm, reward) for arm, group in rewards.items() for reward in group]
    contexts = np.zeros((len(pairs), 3))
    bandit.update(contexts=contexts, arms=[a for a, _ in pairs], rewards=[r for _, r in pairs])


def test_the_best_arm_is_not_the_luckiest_one() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {1: [1.0] * 20, 2: [3.0], 3: [-1.0] * 10})

    assert set(bandit.select(np.zeros((10, 3))).arms) == {1}


def test_the_score_of_the_best_arm_is_its_mean_held_back() -> None:
    bandit = BestArmBandit(arms=WORLD.arms, prior_count=4.0)
    teach_arms(bandit, {1: [1.0, 1.0], 2: [0.0, 0.0]})

    decision = bandit.select(np.zeros((1, 3)), k=2)

    assert decision.scores[0] == pytest.approx([(2 + 4 * 0.5) / 6, 0.5])


def test_level_arms_share_the_decisions() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {4: [1.0], 5: [1.0], 6: [0.0]})

    counts = np.bincount(bandit.select(np.zeros((400, 3))).rows[:, 0], minlength=40)

    assert counts[4] + counts[5] == 400
    assert min(counts[4], counts[5]) > 150


def test_better_arms_come_before_level_ones() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {3: [1.0, 1.0], 4: [1.0], 5: [1.0], 6: [0.0]})

    rows = bandit.select(np.zeros((50, 3)), k=2).rows

    assert set(rows[:, 0]) == {3}
    assert set(rows[:, 1]) == {4, 5}


def test_without_any_success_the_best_arm_is_still_looked_for_everywhere() -> None:
    bandit = BestArmBandit(arms=WORLD.arms, reward="binary")
    teach_arms(bandit, {1: [0.0], 2: [0.0]})

    assert len(set(bandit.select(np.zeros((300, 3))).arms)) == 40
