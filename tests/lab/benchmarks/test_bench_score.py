"""Scoring is timed and killed; no test depends on how long it takes."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.cluster.scoring import ScoringSettings, score_contexts
from lab.benchmarks import score as bench
from lab.benchmarks.score import (
    HEADINGS,
    Row,
    Scoring,
    kill_worker,
    measure_score,
    score_command,
    workers_of,
)
from lab.benchmarks.setups import Setup

ROW = Row(
    arms=1_000_000,
    contexts=1_000_000,
    dim=8,
    hidden=32,
    exploration="ts",
    cores=2,
    parts=128,
    one_per_s=30_000.0,
    two_per_s=54_000.0,
    ratio=1.8,
    repeated_after_worker=0.01,
    repeated_after_command=0.02,
    is_same=True,
)


@pytest.mark.usefixtures("little_training")
def test_a_row_compares_one_worker_with_two_and_shows_what_kills_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[str] = []

    def run(self: Scoring, out: str, workers: int) -> tuple[float, dict[str, Any]]:
        settings = ScoringSettings(rows=8)
        score_contexts(
            self.folder / "frozen", self.folder / "contexts", self.folder / out, settings=settings
        )
        return 4.0 / workers, {"parts": 16, "repeated": 0}

    def kill(self: Scoring, out: str, *, parts: int, kill: Any) -> dict[str, Any]:
        return {**self.run(out, 2)[1], "repeated": 2}

    monkeypatch.setattr(Scoring, "run", run)
    monkeypatch.setattr(Scoring, "kill", kill)
    setup = Setup(arms=300, dim=3, rounds=60)
    row = measure_score(setup, tmp_path, contexts=80, rows=8, tick=ticks.append)

    assert (row.ratio, row.one_per_s, row.repeated_after_command) == (2.0, 20.0, 2 / 16)
    assert row.is_same
    assert len(ticks) == bench._LEARNING + 2 + 2


@pytest.mark.slow
def test_a_killed_worker_is_one_that_the_command_spawned() -> None:
    with closing(LocalEngine(1).run(wait_for_it, [0])) as news:
        assert not next(news).is_over
        (worker,) = workers_of(os.getpid())

        kill_worker(os.getpid())

        assert not next(news).is_over  # another one has begun it
        assert workers_of(os.getpid()) != [worker]


def wait_for_it(job: int, *, report: Any) -> None:
    report(1)
    time.sleep(60)


def test_a_row_has_a_cell_for_each_heading() -> None:
    assert len(ROW.cells()) == len(HEADINGS)
    assert ROW.cells()[4:] == ("1.8", "1.00%", "2.00%", "yes")


def test_the_command_prints_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(setup: Setup, folder: Path, **options: Any) -> Row:
        return replace(ROW, arms=setup.arms, contexts=options["contexts"])

    monkeypatch.setattr(bench, "measure_score", measure)

    done = CliRunner().invoke(score_command, ["--json"])
    shown = CliRunner().invoke(score_command, ["--arms", "7"])

    assert [(row["arms"], row["contexts"]) for row in json.loads(done.stdout)] == [(10**6, 10**6)]
    assert "128 parts" in shown.stdout
