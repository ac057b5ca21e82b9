"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str) -> None:
    """Print a table whose first column is text, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD)
    for column, heading in enumerate(head):
        table.add_column(heading, justify="right" if column else "left", no_wrap=not column)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


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
