"""The check of speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.evaluation import LoggedRounds
from lab.estimators import speed as speed_check


def test_the_speed_of_drawing_from_a_frozen_bandit_is_checked(
    frozen_log: tuple[LoggedRounds, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed_check, "_DRAWS", 64)

    found = speed_check.check_speed(rounds=4_000, frozen=frozen_log[1], draws=1)

    assert (found.arms, found.candidates) == (40, 1)
    assert found.evaluation["snips"].value == pytest.approx(found.truth, abs=0.1)
    assert "a frozen bandit asked 1 time a round" in speed_check.speed_sentences(found)


@pytest.fixture(scope="module")
def frozen_log(little_training: None) -> tuple[LoggedRounds, Any]:
    from fastbandit import Bandit

    rng = np.random.default_rng(0)
    vectors, contexts = rng.normal(size=(40, 3)), rng.normal(size=(60, 4))
    bandit = Bandit(arms=vectors, context=4, seed=1)
    taken = bandit.select(contexts)
    rewards = rng.integers(0, 2, 60)
    bandit.update(contexts=contexts, arms=taken.arms, rewards=rewards)
    log = LoggedRounds(contexts, taken.rows[:, 0], rewards, np.full(60, 1 / 40), vectors=vectors)
    return log, bandit.freeze()


def test_many_rounds_over_many_arms_are_evaluated() -> None:
    found = speed_check.check_speed(rounds=5_000, arms=20_000)

    for name in ("ips", "snips", "dr"):
        one = found.evaluation[name]
        assert one.low - 0.01 <= found.truth <= one.high + 0.01
