"""Batches of a frozen bandit and of torch are compared; no test depends on how long they take."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from lab.benchmarks import batch as bench
from lab.benchmarks.batch import HEADINGS, Row, batch_command, measure_batch
from lab.benchmarks.reporting import Tick
from lab.benchmarks.setups import Setup

ROW = Row(
    arms=10_000,
    dim=8,
    hidden=32,
    exploration="ts",
    cores=2,
    frozen_per_s=50_000.0,
    frozen_all_cores_per_s=90_000.0,
    torch_per_s=10_000.0,
    exhaustive_per_s=1_000.0,
    exhaustive_over_torch=10.0,
    exhaustive_over_frozen=45.0,
)


@pytest.mark.slow
@pytest.mark.usefixtures("little_training")
def test_a_row_compares_all_kinds_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LARGE", 300)
    steps: list[str] = []

    row = measure_batch(Setup(arms=500, dim=3, rounds=60), seconds=0.0, tick=steps.append)

    rates = (row.frozen_per_s, row.frozen_all_cores_per_s, row.torch_per_s, row.exhaustive_per_s)
    assert min(rates) > 0
    assert row.exhaustive_over_torch == pytest.approx(row.torch_per_s / row.exhaustive_per_s)
    assert len(steps) == bench._STEPS


def test_a_row_has_a_cell_for_each_heading() -> None:
    assert len(ROW.cells()) == len(HEADINGS)
    assert ROW.cells()[:3] == ("10,000", "50,000", "90,000")


def test_the_command_prints_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(setup: Setup, *, seconds: float, tick: Tick) -> Row:
        return replace(ROW, arms=setup.arms)

    monkeypatch.setattr(bench, "measure_batch", measure)

    done = CliRunner().invoke(batch_command, ["--json"])
    shown = CliRunner().invoke(batch_command, ["--arms", "7"])

    assert [row["arms"] for row in json.loads(done.stdout)] == [10_000, 100_000]
    assert "2 for all cores" in shown.stdout
