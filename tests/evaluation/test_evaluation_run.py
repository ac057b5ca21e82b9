"""Evaluations tell what a policy would earn, and whether to believe it."""

from __future__ import annotations

import numpy as np
import pytest
from little_log import uniform_log

from fastbandit.evaluation import MIPS, SparsePolicy, evaluate


def test_the_best_arm_is_worth_what_it_earns() -> None:
    log = uniform_log(4_000)

    found = evaluate(log, SparsePolicy.fixed(log, 3))

    for name in ("replay", "ips", "snips", "dm", "dr", "switch"):
        assert found[name].value == pytest.approx(0.9, abs=0.1)


def test_an_interval_lies_around_its_estimate() -> None:
    log = uniform_log(2_000)

    found = evaluate(log, SparsePolicy.fixed(log, 3))

    assert all(one.low < one.value < one.high for one in found.estimates)


def test_replay_on_an_uneven_log_is_warned_of() -> None:
    log = uniform_log(propensities=np.tile([0.1, 0.2], 200))

    assert any("replay supposes" in said for said in evaluate(log, "uniform").sentences)


def test_weights_of_clusters_that_are_off_are_reported() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 8, 400)  # the policy follows the log, which no context explains
    log = uniform_log(chosen=chosen, propensities=rng.uniform(0.1, 0.2, 400))
    policy = SparsePolicy(chosen, np.ones(400), arms=8)

    words = evaluate(log, policy, estimators=MIPS(clusters=np.arange(8) // 4)).sentences

    assert any("do not trust MIPS: the mean weight of clusters is" in said for said in words)


def test_mips_is_left_out_where_arms_have_no_vectors() -> None:
    names = [one.name for one in evaluate(uniform_log(), "uniform").estimates]

    assert "mips" not in names


def test_mips_needs_fewer_rounds_where_arms_are_many() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 500, 2_000)
    rewards = rng.random(2_000) < np.where(chosen % 2, 0.8, 0.1)
    log = uniform_log(2_000, arms=500, chosen=chosen, rewards=rewards)

    found = evaluate(
        log, SparsePolicy.fixed(log, 7), estimators=["ips", MIPS(clusters=np.arange(500) % 2)]
    )

    assert found["mips"].value == pytest.approx(0.8, abs=0.05)
    assert found["mips"].high - found["mips"].low < found["ips"].high - found["ips"].low
