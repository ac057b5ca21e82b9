"""What workers bring, by what each process took of the processor."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from lab.faults.worker_costs import Loaded, WorkersReport, _append_us, _process_us, compare_workers
from tests.serving.little_workers import decision

ALONE = Loaded(1, 4, 1_000.0, 1.0, 2.0, 0, {"worker": 300.0})
SEVERAL = Loaded(2, 8, 1_500.0, 1.0, 2.0, 0, {"worker": 200.0, "writer": 50.0, "parent": 0.0})
PARTS = {"frames, writer": 2.0, "append, of 128": 18.0}
REPORT = WorkersReport(100, 1.0, ALONE, SEVERAL, PARTS)


def test_the_slower_of_workers_and_writer_says_what_cores_bring() -> None:
    assert REPORT.ratio == 1.5
    assert REPORT.on_cores(5) == 20_000.0  # four workers of 200 µs
    assert REPORT.on_cores(64) == 50_000.0  # a writer of 20 µs
    slow = replace(REPORT, parts_us={**PARTS, "append, of 128": 98.0})
    assert slow.on_cores(16) == 10_000.0


def test_the_time_of_a_process_goes_on() -> None:
    before = _process_us(os.getpid())
    sum(range(3_000_000))

    assert _process_us(os.getpid()) >= before > 0


def test_an_append_takes_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    busy, waited = _append_us(tmp_path_factory.mktemp("log") / "a.db", decision("a"), 2)

    assert busy > 0
    assert waited + busy > 0


@pytest.mark.slow
def test_workers_are_measured_beside_one_process() -> None:
    report = compare_workers(2, arms=50, seconds=0.5, rounds=1)

    assert report.alone.per_second > 0
    assert report.several.per_second > 0
    assert set(report.several.cpu_us) == {"worker", "writer", "parent"}
    assert report.alone.failed == report.several.failed == 0
