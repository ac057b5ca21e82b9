"""A bar for what takes more than two seconds: on stderr, silent where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the steps in all, and what is done now."""


def silent(done: int, steps: int, doing: str) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(what: str, *, is_shown: bool | None = None) -> Iterator[Progress]:
    """Show a bar with the time left; where `is_shown` is None, only if stderr is a terminal."""
    if is_shown is None:
        is_shown = sys.stderr.isatty()
    if not is_shown:
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.speed_estimate_period = 120.0
    with bar:
        task = bar.add_task(what, total=None)

        def show(done: int, steps: int, doing: str) -> None:
            bar.update(task, completed=done, total=steps, description=f"{doing:<24}")

        yield show
