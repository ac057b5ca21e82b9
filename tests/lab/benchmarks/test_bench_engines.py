"""Two engines learn one log, and their means are held against the spread of one."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.cluster.engine import SerialEngine
from fastbandit.learning.candidates import train_here
from lab.benchmarks import engines as bench
from lab.benchmarks.engines import Learned, compare, engines_command, row_of


@pytest.mark.usefixtures("little_training")
def test_engines_that_do_the_same_do_not_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[str] = []
    monkeypatch.setattr(bench, "RayTraining", lambda workers: train_here)
    rows = compare(
        tmp_path,
        SerialEngine(),
        rounds=30,
        arms=12,
        seeds=2,
        progress=lambda done, steps, doing: ticks.append(doing),
    )

    assert [row.measured for row in rows] == ["held-out loss", "q"]
    assert all(row.local == row.ray and row.is_within for row in rows)
    assert [row.seeds for row in rows] == [2, 2]
    assert ticks == ["seed 0: local", "seed 0: ray", "seed 1: local", "seed 1: ray"]


def test_a_difference_beyond_two_standard_errors_is_shown() -> None:
    local = [Learned(loss, 1.0, 1.0) for loss in (1.0, 2.0, 3.0, 2.0)]
    near = [Learned(3.1, 1.0, 2.0)] * 4
    far = [Learned(3.2, 1.0, 2.0)] * 4

    assert row_of("loss", local, near).is_within
    assert not row_of("loss", local, far).is_within
    assert row_of("loss", local, far).cells()[-1] == "no"


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*arguments: Any, **more: Any) -> Any:
        return [row_of("loss", [Learned(1.0, 1.0, 1.0)] * 2, [Learned(1.0, 1.0, 1.0)] * 2)]

    monkeypatch.setattr(bench, "compare", made)
    engine_for = lambda name, workers: nullcontext(SerialEngine(workers))  # noqa: E731
    monkeypatch.setattr(bench, "engine_for", engine_for)
    shown = CliRunner().invoke(engines_command, ["--seeds", "2", "--json"])

    assert shown.exit_code == 0, shown.exception
    assert json.loads(shown.output)[0]["is_within"] is True
