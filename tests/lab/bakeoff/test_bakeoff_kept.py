"""Kept rows of sets that systems played: what a line holds, and which runs are made again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from little_sets import BROKEN, CONSTANT, STRIPES

from fastbandit.cluster.engine import SerialEngine
from fastbandit.errors import DataError
from lab.bakeoff import bake as baking
from lab.bakeoff.bake import bake, jobs_of, kept_results
from lab.bakeoff.results import summarise
from lab.experiments import kept
from lab.experiments.kept import read_rows
from lab.experiments.report import load_results

COMMIT = "0123456789abcdef"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (kept, baking):
        monkeypatch.setattr(module, "code_commit", lambda: COMMIT)
    return tmp_path / "kept" / "peers.jsonl"


def made(folder: Path, *systems: Any, seeds: int = 1, **options: Any) -> list[dict[str, Any]]:
    jobs = jobs_of([STRIPES], systems, seeds)
    results, _ = bake(jobs, folder, engine=SerialEngine(), **options)
    return results


def test_a_row_says_what_its_result_file_says_of_shares_and_costs(
    rows: Path, tmp_path: Path
) -> None:
    results = made(tmp_path / "out", CONSTANT, seeds=3, keep=rows)

    found = kept_results(rows, [STRIPES], [CONSTANT])

    (one,), (other,) = summarise(found), summarise(results)
    assert one.share == other.share
    assert one.last_quarter == other.last_quarter
    assert {row["commit"] for row in found} == {COMMIT}
    assert not {"earned", "best", "seconds"} & set(json.loads(rows.read_text().splitlines()[0]))


def test_runs_that_have_a_row_are_not_made_again_in_another_folder(
    rows: Path, tmp_path: Path
) -> None:
    made(tmp_path / "one", CONSTANT, keep=rows)
    made(tmp_path / "two", CONSTANT, seeds=2, keep=rows)

    assert [path.stem for path in (tmp_path / "two").rglob("*.json")] == ["t40-b10-seed1"]
    assert [row["seed"] for row in read_rows(rows)] == [0, 1]


def test_each_run_is_kept_as_soon_as_it_is_made(rows: Path, tmp_path: Path) -> None:
    def stop(environment: Any, seed: int, rounds: int) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "out", CONSTANT, replace(CONSTANT, name="Stopped", make=stop), keep=rows)

    assert [row["system"] for row in read_rows(rows)] == ["Constant"]


def test_a_result_file_of_an_earlier_run_becomes_a_row(rows: Path, tmp_path: Path) -> None:
    made(tmp_path / "out", CONSTANT)
    (path,) = (tmp_path / "out").rglob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"share": 0.125}))
    made(tmp_path / "out", CONSTANT, keep=rows)

    assert [row["share"] for row in read_rows(rows)] == [0.125]


def test_a_failure_is_a_row_with_its_reason_until_it_is_tried_again(
    rows: Path, tmp_path: Path
) -> None:
    mended = replace(CONSTANT, name=BROKEN.name)
    made(tmp_path / "one", BROKEN, keep=rows)
    made(tmp_path / "two", mended, keep=rows)
    assert ["no such thing" in row["error"] for row in read_rows(rows)] == [True]

    made(tmp_path / "two", mended, keep=rows, is_retried=True)

    assert [row["error"] for row in read_rows(rows)] == [None]


def test_rows_of_uncommitted_code_are_refused_before_the_work(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "code_commit", lambda: f"{COMMIT}-dirty")

    with pytest.raises(DataError, match="committed code only"):
        made(tmp_path / "out", CONSTANT, keep=rows)

    assert not (tmp_path / "out").exists()


def test_a_run_is_of_the_code_that_began_though_files_change_meanwhile(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(environment: Any, seed: int, rounds: int) -> Any:
        monkeypatch.setattr(baking, "code_commit", lambda: f"{COMMIT}-dirty")
        return CONSTANT.make(environment, seed, rounds)

    made(tmp_path / "out", replace(CONSTANT, make=change), seeds=2, keep=rows)

    assert [row["commit"] for row in read_rows(rows)] == [COMMIT, COMMIT]


def test_rows_of_sets_are_no_part_of_the_report_of_experiments(rows: Path, tmp_path: Path) -> None:
    made(tmp_path / "out", CONSTANT, keep=rows)

    with pytest.raises(DataError, match="holds none"):
        load_results(rows.parent)
