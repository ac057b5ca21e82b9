"""The size of the product is measured as a wheel has it, beside its bars."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lab import size
from lab.size import Measure, commands, imports_of_the_laboratory, lines_of, measure, size_command


def test_lines_are_counted(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "two.py").write_text("c = 3\n")

    assert lines_of(sorted(tmp_path.glob("*.py"))) == 3


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


def test_this_tree_meets_its_bars() -> None:
    assert [one.name for one in measure() if one.is_met is False] == []


def test_a_missed_bar_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "measure", lambda: [Measure("lines", 5, 4)])

    done = CliRunner().invoke(size_command, ["--json"])

    assert done.exit_code == 1
    assert json.loads(done.output)[0]["is_met"] is False
