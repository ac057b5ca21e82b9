"""The size of the product is measured as a wheel has it, beside its bars."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lab import size
from lab.size import (
    BEFORE,
    GOLDEN,
    MARKS,
    PAGE,
    Measure,
    asked_for,
    commands,
    imports_of_the_laboratory,
    measure,
    rows_of,
    size_command,
    table,
    with_table,
)


@pytest.fixture(scope="module")
def measured() -> list[Measure]:
    return measure()


def test_an_import_of_the_laboratory_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("def f():\n    from lab.size import measure\n    import lab\nimport labour\n")

    assert imports_of_the_laboratory([path]) == 2


def test_commands_below_groups_are_counted() -> None:
    @click.group()
    def outer() -> None: ...

    @outer.group()
    def inner() -> None: ...

    inner.add_command(click.Command("one"))
    outer.add_command(click.Command("two"))

    assert sorted(commands(outer, click.Context(outer))) == ["inner one", "two"]


@pytest.mark.parametrize(("value", "bar", "is_met"), [(3, 3, True), (4, 3, False), (4, None, None)])
def test_a_bar_is_met_or_missed(value: float, bar: float | None, is_met: bool | None) -> None:
    assert Measure("it", value, bar).is_met is is_met


@pytest.mark.parametrize(("value", "is_met"), [(0.96, True), (0.94, False)])
def test_a_ratio_needs_to_be_large(value: float, is_met: bool) -> None:
    assert Measure("it", value, 0.95, is_least=True).is_met is is_met


def test_a_number_that_could_not_be_had_misses_its_bar() -> None:
    lacking = Measure("it", float("nan"), 1)

    assert lacking.is_met is False
    assert lacking.number() == "–"


NOT_YET = {"lines of Python in the wheel": 61_250}
"""Bars that are missed, and reported as such, with the most that they may be meanwhile."""


def test_this_tree_meets_its_bars(measured: list[Measure]) -> None:
    missed = [one for one in measured if one.is_met is False]

    assert [one.name for one in missed if one.value > NOT_YET.get(one.name, 0)] == []


def test_the_table_of_the_page_has_the_rows_that_are_measured(measured: list[Measure]) -> None:
    held = [one.name for one in measured if one.bar is not None]

    slow = [one.name for one in asked_for()]
    assert rows_of(PAGE.read_text("utf-8")) == [*held, *slow], "Run: python -m lab size --write"


def test_what_was_before_belongs_to_a_row(measured: list[Measure]) -> None:
    assert set(BEFORE) <= {one.name for one in measured}


def test_a_table_stands_between_the_marks_of_a_page() -> None:
    start, end = MARKS
    found = [Measure("lines", 1234, 4000), Measure("files", 3)]

    page = with_table(f"before\n{start}old\n{end}\nafter", found)

    assert page == f"before\n{start}{table(found)}{end}\nafter"
    assert rows_of(page) == ["lines", *(one.name for one in asked_for())]
    assert "| lines | – | 1,234 | ≤ 4,000 |\n" in page


def test_a_row_that_takes_minutes_stays_until_it_is_measured_again() -> None:
    start, end = MARKS
    page = with_table(f"{start}{end}", [Measure("lines", 1, 4), Measure(GOLDEN, 1, 0)])

    again = with_table(page, [Measure("lines", 2, 4)])

    assert "| lines | – | 2 |" in again
    assert f"| {GOLDEN} | – | 1 | ≤ 0 |\n" in again
    assert f"| {GOLDEN} | – | 0 |" in with_table(again, [Measure(GOLDEN, 0, 0)])


def test_a_missed_bar_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Measure("lines", 5, 4, counted=("one.py has 5",)), Measure("parts", float("nan"), 1)]
    monkeypatch.setattr(size, "measure", lambda: found)

    done = CliRunner().invoke(size_command, ["--json"])

    first, second = json.loads(done.output)
    assert done.exit_code == 1
    assert first["is_met"] is False
    assert first["counted"] == ["one.py has 5"]
    assert second["value"] is None
