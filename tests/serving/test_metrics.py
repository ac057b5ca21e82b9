"""What the service counts and times."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.serving.metrics import Histogram, Metrics, render
from fastbandit.settings.service import Config
from tests.serving.little_service import Caller, config_in, run

ARM_3 = {"arm": "arm-3", "propensity": 0.25}


@pytest.fixture
def named(config: Config) -> Config:
    """A service where the caller names the arm of the baseline."""
    return config_in(Path(config.server.data_dir), shadow__baseline="request")


def test_metrics_count_decisions_of_both_and_matches(named: Config) -> None:
    async def story(ask: Caller) -> None:
        for _ in range(3):
            await ask.select(baseline=ARM_3, eligible=["arm-3"])
        text = (await ask("GET", "/metrics")).body.decode()
        assert 'fastbandit_shadow_decisions_total{decided_by="baseline"} 3.0' in text
        assert 'fastbandit_shadow_matches_total{decided_by="baseline"} 3.0' in text
        assert "fastbandit_baseline_decides 1.0" in text

    run(named, story)


def test_metrics_count_what_was_answered(config: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        await ask("POST", "/v1/reward", {"decision": "visit-1", "value": 1})
        text = (await ask("GET", "/metrics")).body.decode()
        assert "fastbandit_decisions_total 1.0" in text
        assert 'fastbandit_rewards_total{status="counted"} 1.0' in text
        assert "fastbandit_select_seconds_count 1.0" in text

    run(config, story)


def test_half_of_the_times_lie_below_the_median() -> None:
    times = Histogram()
    for seconds in (0.001, 0.002, 0.004, 0.9):
        times.add(seconds)

    median, last = times.quantile(0.5), times.quantile(1.0)

    assert median is not None
    assert last is not None
    assert 0.001 < median <= 0.002
    assert 0.5 < last <= 1.0


def test_no_times_have_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None


def test_gauges_carry_the_prefix() -> None:
    assert b"fastbandit_arms 12.0" in render(Metrics(), {"arms": 12.0})
