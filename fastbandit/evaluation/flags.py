"""Columns side by side as numbers: a text becomes flags, one for each level of its column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.evaluation.rounds import Rows
from fastbandit.evaluation.table_files import Column
from fastbandit.features.csv_files import is_number

Levels = Mapping[str, Sequence[str]]
"""The texts of columns, in the order of their flags."""
_MOST_LEVELS = 100
_FEW_LEVELS = 20  # so many may be in a short table, in which each row has another
_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Encoded:
    """Columns as numbers (n, C), the levels of those that are texts, and what to know of them."""

    values: NDArray[np.float32]
    levels: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def encode(
    table: Mapping[str, Column],
    columns: Sequence[str],
    path: Path,
    *,
    levels: Levels,
    rows: Rows | None = None,
) -> Encoded:
    """Put columns side by side; those with `levels` are texts, and any other text is no flag.

    `rows` are the rows of the file, from 1 on, where some of them were left out.
    """
    parts, found, notes = [], {}, []
    for column in columns:
        values = table[column]
        if column not in levels and values.dtype.kind in "fiub":
            parts.append(_numbers(values, column, path, rows=rows))
            continue
        texts = values.astype(str)
        if texts.ndim > 1:
            raise DataError(
                f"{path} needs numbers, texts or lists of numbers in the column {column!r}: it "
                f"has lists of texts. Turn them into numbers, or leave it out."
            )
        if column not in levels:
            _check_texts(texts, column, path, rows=rows)
        names = tuple(levels[column] if column in levels else np.unique(texts).tolist())
        flags = _flags(texts, names)
        others = int((~flags.any(axis=1)).sum())
        parts.append(flags)
        found[column] = names
        notes += [_note(column, names), *([_other_note(column, others)] if others else [])]
    return Encoded(np.concatenate(parts, axis=1), found, tuple(notes))


def row_name(number: int, rows: Rows | None) -> str:
    """Name a row of a file, from 1 on, its header not counted."""
    return f"row {number + 1 if rows is None else int(rows[number])}"


def _flags(texts: Column, names: Sequence[str]) -> NDArray[np.float32]:
    seen, numbers = np.unique(texts, return_inverse=True)
    made = (seen[:, None] == np.array(names)[None, :]).astype(np.float32)
    return np.asarray(made[numbers.reshape(-1)])


def _note(column: str, names: Sequence[str]) -> str:
    shown = ", ".join(f"{column}={name}" for name in names[:20])
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"texts of {column} are flags: {shown}{more}"


def _other_note(column: str, count: int) -> str:
    rows = "1 row has" if count == 1 else f"{count:,} rows have"
    return f"{rows} a text of {column} that is none of its levels: all of its flags are 0 there"


# -- checks


def _numbers(values: Column, column: str, path: Path, *, rows: Rows | None) -> NDArray[np.float32]:
    """Return numbers as (n, d) in single precision, where each of them fits."""
    wide = values.reshape(len(values), -1)
    is_wrong = ~(np.abs(wide.astype(np.float64)) <= _MOST)
    wrong = np.flatnonzero(is_wrong.any(axis=1))
    if len(wrong):
        value = wide[wrong[0]][is_wrong[wrong[0]]][0]
        came = "has none" if np.isnan(value) else f"has {value:g}"
        raise DataError(
            f"{path} needs a number up to {_MOST:.1e} in every row of the column {column!r}: "
            f"{row_name(int(wrong[0]), rows)} {came} ({len(wrong)} such). Fill or drop such rows."
        )
    return wide.astype(np.float32)


def _check_texts(texts: Column, column: str, path: Path, *, rows: Rows | None) -> None:
    """Reject texts that are no levels: numbers with some slips, or another in nearly every row."""
    names, counts = np.unique(texts, return_counts=True)
    are_numbers = np.array([is_number(name) for name in names.tolist()])
    numbers, filled = int(counts[are_numbers].sum()), int(counts[names != ""].sum())
    if 2 * numbers > filled:
        slips = np.flatnonzero((texts != "") & ~np.isin(texts, names[are_numbers]))
        slip = f"{row_name(int(slips[0]), rows)} is {str(texts[slips[0]])!r}" if len(slips) else ""
        raise DataError(
            f"{path} needs numbers, or texts, in the column {column!r}: {numbers:,} of {filled:,} "
            f"values are numbers, and {slip or 'all are written as texts'}. Mend or drop such "
            f"rows, or leave the column out; if all are names, list them with --levels (levels= "
            f"in Python)."
        )
    if len(names) > min(_MOST_LEVELS, max(_FEW_LEVELS, len(texts) // 2)):
        raise DataError(
            f"{path} needs at most {_MOST_LEVELS} different texts in a column of features, and "
            f"fewer than one for every two rows: {column!r} has {len(names):,} in {len(texts):,} "
            f"rows, such as {str(names[0])!r}. Turn them into numbers, leave the column out, or "
            f"list those that count with --levels (levels= in Python)."
        )
