"""A frozen bandit on disk: arrays that are mapped into memory, and a manifest.

How the folder is written and checked is told in `fastbandit.files.manifest`. Arrays are named
after the fields they come from; a folder that has others, or not all, is of another version.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fastbandit import __version__
from fastbandit.arms.ids import IdTable
from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import read_arrays, write_arrays
from fastbandit.files.mapped import Arrays
from fastbandit.runtime.columns import Columns
from fastbandit.runtime.encodings import Encoding, LinearEncoding, encoding_from
from fastbandit.runtime.live import Live
from fastbandit.runtime.parts import FrozenArms, FrozenModel, still
from fastbandit.runtime.stored_ids import StoredIds
from fastbandit.runtime.units import Units

FORMAT = 1
KIND = "frozen bandit"
_Part = TypeVar("_Part", FrozenModel, FrozenArms, StoredIds)


@dataclass(frozen=True)
class Stored:
    """What a folder holds: all that a frozen bandit is made of."""

    model: FrozenModel
    live: Live
    words: Units
    decisions: int


def write_folder(stored: Stored, folder: Path) -> None:
    """Write a frozen bandit into a folder, in place of the one it holds."""
    live = stored.live
    model = {f"model.{name}": array for name, array in stored.model.kept.items()}
    arrays = model | _live_arrays(live) | _word_arrays(stored.words)
    notes = {
        "words": _word_notes(stored.words),
        "rows": live.rows,
        "first_more": live.first_more,
        "columns": None if live.columns is None else live.columns.notes(),
        "decisions": stored.decisions,
    }
    write_arrays(folder, arrays, notes, kind=KIND, format=FORMAT)


def read_folder(folder: Path, *, verify: bool = True) -> Stored:
    """Map a frozen bandit into memory, or say why it cannot be trusted.

    `verify` reads all that lies there once, to compare it with its checksum.
    """
    notes, arrays = read_arrays(folder, kind=KIND, format=FORMAT, verify=verify)
    arrays = {name: still(array) for name, array in arrays.items()}
    try:
        model = _read_part(FrozenModel, "model", arrays)
        words = _read_words(notes["words"], arrays)
        live = _read_live(notes, arrays)
        _check_fit(model, live, notes)
        return Stored(model, live, words, int(notes["decisions"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotError(
            f"The frozen bandit in {folder} does not fit together ({type(error).__name__}: "
            f"{error}): fastbandit {notes.get('fastbandit')} wrote it, this is {__version__}. "
            f"Freeze the bandit again."
        ) from error


# -- arms


def _live_arrays(live: Live) -> Arrays:
    arrays = _arrays_of("arms", live.arms) | {"more": live.more}
    if live.live is not None:
        arrays["alive"] = live.live
    if live.columns is not None:
        arrays |= {f"columns.{name}": array for name, array in live.columns.arrays().items()}
    if not live.ids.is_numbered:
        arrays |= _arrays_of("ids", StoredIds.of(live.ids))
    return arrays


def _read_live(notes: dict[str, Any], arrays: Arrays) -> Live:
    is_numbered = not any(name.startswith("ids.") for name in arrays)
    rows, columns = int(notes["rows"]), notes["columns"]
    values = _within("columns", arrays)
    return Live(
        arms=_read_part(FrozenArms, "arms", arrays),
        ids=IdTable(count=rows) if is_numbered else _read_part(StoredIds, "ids", arrays),
        more=arrays["more"],
        first_more=int(notes["first_more"]),
        live=arrays.get("alive"),
        columns=None if columns is None else Columns.restored(columns, values, rows=rows),
    )


def _check_fit(model: FrozenModel, live: Live, notes: dict[str, Any]) -> None:
    """Check what compiled code relies on."""
    arms, rows = live.arms, int(notes["rows"])
    count, dim = arms.vectors.shape
    by_row: list[Any] = [live.ids, *([] if live.live is None else [live.live])]
    by_row += [] if live.columns is None else live.columns.arrays().values()
    is_fit = (
        {live.rows, *map(len, by_row)} == {rows}
        and {len(arms.order), len(arms.graph)} == {count}
        and {live.more.shape[1], len(model.place) - 1} == {dim}
        and model.bounds.shape in ((0, 0), (2, model.encoder.shape[1] - 1))
    )
    if not is_fit:
        raise ValueError(f"{rows} rows, {count} arms of {dim} columns, and arrays of other sizes")


# -- words


def _word_arrays(words: Units) -> Arrays:
    arrays: Arrays = {}
    for field in fields(words):
        value = getattr(words, field.name)
        if isinstance(value, Encoding | LinearEncoding):
            named = value.arrays().items()
            arrays |= {f"words.{field.name}.{name}": array for name, array in named}
        elif isinstance(value, np.ndarray):
            arrays[f"words.{field.name}"] = value
    return arrays


def _word_notes(words: Units) -> dict[str, Any]:
    values = {field.name: getattr(words, field.name) for field in fields(words)}
    return {
        name: value.note() if isinstance(value, Encoding | LinearEncoding) else value
        for name, value in values.items()
        if not isinstance(value, np.ndarray)
    }


def _read_words(notes: dict[str, Any], arrays: Arrays) -> Units:
    values: dict[str, Any] = dict(notes)
    for field in fields(Units):
        name = f"words.{field.name}"
        if name in arrays:
            values[field.name] = arrays[name]
        elif isinstance(notes[field.name], dict):
            parts = _within(name, arrays)
            values[field.name] = encoding_from(notes[field.name], parts)
    return Units(**values)


# -- parts


def _arrays_of(name: str, part: FrozenArms | StoredIds) -> Arrays:
    return {f"{name}.{field.name}": getattr(part, field.name) for field in fields(part)}


def _read_part(kind: type[_Part], name: str, arrays: Arrays) -> _Part:
    return kind(**_within(name, arrays))


def _within(name: str, arrays: Arrays) -> Arrays:
    """Give the arrays of a part, by the names they have there."""
    start = f"{name}."
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
