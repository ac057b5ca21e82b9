"""Routers play the same traffic within the same budget."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit import Budget
from lab.experiments.model_routing import (
    SHARE,
    Row,
    best_fixed,
    lines_of,
    play,
    played,
    router_of,
    routing_command,
)
from lab.experiments.routing_data import make_traffic

pytestmark = pytest.mark.usefixtures("little_training")
TRAFFIC = make_traffic(1_500, seed=1)


def test_the_command_compares_all_routers() -> None:
    words = ["--requests=400", "--seeds=2", "--json"]

    found = json.loads(CliRunner().invoke(routing_command, words, catch_exceptions=False).output)

    names = [line["router"] for line in found["lines"]]
    assert names[:3] == ["fastbandit", "LinUCB", "epsilon-greedy"]
    assert names[-2:] == ["best single model", "best mixture of two"]
    assert len(found["rows"]) == 2 * len(names)


def test_what_knows_the_qualities_is_best_and_both_keep_the_budget() -> None:
    oracle, random = (played(name, TRAFFIC, seed=1) for name in ("oracle", "random"))

    assert oracle.quality > random.quality + 0.1
    assert oracle.quality > best_fixed(TRAFFIC, models=2)[0]
    assert [one.spent for one in (oracle, random)] == pytest.approx([1.0, 1.0], abs=0.02)


def test_a_model_is_not_chosen_before_it_joins() -> None:
    rows = played("oracle", TRAFFIC, seed=1).rows

    assert 7 not in rows[:750]
    assert 7 in rows[750:]


def test_a_restart_in_the_middle_changes_nothing() -> None:
    def routed(restart_at: int | None) -> Any:
        router, budget = router_of("fastbandit", TRAFFIC, seed=1), Budget(SHARE * 1_500, 1_500)
        return play(router, TRAFFIC, budget, restart_at=restart_at).rows

    assert np.array_equal(routed(None), routed(820))


def test_a_cap_holds_each_day() -> None:
    cap = 0.8 * SHARE * 500
    budget = Budget(SHARE * 1_500, 1_500, cap=cap, fallback=0.0)

    costs = play(router_of("oracle", TRAFFIC, seed=1), TRAFFIC, budget, days=3).costs

    spent = costs.reshape(3, 500).sum(axis=1)
    assert (spent < cap + 0.1 * 500).all()  # beyond the cap only the cheapest model answers
    assert (spent > 0.9 * cap).all()


def test_two_models_may_share_a_budget_that_one_cannot_use_up() -> None:
    one, two = (best_fixed(TRAFFIC, models=count) for count in (1, 2))

    assert two[0] > one[0]
    assert one[1] < two[1] == pytest.approx(1.0)


def test_a_difference_comes_with_its_interval() -> None:
    qualities = {"fastbandit": (0.7, 0.8), "LinUCB": (0.6, 0.6)}
    rows = [Row(n, name, q, 1.0) for name, both in qualities.items() for n, q in enumerate(both)]

    line = lines_of(rows)[1]

    assert line.ahead == pytest.approx(0.15)
    assert line.low == pytest.approx(0.15 - 12.706 * 0.05, abs=1e-3)
