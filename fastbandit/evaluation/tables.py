"""Logs in Parquet or CSV, one row a round, read into columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, DuplicateArmError, SettingError, UnknownArmError
from fastbandit.evaluation.flags import Levels, encode, row_name
from fastbandit.evaluation.readers import LogColumns
from fastbandit.evaluation.rounds import (
    Floats,
    LoggedRounds,
    Rows,
    check_propensities,
    check_rewards,
)
from fastbandit.evaluation.table_files import Column, read_columns
from fastbandit.features.csv_files import is_number
from fastbandit.features.table_files import header_of, is_parquet

_CONTEXTS = ("context", "context_*", "x_*", "user_feature_*")
_USUAL_NAMES = {
    "arm": ("arm", "arms", "action", "item_id"),
    "reward": ("reward", "click"),
    "propensity": ("propensity", "propensities", "propensity_score", "pscore", "probability"),
}
WAITING = "come with or after the first that waits for its reward"
UNLIKELY = "do not say how likely their arm was"
LISTED = "were made among eligible arms only"
UNTAKEN = "arms that were never taken are not known"
_OURS = {"decision", "eligible", "until"}  # columns that an export of a service has
_WHOLE = re.compile("0|-?[1-9][0-9]*")
NO_LEVELS: Levels = MappingProxyType({})


def read_table(path: Path, asked: LogColumns, *, arms: Path | None = None) -> LoggedRounds:
    """Read a log; columns that are not named are looked for by the usual names.

    A column of lists is the context itself, or holds slates whose first arm counts. A file that
    `fastbandit export` wrote is read up to the first decision that waits for its reward.
    """
    header = header_of(path)
    levels = asked.levels
    arm, reward, propensity = (_find(what, asked, header, path) for what in _USUAL_NAMES)
    columns = _match(asked.context or _usual(header), header, path, but=[arm, reward, propensity])
    _check_levels(levels, columns, arms)
    is_ours = set(header) >= _OURS
    table = read_columns(
        path,
        [*dict.fromkeys([*columns, arm, reward, propensity, *["eligible"] * is_ours])],
        texts={arm, *levels},
        firsts={arm, propensity},
    )
    rows: Rows = np.arange(1, len(table[arm]) + 1)
    notes: tuple[str, ...] = ()
    if is_ours:
        rows, notes = _of_export(table, reward=reward, propensity=propensity, path=path)
        table = {column: values[rows - 1] for column, values in table.items()}
    encoded = encode(table, columns, path, levels=levels, rows=rows)
    ids, vectors, chosen = _read_ids(table[arm], arm, path, rows=rows, arms=arms, asked=asked)
    rewards, propensities = _read_outcomes(table, reward, propensity, path=path, rows=rows)
    return LoggedRounds(
        contexts=encoded.values,
        chosen=chosen,
        rewards=rewards,
        propensities=propensities,
        arms=len(ids),
        vectors=vectors,
        ids=ids,
        levels=encoded.levels,
        notes=(*notes, *encoded.notes, *[UNTAKEN] * (arms is None)),
    )


def read_arms(
    path: Path, arm: str, *, is_text: bool = False, levels: Levels = NO_LEVELS
) -> tuple[list[Any], NDArray[np.float32] | None]:
    """Return the ids of arms (in the column `arm`, or the first), and their features.

    Ids of a CSV file are numbers where all of them are whole, and written as numbers are.
    """
    header = header_of(path)
    name = arm if arm in header else header[0]
    others = [column for column in header if column != name]
    table = read_columns(path, header, texts={name, *levels}, firsts={name})
    ids = _ids_of(table[name], name, path, is_text=is_text).tolist()
    twice, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise DuplicateArmError(
            f"A table of arms needs each id once: {path} has {twice!r} twice in the column "
            f"{name!r}. Drop or rename one of the two."
        )
    return ids, encode(table, others, path, levels=levels).values if others else None


# -- ids


def _read_ids(
    taken: Column,
    column: str,
    path: Path,
    *,
    rows: Rows,
    arms: Path | None,
    asked: LogColumns,
) -> tuple[list[Any], NDArray[np.float32] | None, Rows]:
    """Return the ids of all arms, their features, and which of them were taken.

    Ids in CSV have no type of their own: the log and the table of arms agree on one.
    """
    found = _ids_of(taken, column, path, is_text=asked.is_text, rows=rows)
    if arms is None:
        ids, chosen = rows_of(found, None, None)
        return ids, None, chosen
    known, vectors = read_arms(arms, column, is_text=found.dtype.kind == "U", levels=asked.levels)
    if isinstance(known[0], str) and not is_parquet(path):
        found = taken
    return known, vectors, rows_of(found, known, arms)[1]


def _ids_of(
    values: Column, column: str, path: Path, *, is_text: bool, rows: Rows | None = None
) -> Column:
    """Return ids as texts or numbers; those of a CSV file are numbers where none would change."""
    is_missing = values == "" if values.dtype.kind == "U" else values != values
    if is_missing.any():
        first = row_name(int(np.argmax(is_missing)), rows)
        raise DataError(
            f"{path} needs the id of an arm in every row of the column {column!r}: {first} has "
            f"none ({int(is_missing.sum()):,} such). Fill or drop such rows."
        )
    if is_text or is_parquet(path) or not all(map(_is_whole, np.unique(values).tolist())):
        return values.astype(str) if is_text else values
    return values.astype(np.int64)


def _is_whole(text: str) -> bool:
    return _WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def rows_of(taken: Column, ids: list[Any] | None, arms: Path | None) -> tuple[list[Any], Rows]:
    """Return the ids of all arms, and the row of each that was taken."""
    levels, numbers = np.unique(taken, return_inverse=True)
    if ids is None:
        return levels.tolist(), numbers.reshape(-1).astype(np.int64)
    row_of = {id: row for row, id in enumerate(ids)}
    missing = next((id for id in levels.tolist() if id not in row_of), None)
    if missing is not None:
        raise UnknownArmError(
            f"{arms} needs every arm that was taken: the log has {missing!r}, which is not in it. "
            f"Add it, or drop those rounds."
        )
    rows = np.array([row_of[id] for id in levels.tolist()], dtype=np.int64)
    return ids, rows[numbers.reshape(-1)]


# -- which columns


def _find(what: str, asked: LogColumns, header: Sequence[str], path: Path) -> str:
    named = getattr(asked, what)
    wanted = _USUAL_NAMES[what] if named is None else (named,)
    found = next((column for column in wanted if column in header), None)
    if found is not None:
        return found
    if what == "propensity" and named is None:
        raise DataError(
            f"{path} needs a column of propensities, how likely the arm was that was taken: found "
            f"{_some(header)}. Name it with --propensity (propensity= in Python); if every arm was "
            f"equally likely, add one that holds 1 / arms."
        )
    raise DataError(
        f"{path} needs a column {' or '.join(map(repr, wanted))}: found {_some(header)}. Name the "
        f"column of the {what} with --{what} ({what}= in Python)."
    )


def _usual(header: Sequence[str]) -> Sequence[str]:
    found = [p for p in _CONTEXTS if any(fnmatchcase(column, p) for column in header)]
    return found or _CONTEXTS[:1]


def _match(
    patterns: Sequence[str], header: Sequence[str], path: Path, *, but: Sequence[str]
) -> list[str]:
    """Return the columns that names and patterns stand for; outcomes are none of them."""
    found: list[str] = []
    for pattern in patterns:
        matched = [c for c in header if fnmatchcase(c, pattern) and c not in but]
        if not matched:
            raise DataError(
                f"{path} needs columns of the context such as {pattern!r}: found {_some(header)}. "
                f"Name them with --context (context= in Python); none may be the arm, the reward "
                f"or the propensity."
            )
        found += matched
    return list(dict.fromkeys(found))


def _some(header: Sequence[str]) -> str:
    return ", ".join(header[:40]) + (f" and {len(header) - 40} more" if len(header) > 40 else "")


# -- columns


def _check_levels(levels: Levels, columns: Sequence[str], arms: Path | None) -> None:
    known = [*columns, *([] if arms is None else header_of(arms))]
    other = next((column for column in levels if column not in known), None)
    if other is not None:
        raise SettingError(
            f"Levels need a column of the context or of the arms: got {other!r}, and these are "
            f"{_some(known)}. Name one of them."
        )
    wrong = next((c for c, names in levels.items() if isinstance(names, str) or not names), None)
    if wrong is not None:
        raise SettingError(
            f"The levels of a column need to be a list of its texts: got {levels[wrong]!r} for "
            f"{wrong!r}. Give one such as ['Oslo', 'Rome']."
        )


def _of_export(
    table: dict[str, Column], *, reward: str, propensity: str, path: Path
) -> tuple[Rows, tuple[str, ...]]:
    """Return the rows of a service's export, from 1 on, that `read_service` would read."""
    is_waiting = np.isnan(table[reward].astype(np.float64))
    is_late = np.maximum.accumulate(is_waiting)
    is_unlikely = ~is_late & np.isnan(table[propensity].astype(np.float64))
    is_listed = ~is_late & ~is_unlikely & (table["eligible"] != "")
    is_used = ~(is_late | is_unlikely | is_listed)
    if not is_used.any():
        raise DataError(
            f"{path} needs decisions with a reward and a propensity: it has none in "
            f"{len(is_used)} rows. Select with propensity: true, and send the rewards."
        )
    left_out = ((WAITING, is_late), (UNLIKELY, is_unlikely), (LISTED, is_listed))
    counts = {why: int(which.sum()) for why, which in left_out}
    return np.flatnonzero(is_used) + 1, left_out_notes(counts)


def left_out_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Say how many decisions were left out, for each reason that has some."""
    return tuple(
        f"decisions that {why} are left out ({count:,})"
        for why, count in counts.items()
        if why and count
    )


def _read_outcomes(
    table: dict[str, Column], reward: str, propensity: str, *, path: Path, rows: Rows
) -> tuple[Floats, Floats]:
    """Return rewards and propensities; an error names the row of the file."""
    rewards, propensities = (_numbers(table[c], c, path, rows) for c in (reward, propensity))

    def where(number: int) -> str:
        return f"{row_name(number, rows)} of {path}"

    check_rewards(rewards, where=where)
    check_propensities(propensities, rewards, where=where)
    return rewards, propensities


def _numbers(values: Column, column: str, path: Path, rows: Rows) -> Floats:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    first = next((n for n, text in enumerate(values.tolist()) if not is_number(text)), 0)
    raise DataError(
        f"{path} needs numbers in the column {column!r}: found {str(values[first])!r} in "
        f"{row_name(first, rows)}. Name another column, or mend this one."
    )
