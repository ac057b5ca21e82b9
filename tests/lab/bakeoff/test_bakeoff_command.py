"""The command and its page: tables between marks, a figure, and errors that say what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from little_sets import BROKEN, CONSTANT, STRIPES

from fastbandit.cli.main import run as run_cli
from fastbandit.cluster.engine import SerialEngine
from fastbandit.errors import DataError
from lab.__main__ import cli
from lab.bakeoff.page import figure_of, text_of, write_into
from lab.bakeoff.results import Mean, Row
from lab.bakeoff.systems import OURS
from lab.experiments.figures import svg_of


def row(system: str, share: float | None, *, batch: int = 10, error: str | None = None) -> Row:
    mean = None if share is None else Mean(share, 0.01)
    times = (None, None) if share is None else (Mean(0.25, 0.01), Mean(1234.5, 2.0))
    return Row("stripes", 40, batch, system, 3, mean, mean, *times, int(error is not None), error)


SYSTEMS = (replace(CONSTANT, name="Exhaust TS", family=OURS), CONSTANT, BROKEN)
ROWS = (row("Constant", 0.3), row("Exhaust TS", 0.25), row("Broken", None, error="It fell."))


def test_a_table_has_the_best_first_and_says_what_failed() -> None:
    text = text_of(ROWS, [STRIPES], SYSTEMS)

    assert "**Stripes, 40 rounds, batches of 10**" in text
    assert "| Constant | 3 | 0.300 ± 0.010 | 0.300 ± 0.010 | 0.250 ± 0.010 | 1,234 ± 2 |" in text
    assert text.rindex("| Constant") < text.rindex("| Exhaust TS") < text.rindex("| Broken")
    assert "Broken: 1 failed. It fell." in text


def test_the_best_of_ours_stands_beside_the_best_of_others() -> None:
    first = text_of(ROWS, [STRIPES], SYSTEMS).split("\n\n")[0]

    assert "| Exhaust TS | Constant | 0.250 ± 0.010 | 0.300 ± 0.010 |" in first


def test_the_figure_names_sets_and_systems() -> None:
    rows = (*ROWS, row("Constant", 0.5, batch=5))

    drawn = svg_of(figure_of(rows, [STRIPES, replace(STRIPES, batch=5)], SYSTEMS))

    for words in ("Stripes, 40 by 10", "Stripes, 40 by 5", "Exhaust TS", "others"):
        assert words in drawn


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")

    with pytest.raises(DataError, match="<!-- bakeoff -->"):
        write_into(page, "text")


# -- the command


@contextmanager
def here(name: str, *, workers: int) -> Iterator[SerialEngine]:
    yield SerialEngine()


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command know one set and two systems, and work in this process."""
    where = "lab.bakeoff.command"
    monkeypatch.setattr("lab.bakeoff.sets.SETS", (STRIPES,))
    monkeypatch.setattr(f"{where}.SET_NAMES", ("stripes",))
    monkeypatch.setattr(f"{where}.SYSTEMS", (CONSTANT, BROKEN))
    monkeypatch.setattr(f"{where}.SYSTEM_NAMES", ("Constant", "Broken"))
    monkeypatch.setattr(f"{where}.engine_for", here)


def command(*args: object) -> int:
    """Run `python -m lab experiment bakeoff` in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", "bakeoff", *map(str, args)], prog_name="lab")
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.usefixtures("little")
def test_the_command_prints_a_table_and_writes_it_into_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, picture = tmp_path / "page.md", tmp_path / "pictures" / "bakeoff.svg"
    page.write_text("before\n<!-- bakeoff -->\nold\n<!-- end of bakeoff -->\nafter\n")

    code = command("--seeds", 2, "--out", tmp_path / "out", "--doc", page, "--figure", picture)

    printed, written = capsys.readouterr().out, page.read_text()
    assert code == 0
    assert "| Constant | 2 |" in printed
    assert "no such thing" in printed
    assert written.startswith("before\n<!-- bakeoff -->")
    assert "(pictures/bakeoff.svg)" in written
    assert "| Constant | 2 |" in written
    assert "old" not in written
    assert picture.read_text().startswith("<?xml")


@pytest.mark.usefixtures("little")
def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command("--systems", "Constant", "--seeds", 1, "--out", tmp_path, "--json")

    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["missing"] == []
    assert [(one["system"], one["seeds"]) for one in report["rows"]] == [("Constant", 1)]


@pytest.mark.usefixtures("little")
def test_what_was_made_is_compared_without_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("--systems", "Constant", "--seeds", 1, "--out", tmp_path)
    capsys.readouterr()

    command("--seeds", 5, "--out", tmp_path, "--made-only", "--json")

    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [(one["system"], one["seeds"]) for one in report["rows"]] == [("Constant", 1)]


@pytest.mark.usefixtures("little")
def test_an_unknown_name_is_refused_and_the_nearest_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--systems", "Constnt", "--out", tmp_path) != 0
    assert "Did you mean 'Constant'?" in capsys.readouterr().err
