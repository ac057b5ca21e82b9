"""The figures in the tables of a Markdown page, each with its row, its column and its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NUMBER = re.compile(
    r"(?P<value>-?[\d,]*\.?\d+(?:e[-+]?\d+)?)"
    r"(?: ± (?P<error>[\d,]*\.?\d+))?"
    r"(?: ?(?:ns|µs|ms|s|tables|×|%))?"
)
_BETWEEN = re.compile(r"(?<!\\)\|")
_MARK = re.compile(r"<!-- (?P<text>.+?) -->")


@dataclass(frozen=True)
class Number:
    """A number as it is shown: what follows ±, and half of its last digit."""

    value: float
    error: float | None
    rounding: float


@dataclass(frozen=True)
class Place:
    """Where a table stands: its page, the heading, bold title and mark above it."""

    page: str
    heading: str = ""
    title: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Figure:
    """A cell of a table that is a number, and the table it stands in."""

    place: Place
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row: int
    column: int

    @property
    def text(self) -> str:
        return self.rows[self.row][self.column]

    @property
    def number(self) -> Number:
        found = read_number(self.text)
        assert found is not None
        return found

    @property
    def name(self) -> str:
        """The first cell of its row."""
        return self.rows[self.row][0]

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.headings[self.column]

    def beside(self, heading: str) -> str:
        """Return what stands in another column of its row."""
        return self.rows[self.row][self.headings.index(heading)]


def read_number(text: str) -> Number | None:
    """Read a cell; None where it is no number, or says more than one."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    shown = found["value"].replace(",", "")
    digits, _, power = shown.partition("e")
    scale = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    error = None if found["error"] is None else float(found["error"].replace(",", ""))
    return Number(float(shown), error, 0.5 * scale)


def figures_in(text: str, *, page: str) -> list[Figure]:
    """Return the figures of a page: all numbers of its tables but those in a first column."""
    return [
        Figure(place, headings, rows, row, column)
        for place, headings, rows in _tables(text, page)
        for row, cells in enumerate(rows)
        for column in range(1, len(cells))
        if read_number(cells[column]) is not None
    ]


def pages_of(root: Path) -> dict[str, str]:
    """Return the pages of the project that have tables, by name."""
    paths = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}


def _tables(
    text: str, page: str
) -> Iterator[tuple[Place, tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    heading = title = mark = ""
    lines: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("| "):
            cells = _BETWEEN.split(line.strip().removeprefix("|").removesuffix("|"))
            lines.append(tuple(cell.strip() for cell in cells))
            continue
        if len(lines) > 2:
            width = len(lines[0])
            rows = tuple((*cells, *[""] * (width - len(cells)))[:width] for cells in lines[2:])
            yield Place(page, heading, title, mark), lines[0], rows
        lines = []
        if found := _MARK.fullmatch(line.strip()):
            mark = "" if found["text"].startswith("end of") else found["text"]
        elif line.startswith("#"):
            heading, title = line.lstrip("# "), ""
        elif line.startswith("**") and line.endswith("**"):
            title = line.strip("*")
