"""Runs are made once, and what fails, hangs or is missing takes nothing with it."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from little_sets import BROKEN, CONSTANT, ENDLESS, MISSING, STRIPES

from fastbandit.cluster.engine import News, SerialEngine, do
from fastbandit.errors import DataError
from lab.bakeoff.bake import Job, bake, jobs_of
from lab.bakeoff.results import Key, summarise


def made(folder: Path, *systems: Any, seeds: int = 1, **options: Any) -> Any:
    return bake(jobs_of([STRIPES], systems, seeds), folder, engine=SerialEngine(), **options)


def test_each_run_has_a_file_of_its_own(tmp_path: Path) -> None:
    results, missing = made(tmp_path, CONSTANT, seeds=3)

    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert [name for name in files if name.endswith(".json")] == [
        f"stripes/constant/t40-b10-seed{seed}.json" for seed in range(3)
    ]
    assert not [name for name in files if name.endswith(".part")]
    assert [result["seed"] for result in results] == [0, 1, 2]
    assert missing == []


def test_a_rerun_skips_what_is_there(tmp_path: Path) -> None:
    made(tmp_path, CONSTANT)
    (path,) = tmp_path.rglob("*.json")
    marked = json.loads(path.read_text()) | {"share": 0.125}
    path.write_text(json.dumps(marked))

    results, _ = made(tmp_path, CONSTANT, seeds=2)

    assert results[0] == marked
    assert results[1]["share"] != 0.125


def test_a_system_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    results, missing = made(tmp_path, BROKEN, CONSTANT)

    broken, well = results
    assert "ValueError: no such thing" in broken["error"]
    assert well["error"] is None
    assert missing == []


def test_a_failure_is_stored_until_it_is_tried_again(tmp_path: Path) -> None:
    made(tmp_path, BROKEN)
    mended = replace(CONSTANT, name=BROKEN.name)

    stored, _ = made(tmp_path, mended)
    again, _ = made(tmp_path, mended, is_retried=True)

    assert stored[0]["error"] is not None
    assert again[0]["error"] is None


def test_a_system_that_takes_too_long_is_ended_and_says_so(tmp_path: Path) -> None:
    results, _ = made(tmp_path, ENDLESS, CONSTANT, most_seconds=0.3)

    assert "more than 0.3 s" in results[0]["error"]
    assert results[1]["error"] is None


class DyingEngine:
    """An engine whose first worker dies, and whose others do their jobs."""

    workers = 1

    def run(self, work: Any, jobs: Sequence[Any]) -> Generator[News, None, None]:
        yield News(0, is_over=True, error="Its process ended with -9")
        for number, job in enumerate(jobs[1:], 1):
            yield do(work, number, job)

    def close(self) -> None:
        """Do nothing."""


def test_a_run_whose_process_died_is_a_result_with_its_error(tmp_path: Path) -> None:
    jobs = jobs_of([STRIPES], [BROKEN, CONSTANT], 1)

    results, missing = bake(jobs, tmp_path, engine=DyingEngine())

    assert [result["error"] for result in results] == ["Its process ended with -9", None]
    assert missing == []
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_what_is_not_installed_leaves_no_result(tmp_path: Path) -> None:
    results, missing = made(tmp_path, MISSING, CONSTANT)

    assert [result["system"] for result in results] == ["Constant"]
    ((job, error),) = missing
    assert job == Job(STRIPES, MISSING, 0)
    assert "nowhere" in error
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_set_without_its_data_leaves_no_result(tmp_path: Path) -> None:
    def nowhere(data: Path | None, seed: int) -> Any:
        raise DataError("There is no such file.")

    jobs = jobs_of([replace(STRIPES, environment=nowhere)], [CONSTANT], 1)
    results, missing = bake(jobs, tmp_path, engine=SerialEngine())

    assert results == []
    assert missing == [(jobs[0], "There is no such file.")]


def test_a_system_that_is_for_some_sets_plays_those_alone() -> None:
    elsewhere = replace(CONSTANT, sets=("bibtex",))

    assert jobs_of([STRIPES], [elsewhere], 2) == []


def test_runs_of_one_setting_are_neighbours() -> None:
    sets = [STRIPES, replace(STRIPES, name="other"), replace(STRIPES, batch=5)]

    jobs = jobs_of(sets, [CONSTANT], 2)

    settings = [(job.set.name, job.seed) for job in jobs]
    assert settings == [
        (name, seed)
        for name in ("stripes", "other")
        for seed in (0, 1)
        for _ in range(2 if name == "stripes" else 1)
    ]


def test_names_that_differ_have_files_that_differ() -> None:
    names = ("LinTS .1", "LinTS .05", "LinTS_.1", "LinTS/.1")

    paths = {Key("a", 1, 1, name, 0).path(Path()) for name in names}

    assert len(paths) == len(names)


def test_means_are_over_seeds_and_leave_out_what_failed(tmp_path: Path) -> None:
    results, _ = made(tmp_path, CONSTANT, seeds=3)
    for result, share in zip(results, (0.1, 0.2, 0.3), strict=True):
        result["share"] = share
    results.append(results[0] | {"seed": 3, "error": "It fell.", "share": None})

    (row,) = summarise(results)

    assert row.share is not None
    assert row.share.value == pytest.approx(0.2)
    assert row.share.error == pytest.approx(0.1 / 3**0.5)
    assert (row.seeds, row.failed, row.error) == (3, 1, "It fell.")
