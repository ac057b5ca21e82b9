"""The bake-off in words and pictures: a table for each set, who leads, and a figure of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError
from lab.bakeoff.results import Mean, Row
from lab.bakeoff.sets import Set
from lab.bakeoff.systems import OURS, YARDSTICK, System
from lab.experiments.figures import Dot, draw_dots, png_of, svg_of
from lab.experiments.results import write_beside
from lab.experiments.tables import between_marks, markdown

MARKS = ("<!-- bakeoff -->", "<!-- end of bakeoff -->")
_HEAD = ("system", "seeds", "share", "last quarter", "CPU s an update", "CPU µs a decision")
_OTHERS = "others"

SetKey = tuple[str, int, int]
"""A set's name, its rounds and its batch."""


def key_of(row: Row | Set) -> SetKey:
    """Return what a row of a table is about."""
    return (row.set if isinstance(row, Row) else row.name, row.rounds, row.batch)


def title_of(key: SetKey, sets: Sequence[Set]) -> str:
    """Format a set with its rounds and its batch."""
    name, rounds, batch = key
    title = next((entry.title for entry in sets if entry.name == name), name)
    return f"{title}, {rounds:,} rounds, batches of {batch}"


def text_of(rows: Sequence[Row], sets: Sequence[Set], systems: Sequence[System]) -> str:
    """Format all rows: who leads on each set, then a table for each, the best system first."""
    families = {system.name: system.family for system in systems}
    keys = list(dict.fromkeys(map(key_of, rows)))
    parts = [_leaders(rows, keys, sets, families)]
    for key in keys:
        here = sorted((row for row in rows if key_of(row) == key), key=_by_share)
        lines = [_cells(row) for row in here]
        parts.append(f"**{title_of(key, sets)}**\n\n{markdown(_HEAD, lines, words=1)}")
        parts += [f"{row.system}: {row.failed} failed. {row.error}" for row in here if row.failed]
    return "\n\n".join(parts)


def _leaders(
    rows: Sequence[Row], keys: Sequence[SetKey], sets: Sequence[Set], families: Mapping[str, str]
) -> str:
    """Set the best of ours beside the best of all others, on each set."""
    lines = []
    for key in keys:
        known = [row for row in rows if key_of(row) == key and row.share is not None]
        known.sort(key=_by_share)
        ours = next((row for row in known if families.get(row.system) == OURS), None)
        theirs = next(
            (row for row in known if families.get(row.system) not in (OURS, YARDSTICK)), None
        )
        both = (ours, theirs)
        names = ("–" if row is None else row.system for row in both)
        shares = (worded(None if row is None else row.share) for row in both)
        lines.append([title_of(key, sets), *names, *shares])
    return markdown(("set", "best of ours", "best of others", "ours", "others"), lines, words=3)


def _by_share(row: Row) -> float:
    return 1.0 if row.share is None else -row.share.value


def _cells(row: Row) -> list[str]:
    return [
        row.system,
        str(row.seeds),
        worded(row.share),
        worded(row.last_quarter),
        worded(row.update_cpu_seconds),
        worded(row.decision_cpu_us),
    ]


def worded(mean: Mean | None) -> str:
    """Format a mean with its standard error, with three decimals and none above a hundred."""
    if mean is None:
        return "–"
    decimals = 3 if mean.value < 1 else 2 if mean.value < 10 else 1 if mean.value < 100 else 0
    form = f",.{decimals}f"
    error = "" if mean.error is None else f" ± {mean.error:{form}}"
    return f"{mean.value:{form}}{error}"


def figure_of(rows: Sequence[Row], sets: Sequence[Set], systems: Sequence[System]) -> Any:
    """Draw the share of every system on each set, those of other libraries in one lane."""
    named = [system.name for system in systems if system.family in (OURS, YARDSTICK)]
    lanes = [*named, _OTHERS]
    keys = list(dict.fromkeys(map(key_of, rows)))
    known = [row for row in rows if row.share is not None]
    dots = [_dot(row, sets, policy=row.system if row.system in named else _OTHERS) for row in known]
    both = sorted(
        zip(known, dots, strict=True),
        key=lambda one: (keys.index(key_of(one[0])), lanes.index(one[1].policy)),
    )
    return draw_dots([dot for _, dot in both], xlabel="Share of the best possible reward")


def _dot(row: Row, sets: Sequence[Set], *, policy: str) -> Dot:
    assert row.share is not None
    name, rounds, batch = key_of(row)
    title = next((entry.title for entry in sets if entry.name == name), name)
    value, half = row.share.value, row.share.error
    low, high = (None, None) if half is None else (value - half, value + half)
    return Dot(f"{title}, {rounds:,} by {batch}", policy, value, low, high)


def write_figure(path: Path, figure: Any) -> None:
    """Write a figure as SVG or PNG, as the name of its file says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        path.write_bytes(png_of(figure))
    else:
        write_beside(path, svg_of(figure))


def write_into(page: Path, text: str, *, marks: tuple[str, str] = MARKS) -> None:
    """Put text between the marks of a page, in place of what stands there."""
    whole = page.read_text(encoding="utf-8") if page.exists() else ""
    if any(whole.count(mark) != 1 for mark in marks):
        raise DataError(
            f"The page {page} needs the marks {marks[0]} and {marks[1]}, once each: some are "
            f"missing or there twice. Put them where the table belongs."
        )
    write_beside(page, between_marks(whole, f"\n{text}\n", marks=marks))
