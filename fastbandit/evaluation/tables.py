"""Logs in Parquet or CSV, one row a round: contexts by name, arms that were taken, rewards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, DuplicateArmError, SettingError, UnknownArmError
from fastbandit.evaluation.log_columns import NAMED, OURS, LogColumns, columns_in, some
from fastbandit.evaluation.rounds import (
    Floats,
    LoggedRounds,
    Rows,
    check_propensities,
    check_rewards,
)
from fastbandit.evaluation.table_files import (
    Column,
    check_numbers,
    first_of,
    numbers_of,
    read_columns,
)
from fastbandit.features.columns import Column as ColumnKind
from fastbandit.features.schema import Schema
from fastbandit.features.table_files import header_of, is_parquet
from fastbandit.features.tables import Table

WAITING = "come with or after the first that waits for its reward"
UNLIKELY = "do not say how likely their arm was"
LISTED = "were made among eligible arms only"
UNTAKEN = "arms that were never taken are not known"
_WHOLE = re.compile("0|-?[1-9][0-9]*")
_MOST = float(np.finfo(np.float32).max)
Kinds = Mapping[str, str | ColumnKind]


@dataclass(frozen=True, eq=False)
class LogTable:
    """A log as its file has it: contexts by name, ids as they are written, and numbers.

    `rows` are those of the file, from 1 on, that count; `times` are as they are written.
    """

    path: Path
    arm: str
    contexts: Table
    taken: Column
    rewards: Floats
    propensities: Floats | None
    rows: Rows
    times: Column | None = None
    notes: tuple[str, ...] = ()

    def chosen(self, ids: Sequence[Any], *, arms: Path) -> Rows:
        """Return the rows of the arms that were taken, among all arms in a table of them."""
        found = _ids_of(self.taken, self.arm, self.path, is_text=False, rows=self.rows)
        if isinstance(ids[0], str) and not is_parquet(self.path):
            found = self.taken
        return rows_of(found, list(ids), arms)[1]


def read_log_table(path: Path, asked: LogColumns, *, is_judged: bool = True) -> LogTable:
    """Read the columns of a log that are named, or have the usual names.

    Of one that is not to be judged, propensities may be missing, and all other columns are those
    of the context.
    """
    header = header_of(path)
    found = columns_in(header, path, asked, is_judged=is_judged)
    is_ours = set(header) >= OURS
    single = [found.arm, found.reward, *filter(None, [found.propensity, found.time])]
    table = read_columns(path, [*dict.fromkeys([*found.context, *single, *["eligible"] * is_ours])])
    rewards = check_numbers(path, found.reward, table)
    propensities = None
    if found.propensity is not None:
        propensities = check_numbers(path, found.propensity, table)
    rows: Rows = np.arange(1, table.rows + 1)
    notes: tuple[str, ...] = ()
    if is_ours and propensities is not None:
        eligible = first_of(table, "eligible")
        rows, notes = _of_export(rewards, propensities, eligible, path=path, is_judged=is_judged)
    places = rows - 1
    if propensities is not None and not is_judged and np.isnan(propensities[places]).any():
        propensities = None  # what was learned cannot be judged by them
    before = NAMED if is_ours else ""
    columns = {name.removeprefix(before): table.columns[name] for name in found.context}
    contexts = Table(columns, table.rows, table.is_text)
    log = LogTable(
        path=path,
        arm=found.arm,
        contexts=contexts if len(rows) == table.rows else _taken(contexts, places),
        taken=first_of(table, found.arm)[places],
        rewards=rewards[places],
        propensities=None if propensities is None else propensities[places],
        rows=rows,
        times=None if found.time is None else first_of(table, found.time)[places],
        notes=notes,
    )
    _check_outcomes(log)
    return log


def _taken(table: Table, places: Rows) -> Table:
    """Return some rows; columns of numbers stay arrays."""
    columns: dict[str, Any] = {}
    for name in table.names:
        wide = None if table.is_text else numbers_of(table, name)
        if wide is None or wide.shape[1] == 1:
            columns[name] = table.take(places).columns[name] if wide is None else wide[places, 0]
        else:
            columns[name] = wide[places]
    return Table(columns, len(places), table.is_text)


def read_table(path: Path, asked: LogColumns, *, arms: Path | None = None) -> LoggedRounds:
    """Read a log; columns that are not named are looked for by the usual names.

    A column of lists is the context itself, or holds slates whose first arm counts. A file that
    `fastbandit export` wrote is read up to the first decision that waits for its reward.
    """
    log = read_log_table(path, asked)
    _check_kinds(asked.kinds, [*log.contexts.names, *([] if arms is None else header_of(arms))])
    contexts, schema = encoded(log.contexts, path, schema=asked.schema, kinds=asked.kinds)
    ids, vectors, chosen = _read_ids(log, arms=arms, asked=asked)
    is_inferred = schema is not None and asked.schema is None
    return LoggedRounds(
        contexts=contexts,
        chosen=chosen,
        rewards=log.rewards,
        propensities=log.propensities,
        arms=len(ids),
        vectors=vectors,
        ids=ids,
        schema=schema,
        notes=(
            *log.notes,
            *(_notes(schema) if is_inferred and schema is not None else ()),
            *[UNTAKEN] * (arms is None),
        ),
    )


def encoded(
    table: Table, path: Path, *, schema: Schema | None = None, kinds: Kinds | None = None
) -> tuple[NDArray[np.float32], Schema | None]:
    """Return named columns as numbers, and the schema that says so.

    That is the one given. Without, and where nothing is said of `kinds`, columns of numbers alone
    stand side by side as they are, with no schema; else it is inferred.
    """
    own = {name: kind for name, kind in (kinds or {}).items() if name in table.columns}
    if schema is None and not own:
        parts = [numbers_of(table, name) for name in table.names]
        if all(part is not None and _fits(part) for part in parts):
            side_by_side = np.concatenate([part for part in parts if part is not None], axis=1)
            return side_by_side.astype(np.float32), None
    try:
        schema = Schema.infer(table, kinds=own) if schema is None else schema
        return schema.encode(table, what=f"rows of {path}"), schema
    except SettingError as error:
        raise DataError(
            f"{path} needs columns of features that say something: {', '.join(table.names)} do "
            f"not ({error}). Name others, or what they mean with --kind."
        ) from error


def _fits(numbers: NDArray[np.float64]) -> bool:
    return bool((np.abs(numbers) <= _MOST).all())


def _notes(schema: Schema) -> list[str]:
    """Say what columns were taken for, where it was inferred."""
    return [
        f"{name} is taken as {kind}: {says}"
        for name, kind, says, _ in schema.rows()
        if kind not in ("number", "flag", "vector")
    ]


def read_arms(
    path: Path, arm: str, *, is_text: bool = False, kinds: Kinds | None = None
) -> tuple[list[Any], NDArray[np.float32] | None]:
    """Return the ids of arms (in the column `arm`, or the first), and their features.

    Ids of a CSV file are numbers where all of them are whole, and written as numbers are.
    """
    header = header_of(path)
    name = arm if arm in header else header[0]
    table = read_columns(path, header)
    ids = _ids_of(first_of(table, name), name, path, is_text=is_text).tolist()
    twice, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise DuplicateArmError(
            f"A table of arms needs each id once: {path} has {twice!r} twice in the column "
            f"{name!r}. Drop or rename one of the two."
        )
    features = table.without([name])
    return ids, encoded(features, path, kinds=kinds)[0] if features.names else None


# -- ids


def _read_ids(
    log: LogTable, *, arms: Path | None, asked: LogColumns
) -> tuple[list[Any], NDArray[np.float32] | None, Rows]:
    """Return the ids of all arms, their features, and which of them were taken.

    Ids in CSV have no type of their own: the log and the table of arms agree on one.
    """
    found = _ids_of(log.taken, log.arm, log.path, is_text=asked.is_text, rows=log.rows)
    if arms is None:
        ids, chosen = rows_of(found, None, None)
        return ids, None, chosen
    known, vectors = read_arms(arms, log.arm, is_text=found.dtype.kind == "U", kinds=asked.kinds)
    if isinstance(known[0], str) and not is_parquet(log.path):
        found = log.taken
    return known, vectors, rows_of(found, known, arms)[1]


def _ids_of(
    values: Column, column: str, path: Path, *, is_text: bool, rows: Rows | None = None
) -> Column:
    """Return ids as texts or numbers; those of a CSV file are numbers where none would change."""
    is_missing = values == "" if values.dtype.kind == "U" else values != values
    if is_missing.any():
        first = _row_name(int(np.argmax(is_missing)), rows)
        raise DataError(
            f"{path} needs the id of an arm in every row of the column {column!r}: {first} has "
            f"none ({int(is_missing.sum()):,} such). Fill or drop such rows."
        )
    if is_text or values.dtype.kind != "U" or is_parquet(path):
        return values.astype(str) if is_text else values
    if not all(map(_is_whole, np.unique(values).tolist())):
        return values
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


# -- checks


def _row_name(number: int, rows: Rows | None) -> str:
    """Name a row of a file, from 1 on, its header not counted."""
    return f"row {number + 1 if rows is None else int(rows[number])}"


def _check_kinds(kinds: Kinds, known: Sequence[str]) -> None:
    other = next((column for column in kinds if column not in known), None)
    if other is not None:
        raise SettingError(
            f"What a column means needs one of the context or of the arms: got {other!r}, and "
            f"these are {some(known)}. Name one of them."
        )


def _of_export(
    rewards: Floats, propensities: Floats, eligible: Column, *, path: Path, is_judged: bool
) -> tuple[Rows, tuple[str, ...]]:
    """Return the rows of a service's export, from 1 on, that `read_service` would read.

    Those that are learned need no propensity; that of an arm among some eligible ones is unknown.
    """
    is_late = np.maximum.accumulate(np.isnan(rewards))
    is_unlikely = ~is_late & np.isnan(propensities)
    is_free = eligible == "" if eligible.dtype.kind == "U" else eligible != eligible
    is_listed = ~is_late & ~is_unlikely & ~is_free
    if not is_judged:
        propensities[is_listed] = np.nan
        is_unlikely, is_listed = (np.zeros_like(is_late),) * 2
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


def _check_outcomes(log: LogTable) -> None:
    """Raise where a reward or a propensity is none; the error names the row of the file."""

    def where(number: int) -> str:
        return f"{_row_name(number, log.rows)} of {log.path}"

    check_rewards(log.rewards, where=where)
    if log.propensities is not None:
        check_propensities(log.propensities, log.rewards, where=where)
