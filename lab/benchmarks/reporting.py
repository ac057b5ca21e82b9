"""What all benchmarks share: options, a bar over numbers of arms, and rows as tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import click

from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from lab.experiments.results import write_beside
from lab.experiments.tables import between_marks, markdown
from lab.printing import print_lines as print_lines
from lab.stamps import command_line, stamp_now

Command = TypeVar("Command", bound=Callable[..., Any])
Measured = TypeVar("Measured")
Tick = Callable[[str], None]
"""Called with what is done next."""


class Row(Protocol):
    """A dataclass of figures that can format itself for a table."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def cells(self) -> tuple[str, ...]: ...


# -- rows


def over_sizes(
    what: str, sizes: Sequence[int], measure: Callable[[int, Tick], Measured], *, steps: int
) -> list[Measured]:
    """Measure at each number of arms, with a bar; `steps` are the ticks of one of them."""
    done = count()
    with progress_bar(what) as progress:

        def at(size: int) -> Measured:
            def tick(doing: str) -> None:
                progress(next(done), steps * len(sizes), f"{size:,} arms: {doing}")

            return measure(size, tick)

        return [at(size) for size in sizes]


def print_rows(
    name: str,
    headings: Sequence[str],
    rows: Sequence[Row],
    *,
    note: str,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Print rows, as JSON or as a table, and put them into a page where one is named."""
    lines = [row.cells() for row in rows]
    if doc is not None:
        fill_doc(doc, name, headings, lines, note=note)
    if as_json:
        click.echo(json_of(rows))
    else:
        print_lines(note, headings, lines)


def json_of(rows: Sequence[Row]) -> str:
    """Format rows as JSON."""
    return json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False)


# -- pages


def fill_doc(
    path: Path, name: str, headings: Sequence[str], lines: Sequence[Sequence[str]], *, note: str
) -> None:
    """Put a table, what it was measured on and with which code between the marks of a page."""
    marks = (f"<!-- bench {name} -->", f"<!-- end of bench {name} -->")
    text = f"{note}:\n\n{markdown(headings, lines, words=0)}"
    fill_marks(path, text, marks=marks, command=f"bench {name}")


def fill_marks(path: Path, text: str, *, marks: tuple[str, str], command: str) -> None:
    """Put a text that a command measured between the two marks of a page, with its stamp."""
    stamp = stamp_now(command_line(command))
    write_beside(path, between_marks(read_doc(path), f"\n{text}\n\n{stamp}\n", marks=marks))


def check_marks(path: Path | None, *, marks: tuple[str, str]) -> None:
    """Raise unless a page, where one is named, has its marks: sooner than after a long run."""
    if path is not None:
        between_marks(read_doc(path), "", marks=marks)


def read_doc(path: Path) -> str:
    """Read a page, or say that there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(
            f"--doc needs a page with marks to write between: cannot read {path} ({error}). "
            f"Name docs/benchmarks.md, or a copy of it."
        ) from error


# -- options


def arms_option(default: str) -> Callable[[Command], Command]:
    """Make the option that names numbers of arms."""
    said = "Numbers of arms, comma-separated."
    return click.option("--arms", default=default, show_default=True, help=said)


def setup_options(command: Command) -> Command:
    """Add the options that say what is learned: features, hidden units, exploration."""
    dim = click.option(
        "--dim", default=8, show_default=True, type=click.IntRange(1), help="Features."
    )
    hidden = click.option(
        "--hidden", type=click.IntRange(1), help="Hidden units.  [default: 32; 16 for ucb]"
    )
    exploration = click.option(
        "--exploration",
        type=click.Choice(["ts", "ucb"]),
        default="ts",
        show_default=True,
        help="Thompson sampling or upper confidence.",
    )
    return dim(hidden(exploration(command)))


def seconds_option(default: float, said: str) -> Callable[[Command], Command]:
    """Make the option that says how long something is timed."""
    kind = click.FloatRange(0.0)
    return click.option("--seconds", default=default, show_default=True, type=kind, help=said)


def output_options(command: Command) -> Command:
    """Add the options that say how rows are printed."""
    doc = click.option(
        "--doc",
        type=click.Path(path_type=Path),
        help="Also put the table between the marks of this page.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
    return doc(as_json(command))
