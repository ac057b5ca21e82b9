"""How soon decisions know a reward is read off the log and what the service said meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.storage.events import RewardCame
from lab.benchmarks import deltas as bench
from lab.benchmarks.deltas import HEADINGS, Look, Row, deltas_command, measure_deltas

ROW = Row(1000, 15_000, 500.0, 3, 30, 0.6, 1.1, 1.5, 1.2)


def test_a_reward_is_known_at_the_first_look_that_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rewards = [RewardCame("a", 1.0, seq=2), RewardCame("b", 0.0, seq=4)]
    monkeypatch.setattr(bench, "rewards_of", lambda stage: rewards)
    looks = [Look(1.0, 1, 0), Look(2.0, 1, 2), Look(3.0, 1, 4)]
    stage: Any = None

    row = bench._row(stage, looks, {"a": 0.5, "b": 2.5}, arms=10, seconds=2.0)

    assert (row.p50_s, row.longest_s) == (1.0, 1.5)
    assert (row.rewards_per_s, row.deltas, row.versions) == (1.0, 3, 1)
    assert row.unknown_p95_s == pytest.approx(0.475)  # 0.5 at the first look, none at the second


def test_a_row_is_printed_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure_deltas", lambda *_, **__: ROW)

    done = CliRunner().invoke(deltas_command, ["--json"], catch_exceptions=False)

    assert json.loads(done.stdout)[0]["p95_s"] == 1.1
    assert len(ROW.cells()) == len(HEADINGS)


@pytest.mark.slow
def test_decisions_of_a_service_know_rewards_soon(tmp_path: Path) -> None:
    row = measure_deltas(tmp_path, arms=50, rate=100.0, seconds=4.0, preset="little")

    assert row.rewards > 100
    assert row.deltas > 0
    assert 0 < row.p50_s <= row.p95_s <= row.longest_s < 15.0
