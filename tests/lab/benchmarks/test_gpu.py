"""The benchmark of the GPU, on a machine that may have none."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fastbandit.errors import SettingError
from lab.benchmarks import gpu as bench
from lab.benchmarks.gpu import HEADINGS, Row, gpu_command, measure_gpu
from lab.benchmarks.reporting import Tick
from lab.benchmarks.setups import Setup

ROW = Row(1000, 8, 32, "ts", "cpu", 100, 10, 1e-7, 3e-5, 300.0, 0.999)


@pytest.mark.usefixtures("little_training")
def test_an_exhaustive_batch_is_smaller_where_arms_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "_PAIRS", 5_000)
    steps: list[str] = []

    row = measure_gpu(Setup(arms=500, dim=3, rounds=60), batch=50, seconds=0.0, tick=steps.append)

    assert (row.batch, row.exhaustive_batch) == (50, 10)
    assert row.exhaustive_ratio == pytest.approx(row.exhaustive_seconds / row.seconds)
    assert 0.5 < row.quality <= 1.0001
    assert len(steps) == bench._STEPS


def test_a_row_has_a_cell_for_each_heading() -> None:
    assert len(ROW.cells()) == len(HEADINGS)
    assert ROW.cells()[1] == "1.00e-07"


def test_without_a_gpu_the_command_says_what_to_run_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)

    done = CliRunner().invoke(gpu_command, [])

    assert isinstance(done.exception, SettingError)
    assert "python -m lab bench batch" in str(done.exception)


def test_the_command_prints_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(setup: Setup, *, batch: int, seconds: float, tick: Tick) -> Row:
        assert setup.device == "cuda"
        return ROW

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(bench, "measure_gpu", measure)

    done = CliRunner().invoke(gpu_command, ["--arms", "5", "--json"])

    assert json.loads(done.stdout)[0]["exhaustive_ratio"] == 300.0
