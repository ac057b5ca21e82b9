"""The page of campaigns says what was measured, and what was missed or not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.errors import DataError
from lab.__main__ import _FAULTS as COMMANDS
from lab.faults.report import CAMPAIGNS, MARKS, report_command, tables

CUTS = {"cuts": 10_000, "acknowledged": 90_000, "lost": 0, "corrupt": 0, "torn": 0}
KILLS = {
    "rounds": 1_000,
    "workers": 2,
    "kills": {"worker": 600, "writer": 500},
    "decisions": 30_000,
    "rewards": 29_000,
    "lost_decisions": 0,
    "lost_rewards": 0,
    "asked_again": 40,
    "other_answers": 0,
    "odd_answers": 0,
    "orphans": 0,
    "versions": 9,
    "minutes": 4.0,
    "versions_per_minute": 2.0,
    "learned": 4_000,
    "faults": [],
    "restarts": 60,
    "slowest_restart_seconds": 2.5,
}


def write(folder: Path, name: str, result: object) -> None:
    (folder / f"{name}.json").write_text(json.dumps(result))


def test_a_bar_is_met_or_missed_by_what_was_measured(tmp_path: Path) -> None:
    write(tmp_path, "power-cut", CUTS)
    write(tmp_path, "kills", KILLS)

    table = tables(tmp_path)

    assert "| 10,000 cuts, 90,000 acknowledged events looked for: 0 lost" in table
    assert "| answers within 2 s of a restart | slowest of 60: 2.50 s | **missed** |" in table
    assert table.count("| met |") == 4


@pytest.mark.parametrize("change", [{"lost": 1}, {"cuts": 9_999}, {"torn": 1}])
def test_a_lost_event_or_a_short_run_is_a_miss(change: dict[str, int], tmp_path: Path) -> None:
    write(tmp_path, "power-cut", {**CUTS, **change})

    assert "**missed**" in tables(tmp_path)


def test_the_command_is_the_one_that_was_run(tmp_path: Path) -> None:
    write(tmp_path, "kills", {**KILLS, "rounds": 20, "commit": "0123456789abcdef"})

    table = tables(tmp_path)

    assert "| `python -m lab faults kills --rounds 20 --workers 2` | `0123456789` | 1,0" in table


def test_a_campaign_without_a_result_is_named(tmp_path: Path) -> None:
    write(tmp_path, "power-cut", CUTS)

    assert "Not run: kills, behind, clock, disk" in tables(tmp_path)


@pytest.mark.parametrize("name", ["lease_seconds", "turn_seconds"])
def test_results_are_read_by_names_of_now_and_of_before(name: str, tmp_path: Path) -> None:
    counts = {"times": 2, "waited": 2, "together": 0, "missing": 0, "versions": 5}
    more = {name: [0.5, 1.5], "slowest_seconds": 3.0, "faults": []}
    write(tmp_path, "trainers", {**counts, **more})

    assert "2 kills: had the leader lease within 1.5 s" in tables(tmp_path)


@pytest.mark.parametrize("result", [[], {"cuts": "many"}, {}])
def test_a_result_of_another_shape_is_refused(result: object, tmp_path: Path) -> None:
    write(tmp_path, "power-cut", result)

    with pytest.raises(DataError, match="Run the campaign again"):
        tables(tmp_path)


def test_the_page_is_written_between_its_marks(tmp_path: Path) -> None:
    write(tmp_path, "power-cut", CUTS)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")

    done = CliRunner().invoke(report_command, [str(tmp_path), "--doc", str(page)])

    assert done.exit_code == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "90,000" in text
    assert "commit: not recorded. The package was in one state." in text
    assert "old" not in text


def test_every_campaign_is_a_command() -> None:
    assert set(CAMPAIGNS) == set(COMMANDS) - {"report"}


def test_workers_are_shown_beside_one_process(tmp_path: Path) -> None:
    loaded = {"per_second": 1_000.0, "p99_ms": 3.0, "failed": 0, "cpu_us": {"worker": 300.0}}
    several = {"workers": 2, **loaded, "per_second": 1_500.0}
    found = {"ratio": 1.5, "parts_us": {"append": 12.0}, "on_16_cores": 50_000}
    write(tmp_path, "workers", {"alone": loaded, "several": several, **found})

    table = tables(tmp_path)

    assert "| 1,500 and 1,000 selects/s = 1.50; p99 3.0 and 3.0 ms | met |" in table
    assert "| one process 300, worker 300, append 12 |" in table
    assert "| 50,000 selects/s |" in table


@pytest.mark.parametrize(("older", "is_met"), [(180, True), (179, False)])
def test_flips_of_the_pointer_are_answered_by_the_newest(
    older: int, is_met: bool, tmp_path: Path
) -> None:
    found = {"unsaid": 0, "lost": 0, "reused": 0, "slowest_seconds": 2.0, "whole_seconds": 1.0}
    write(tmp_path, "flips", {"flips": 200, "older": older, "pointers": 20, **found})

    table = tables(tmp_path)

    assert "20 of the pointer by the newest" in table
    assert ("**missed**" not in table) == is_met
