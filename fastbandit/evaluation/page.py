"""Tables that checks write into a page of the docs, between marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastbandit.errors import DataError


def marks_of(check: str) -> tuple[str, str]:
    """Give what stands in a page before and after the words of a check."""
    return f"<!-- {check}: written by fastbandit evaluate -->", f"<!-- end of {check} -->"


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
    before, _, rest = whole.partition(marks[0])
    after = rest.partition(marks[1])[2]
    beside = page.with_name(f"{page.name}.part")
    beside.write_text(f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}", encoding="utf-8")
    beside.replace(page)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Give a table in Markdown; the first row is its heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])
