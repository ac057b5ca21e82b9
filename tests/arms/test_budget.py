"""A budget weighs costs so that spending follows a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit import Budget
from fastbandit.errors import InputError, SettingError, SnapshotError

PRICES = np.array([0.1, 1.0, 5.0])
QUALITIES = np.array([0.3, 0.6, 0.9])


def spend(budget: Budget, decisions: int, *, seed: int = 0) -> np.ndarray[Any, Any]:
    """Choose among arms whose scores and costs vary, and return what was taken."""
    rng, taken = np.random.default_rng(seed), []
    for _ in range(decisions):
        scores = QUALITIES + 0.2 * rng.normal(size=3)
        costs = PRICES * rng.lognormal(sigma=0.5)
        taken.append(int(budget.choose(scores, costs)[0]))
        budget.observe(costs[taken[-1]])
    return np.array(taken)


@pytest.mark.parametrize("share", [0.3, 1.0, 3.0])
def test_spending_comes_to_the_total_at_the_end_of_the_horizon(share: float) -> None:
    budget = Budget(share * 2_000, 2_000)

    spend(budget, 2_000)

    assert budget.spent == pytest.approx(share * 2_000, rel=0.02)
    assert budget.decisions == 2_000


def test_spending_is_even_over_the_horizon() -> None:
    budget = Budget(2_000.0, 2_000)

    spend(budget, 1_000)

    assert budget.spent == pytest.approx(1_000, rel=0.05)


def test_cost_hardly_counts_where_there_is_plenty() -> None:
    budget = Budget(100_000.0, 2_000)

    taken = spend(budget, 2_000)

    assert 0 < budget.weight < 0.01
    assert (taken[1_000:] == 2).mean() > 0.8


def test_a_weight_never_gets_negative_or_lost() -> None:
    budget = Budget(1.0, 10_000)

    budget.observe(np.zeros(9_000))
    lowest = budget.weight
    budget.observe(np.ones(900))

    assert 0 < lowest < budget.weight


def test_no_more_than_the_cap_is_spent_in_a_day() -> None:
    budget = Budget(1_000.0, 1_000, cap=10.0, fallback=0.2)
    costs = np.array([0.2, 2.0])

    for _ in range(2):
        for _ in range(20):
            taken = budget.choose([0.0, 1e6], costs)[0]
            budget.observe(costs[taken])
        assert budget.today == pytest.approx(10.0 + 15 * 0.2)
        assert budget.eligible(costs).tolist() == [True, False]
        budget.begin_day()
        assert budget.eligible(costs).tolist() == [True, True]


def test_the_cheapest_arm_stays_eligible_whatever_was_spent() -> None:
    budget = Budget(1.0, 10)
    budget.observe([1.0, 1.0])

    assert budget.eligible([0.5, 0.4, 3.0]).tolist() == [False, True, False]
    assert budget.choose([9.0, 0.0, 9.0], [0.5, 0.4, 3.0]).tolist() == [1]


def test_what_is_left_is_counted_down_within_one_choice() -> None:
    budget = Budget(2.0, 10)

    assert budget.choose([[0.0, 1e6]] * 3, [[0.0, 1.0]] * 3).tolist() == [1, 1, 0]
    assert budget.spent == 0


def test_a_saved_budget_goes_on_where_it_stopped(tmp_path: Path) -> None:
    budget = Budget(2_000.0, 2_000, cap=900.0, fallback=0.1, rate=0.03)
    spend(budget, 500)
    budget.save(tmp_path / "budget.json")

    loaded = Budget.load(tmp_path / "budget.json")

    assert repr(loaded) == repr(budget)
    assert (spend(loaded, 500, seed=1) == spend(budget, 500, seed=1)).all()
    assert vars(loaded) == vars(budget)


@pytest.mark.parametrize("text", ["", "{}", '{"total": 1}', "[]"])
def test_a_file_that_is_no_budget_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "budget.json").write_text(text)

    with pytest.raises(SnapshotError, match="as it was saved"):
        Budget.load(tmp_path / "budget.json")


@pytest.mark.parametrize(
    "wrong",
    [
        {"total": 0.0},
        {"horizon": 0},
        {"horizon": 1.5},
        {"cap": -1.0},
        {"rate": 0},
        {"fallback": -1},
    ],
)
def test_a_budget_needs_sums_above_0(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Budget(**{"total": 1.0, "horizon": 10, **wrong})


def test_costs_and_scores_are_checked() -> None:
    budget = Budget(1.0, 10)

    with pytest.raises(InputError, match="finite numbers of at least 0"):
        budget.observe([-1.0])
    with pytest.raises(InputError, match="finite numbers of at least 0"):
        budget.eligible([np.nan])
    with pytest.raises(InputError, match="one shape"):
        budget.choose([[1.0, 2.0]], [[1.0]])
