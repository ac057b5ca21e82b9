"""Numbers on a terminal: tables of them, and times with their units."""

from __future__ import annotations

from collections.abc import Sequence


def print_lines(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table of numbers, with its title above."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    columns = zip(headings, zip(*lines, strict=True), strict=True)
    widths = [max(map(len, [*column, *heading.split()])) for heading, column in columns]
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", width=width)
    for line in lines:
        table.add_row(*line)
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, sum(widths) + 3 * len(widths) + 1)
    console.print(title)
    console.print(table)


def format_seconds(seconds: float) -> str:
    """Return a time as text, with three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size:
            number = f"{seconds / size:.3g}"
            return f"{seconds:,.0f} s" if "e" in number else f"{number} {unit}"
    return f"{seconds:.3g} s"
