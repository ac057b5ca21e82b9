"""A fixed arm: always the same, and otherwise a baseline like the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import FixedArmBandit
from fastbandit.errors import FastbanditError, NotFiniteError, SettingError, UnknownArmError
from fastbandit.noise.philox import decision_seeds

CONTEXTS = np.zeros((6, 2))


def fixed(**settings: Any) -> FixedArmBandit:
    return FixedArmBandit(**({"ids": ["a", "b", "c", "d"], "row": 2} | settings))


def test_the_same_arm_is_chosen_whatever_it_earns() -> None:
    bandit = fixed()
    before = bandit.select(CONTEXTS)
    bandit.update(contexts=CONTEXTS, arms=["a"] * 6, rewards=[9.0] * 6)
    after = bandit.select(CONTEXTS)

    assert before.arms == after.arms == ["c"] * 6
    assert (before.version, after.version) == (0, 1)
    assert not before.uniform
    assert after.evaluations.tolist() == after.lookups.tolist() == [0] * 6


def test_arms_may_have_features() -> None:
    assert fixed(arms=np.eye(4), ids=None).select(CONTEXTS).arms == [2] * 6


def test_more_arms_are_the_fixed_one_and_others_drawn() -> None:
    rows = fixed().select(np.zeros((100, 2)), k=3).rows

    assert set(rows[:, 0]) == {2}
    assert set(rows[:, 1]) == {0, 1, 3}
    assert all(len(set(row)) == 3 for row in rows.tolist())


def test_where_it_is_not_eligible_an_eligible_arm_is_drawn() -> None:
    eligible = [["a"], ["c", "a"], ["a", "b"], ["c"], ["d"], ["b", "c"]]

    arms = fixed().select(CONTEXTS, eligible=eligible).arms

    assert [arms[0], arms[1], arms[3], arms[4], arms[5]] == ["a", "c", "c", "d", "c"]
    assert arms[2] in ("a", "b")


def test_decisions_have_the_seeds_of_their_numbers() -> None:
    bandit = fixed(seed=3)
    bandit.select(CONTEXTS)

    assert np.array_equal(bandit.select(CONTEXTS).seeds, decision_seeds(3, 6, 6))


@pytest.mark.parametrize("row", [-1, 4, 1.5, True, "c"])
def test_a_row_without_an_arm_is_rejected(row: Any) -> None:
    with pytest.raises(SettingError, match="from 0 to 3"):
        fixed(row=row)


@pytest.mark.parametrize(
    ("bad", "error"), [({"arms": ["z"]}, UnknownArmError), ({"rewards": [np.nan]}, NotFiniteError)]
)
def test_a_bad_update_raises_and_is_not_counted(
    bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    bandit = fixed()

    with pytest.raises(error):
        bandit.update(**({"contexts": CONTEXTS[:1], "arms": ["a"], "rewards": [1.0]} | bad))

    assert bandit.select(CONTEXTS).version == 0
