"""A page takes what a check found."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fastbandit.errors import DataError
from lab.estimators.command import coverage_command
from lab.estimators.page import marks_of, write_into


def asked(command: click.Command, *args: str) -> str:
    done = CliRunner().invoke(command, args)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_a_page_without_marks_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n")

    with pytest.raises(DataError, match="needs the marks"):
        write_into(page, "speed", "new")
    assert page.read_text() == "# Page\n"


def test_what_a_check_found_goes_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page, (first, last) = tmp_path / "page.md", marks_of("coverage")
    page.write_text(f"before\n{first}\nold\n{last}\nafter\n")

    asked(coverage_command, "--logs", "1", "--write", str(page))

    text = page.read_text()
    assert text.startswith(f"before\n{first}\n\n| estimator |")
    assert text.endswith(f"\n\n{last}\nafter\n")
    assert "old" not in text
