"""Tables that checks write into a page of the docs, between marks."""

from __future__ import annotations

from pathlib import Path

from fastbandit.errors import DataError
from lab.experiments.results import write_beside
from lab.experiments.tables import between_marks
from lab.stamps import command_line, stamp_now


def marks_of(check: str) -> tuple[str, str]:
    """Return what stands in a page before and after the text of a check."""
    return f"<!-- {check}: written by python -m lab estimators -->", f"<!-- end of {check} -->"


def write_into(page: Path, check: str, text: str) -> None:
    """Put text between the marks of a check, in place of what stands there.

    The page is written beside and renamed.
    """
    marks = marks_of(check)
    whole = page.read_text(encoding="utf-8") if page.exists() else ""
    if any(whole.count(mark) != 1 for mark in marks):
        raise DataError(
            f"The page {page} needs the marks {marks[0]} and {marks[1]}, once each: some are "
            f"missing or there twice. Put them where the table belongs."
        )
    stamp = stamp_now(command_line("estimators"))
    write_beside(page, between_marks(whole, f"\n{text}\n\n{stamp}\n", marks=marks))
