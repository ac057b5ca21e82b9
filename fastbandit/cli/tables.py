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
