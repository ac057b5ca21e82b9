"""Rows are printed as tables, as JSON, and between the marks of a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastbandit.errors import SettingError
from lab.benchmarks.reporting import (
    Tick,
    check_marks,
    over_sizes,
    print_lines,
    print_rows,
    read_doc,
)
from lab.experiments.sizes import sizes_of
from lab.stamps import stamp_now


@dataclass(frozen=True)
class Row:
    arms: int

    def cells(self) -> tuple[str, ...]:
        return (f"{self.arms:,}",)


def test_each_number_of_arms_is_measured() -> None:
    measured: list[tuple[int, Tick]] = []

    def measure(size: int, tick: Tick) -> int:
        measured.append((size, tick))
        tick("something")
        return 2 * size

    assert over_sizes("Test", [3, 4], measure, steps=1) == [6, 8]
    assert [size for size, _ in measured] == [3, 4]


def test_json_is_all_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows("x", ("arms",), [Row(1000)], note="A note", doc=None, as_json=True)

    assert json.loads(capsys.readouterr().out) == [{"arms": 1000}]


def test_a_table_is_printed_below_its_note(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows("x", ("arms",), [Row(1000)], note="A note", doc=None, as_json=False)

    printed = capsys.readouterr().out
    assert printed.startswith("A note\n")
    assert "1,000" in printed


def test_a_page_is_filled_between_its_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench x -->\nold\n<!-- end of bench x -->\nafter\n")

    print_rows("x", ("arms",), [Row(1000)], note="A note", doc=page, as_json=False)

    stamp = stamp_now("python -m lab bench x")
    assert page.read_text() == (
        "before\n<!-- bench x -->\n\nA note:\n\n| arms |\n| --: |\n| 1,000 |\n\n"
        f"{stamp}\n\n<!-- end of bench x -->\nafter\n"
    )


def test_a_page_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="--doc needs a page"):
        read_doc(tmp_path / "none.md")


def test_numbers_of_arms_are_sorted_and_each_is_taken_once() -> None:
    assert sizes_of("100,10, 100") == [10, 100]


@pytest.mark.parametrize("text", ["", "ten", "0", "5,-1"])
def test_what_is_no_number_of_arms_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="--arms needs whole numbers"):
        sizes_of(text)


def test_a_table_too_wide_for_the_terminal_is_not_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    headings = [f"heading{number}" for number in range(20)]

    print_lines("A title", headings, [["1,000,000"] * 20])

    printed = capsys.readouterr().out
    assert printed.count("1,000,000") == 20
    assert "heading19" in printed


def test_marks_are_checked_before_a_long_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks", encoding="utf-8")

    check_marks(None, marks=("<a>", "<b>"))
    with pytest.raises(SettingError, match="<a>"):
        check_marks(page, marks=("<a>", "<b>"))
