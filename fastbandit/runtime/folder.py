"""A frozen bandit on disk: arrays that are mapped into memory, and a manifest.

How the folder is written and checked: see `fastbandit.files.manifest`. Arrays are named
after the fields they come from; a folder that has others, or not all, is of another version.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fastbandit import __version__
from fastbandit.arms.arrays import read_only
from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import IdTable
from fastbandit.arms.rows import ArmRows
from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import read_arrays, write_arrays
from fastbandit.files.mapped import Arrays
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.encodings import Encoding, LinearEncoding, encoding_from
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.model_checks import check_parts, check_rows
from fastbandit.runtime.parts import FAR, STORED_AS, FrozenArms, FrozenModel
from fastbandit.runtime.stored_ids import StoredIds

FORMAT = 1
KIND = "frozen bandit"
_Part = TypeVar("_Part", FrozenModel, FrozenArms, StoredIds)


@dataclass(frozen=True)
class Stored:
    """What a folder holds: all that a frozen bandit is made of."""

    model: FrozenModel
    catalogue: FrozenCatalogue
    codec: Codec
    decisions: int


def write_folder(stored: Stored, folder: Path) -> None:
    """Write a frozen bandit into a folder, in place of the one it holds."""
    rows = stored.catalogue.rows
    model = {f"model.{name}": array for name, array in stored.model.stored.items()}
    codec, words = _written(stored.codec)
    arrays = model | _catalogue_arrays(stored.catalogue) | codec
    notes = {
        "words": words,
        "rows": rows.total,
        "first_more": stored.catalogue.first_more,
        "columns": None if rows.columns is None else rows.columns.notes(),
        "decisions": stored.decisions,
    }
    write_arrays(folder, arrays, notes, kind=KIND, format=FORMAT)


def read_folder(folder: Path, *, verify: bool = True) -> Stored:
    """Map a frozen bandit into memory, or say why it cannot be trusted.

    `verify` reads all that lies there once, to compare it with its checksum.
    """
    notes, arrays = read_arrays(folder, kind=KIND, format=FORMAT, verify=verify)
    arrays = {name: read_only(array) for name, array in arrays.items()}
    try:
        model = _read_part(FrozenModel, "model", arrays)
        codec = _read_codec(notes["words"], arrays)
        catalogue = _read_catalogue(notes, arrays)
        check_parts(model, catalogue, codec)
        return Stored(model, catalogue, codec, _decisions(notes))
    except Exception as error:  # whatever reading it brings, it is not what was written
        raise SnapshotError(
            f"The frozen bandit in {folder} does not fit together ({type(error).__name__}: "
            f"{error}): fastbandit {notes.get('fastbandit')} wrote it, this is {__version__}. "
            f"Freeze the bandit again."
        ) from error


# -- arms


def _catalogue_arrays(catalogue: FrozenCatalogue) -> Arrays:
    rows, ids = catalogue.rows, catalogue.ids
    arrays = _arrays_of("arms", catalogue.arms) | {"more": catalogue.more}
    if rows.live_count < len(catalogue.arms.order) + len(catalogue.more):
        arrays["alive"] = rows.live
    if rows.columns is not None:
        arrays |= {f"columns.{name}": array for name, array in rows.columns.arrays().items()}
    if not ids.is_numbered:
        arrays |= _arrays_of("ids", StoredIds.of(ids))
    return arrays


def _read_catalogue(notes: dict[str, Any], arrays: Arrays) -> FrozenCatalogue:
    is_numbered = not any(name.startswith("ids.") for name in arrays)
    total, first_more, columns = int(notes["rows"]), int(notes["first_more"]), notes["columns"]
    arms, values = _read_part(FrozenArms, "arms", arrays), _within("columns", arrays)
    check_rows(total, first_more, len(arrays["more"]), len(arms.order))
    live = np.zeros(total, dtype=np.bool_)
    live[arms.order], live[first_more:] = True, True
    if "alive" in arrays:
        live &= arrays["alive"]
    rows = ArmRows(
        IdTable(count=total) if is_numbered else _read_part(StoredIds, "ids", arrays).check(),
        live,
        columns=None if columns is None else Columns.restored(columns, values, rows=total),
    )
    return FrozenCatalogue(arms, rows, arrays["more"])


def _decisions(notes: dict[str, Any]) -> int:
    decisions = int(notes["decisions"])
    if not 0 <= decisions < FAR:
        raise ValueError(f"{decisions} decisions")
    return decisions


# -- the codec, which files call words


def _written(codec: Codec) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a codec by name, and all else as JSON values."""
    arrays, notes = Arrays(), dict[str, Any]()
    for name, value in ((field.name, getattr(codec, field.name)) for field in fields(codec)):
        if isinstance(value, np.ndarray):
            arrays[f"words.{name}"] = value
        elif isinstance(value, Encoding | LinearEncoding):
            arrays |= {f"words.{name}.{part}": array for part, array in value.arrays().items()}
            notes[name] = value.note()
        else:
            notes[name] = value
    return arrays, notes


def _read_codec(notes: dict[str, Any], arrays: Arrays) -> Codec:
    values: dict[str, Any] = dict(notes)
    for field in fields(Codec):
        name = f"words.{field.name}"
        if name in arrays:
            values[field.name] = arrays[name]
        elif field.name in ("context", "arm"):
            parts = _within(name, arrays)
            values[field.name] = encoding_from(notes[field.name], parts)
    return Codec(**values)


# -- parts


def _arrays_of(name: str, part: FrozenArms | StoredIds) -> Arrays:
    return {f"{name}.{field.name}": getattr(part, field.name) for field in fields(part)}


def _read_part(kind: type[_Part], name: str, arrays: Arrays) -> _Part:
    held = _within(name, arrays)
    fresh = {new: old for new, old in STORED_AS.items() if old in held}
    return kind(**{**{new: held.pop(old) for new, old in fresh.items()}, **held})


def _within(name: str, arrays: Arrays) -> Arrays:
    """Return the arrays of a part, by the names they have there."""
    start = f"{name}."
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
