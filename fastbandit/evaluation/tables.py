"""Logs in Parquet or CSV, one row a round, read into columns."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, DuplicateArmError, UnknownArmError
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows
from fastbandit.experiments.datasets.files import open_text, read_csv
from fastbandit.experiments.datasets.table import open_parquet

_CONTEXTS = ("context", "context_*", "x_*", "user_feature_*")
_ARMS = ("arm", "arms", "action", "item_id")
_REWARDS = ("reward", "click")
_PROPENSITIES = ("propensity", "propensities", "propensity_score", "pscore", "probability")
_MOST_LEVELS = 256
WAITING = "come with or after the first that waits for its reward"
UNLIKELY = "do not say how likely their arm was"
LISTED = "were made among eligible arms only"
_OURS = {"decision", "eligible", "otherwise", "until"}
Column = NDArray[Any]


def read_table(
    path: Path,
    *,
    context: Sequence[str] = (),
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    arms: Path | None = None,
    is_text: bool = False,
) -> LoggedRounds:
    """Read a log; columns that are not named are looked for by the usual names.

    A column of lists is the context itself, or holds slates whose first arm counts. A file that
    `fastbandit export` wrote is read up to the first decision that waits for its reward.
    """
    header = header_of(path)
    names = {
        "arm": _find(arm, _ARMS, header, path, what="arm"),
        "reward": _find(reward, _REWARDS, header, path, what="reward"),
        "propensity": _find(propensity, _PROPENSITIES, header, path, what="propensity"),
    }
    columns = _match(context or _usual(header), header, path, but=list(names.values()))
    is_ours = set(header) >= _OURS
    notes: tuple[str, ...] = ()
    more = ["eligible"] if is_ours else []
    table = read_columns(path, [*dict.fromkeys([*columns, *names.values(), *more])])
    if is_ours:
        table, notes = _of_export(
            table, reward=names["reward"], propensity=names["propensity"], path=path
        )
    taken = _first(table[names["arm"]])
    taken = taken.astype(str) if is_text else taken
    ids, vectors = (None, None) if arms is None else read_arms(arms, names["arm"], is_text=is_text)
    known, rows = rows_of(taken, ids, arms)
    return LoggedRounds(
        contexts=encoded(table, columns, path),
        chosen=rows,
        rewards=_numbers(table[names["reward"]], names["reward"], path),
        propensities=_numbers(_first(table[names["propensity"]]), names["propensity"], path),
        arms=len(known),
        vectors=vectors,
        ids=known,
        notes=(*notes, *(("arms that were never taken are not known",) * (arms is None))),
    )


def read_arms(
    path: Path, arm: str, *, is_text: bool = False
) -> tuple[list[Any], NDArray[np.float32] | None]:
    """Give the ids of arms (in the column `arm`, or the first), and their features."""
    header = header_of(path)
    name = arm if arm in header else header[0]
    others = [column for column in header if column != name]
    table = read_columns(path, header)
    ids = table[name].astype(str).tolist() if is_text else table[name].tolist()
    if len(set(ids)) < len(ids):
        seen: set[Any] = set()
        twice = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise DuplicateArmError(
            f"A table of arms needs each id once: {path} has {twice!r} twice in the column "
            f"{name!r}. Drop or rename one of the two."
        )
    return ids, encoded(table, others, path) if others else None


def encoded(table: dict[str, Column], columns: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Put columns side by side, text as one flag for each level: (n, C)."""
    parts: list[NDArray[np.float32]] = []
    for column in columns:
        values = table[column]
        if values.dtype.kind in "fiub":
            parts.append(values.astype(np.float32).reshape(len(values), -1))
            continue
        levels, places = np.unique(values.astype(str), return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            raise DataError(
                f"{path} needs at most {_MOST_LEVELS} different texts in a column of features: "
                f"{column!r} has {len(levels)}, such as {levels[0]!r}. Encode them as numbers, or "
                f"leave the column out."
            )
        parts.append(np.eye(len(levels), dtype=np.float32)[places.reshape(-1)])
    return np.concatenate(parts, axis=1)


# -- which columns


def _find(
    named: str | None, usual: Sequence[str], header: Sequence[str], path: Path, *, what: str
) -> str:
    wanted = usual if named is None else (named,)
    found = next((column for column in wanted if column in header), None)
    if found is not None:
        return found
    if what == "propensity" and named is None:
        raise DataError(
            f"{path} needs a column of propensities, how likely the arm was that was taken: found "
            f"{_some(header)}. Name it with propensity=; if every arm was equally likely, add one "
            f"that holds 1 / arms."
        )
    raise DataError(
        f"{path} needs a column {' or '.join(map(repr, wanted))}: found {_some(header)}. Name the "
        f"column of the {what} with {what}=."
    )


def _usual(header: Sequence[str]) -> Sequence[str]:
    found = [p for p in _CONTEXTS if any(fnmatchcase(column, p) for column in header)]
    return found or _CONTEXTS[:1]


def _match(
    patterns: Sequence[str], header: Sequence[str], path: Path, *, but: Sequence[str]
) -> list[str]:
    """Give the columns that names and patterns stand for; what came of a round is none of them."""
    found: list[str] = []
    for pattern in patterns:
        matched = [c for c in header if fnmatchcase(c, pattern) and c not in but]
        if not matched:
            raise DataError(
                f"{path} needs columns of the context such as {pattern!r}: found {_some(header)}. "
                f"Name them with context=; none may be the arm, the reward or the propensity."
            )
        found += matched
    return list(dict.fromkeys(found))


def _some(header: Sequence[str]) -> str:
    return ", ".join(header[:40]) + (f" and {len(header) - 40} more" if len(header) > 40 else "")


# -- columns


def _of_export(
    table: dict[str, Column], *, reward: str, propensity: str, path: Path
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Keep the decisions of a service's export that `read_service` would keep."""
    is_waiting = np.isnan(table[reward].astype(np.float64))
    is_open = np.maximum.accumulate(is_waiting)
    is_unlikely = ~is_open & np.isnan(_first(table[propensity]).astype(np.float64))
    is_listed = ~is_open & ~is_unlikely & (table["eligible"] != "None")
    is_kept = ~(is_open | is_unlikely | is_listed)
    if not is_kept.any():
        raise DataError(
            f"{path} needs decisions with a reward and a propensity: it has none in "
            f"{len(is_kept)} rows. Select with propensity: true, and tell the rewards."
        )
    left_out = ((WAITING, is_open), (UNLIKELY, is_unlikely), (LISTED, is_listed))
    notes = [f"{which.sum():,} decisions that {why} are left out" for why, which in left_out]
    kept = {column: values[is_kept] for column, values in table.items()}
    return kept, tuple(note for note in notes if not note.startswith("0 "))


def _first(values: Column) -> Column:
    return values[:, 0] if values.ndim == 2 else values


def _numbers(values: Column, column: str, path: Path) -> Floats:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    wrong = next((text for text in values.tolist() if not _is_number(text)), None)
    raise DataError(
        f"{path} needs numbers in the column {column!r}: found {wrong!r}. Name another column, or "
        f"mend this one."
    )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def rows_of(taken: Column, ids: list[Any] | None, arms: Path | None) -> tuple[list[Any], Rows]:
    """Give the ids of all arms, and the row of each that was taken."""
    levels, places = np.unique(taken, return_inverse=True)
    if ids is None:
        return levels.tolist(), places.reshape(-1).astype(np.int64)
    row_of = {id: row for row, id in enumerate(ids)}
    missing = next((id for id in levels.tolist() if id not in row_of), None)
    if missing is not None:
        raise UnknownArmError(
            f"{arms} needs every arm that was taken: the log has {missing!r}, which is not in it. "
            f"Add it, or drop those rounds."
        )
    rows = np.array([row_of[id] for id in levels.tolist()], dtype=np.int64)
    return ids, rows[places.reshape(-1)]


# -- files


def header_of(path: Path) -> list[str]:
    """Give the names of the columns."""
    if path.suffix == ".parquet":
        return list(open_parquet(path).schema_arrow.names)
    with open_text(path) as file:
        return next(csv.reader(file), [])


def read_columns(path: Path, columns: Sequence[str]) -> dict[str, Column]:
    """Read columns as numbers where all cells are, else as text; lists as (n, d)."""
    if path.suffix == ".parquet":
        file = open_parquet(path)
        return {c: _from_arrow(file.read(columns=[c]).column(0), c, path) for c in columns}
    return {c: _from_texts(texts) for c, texts in read_csv(path, columns).items()}


def _from_texts(texts: list[str]) -> Column:
    for kind in (np.int64, np.float64):
        try:
            return np.array([text or "nan" for text in texts]).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(texts)


def _from_arrow(column: Any, name: str, path: Path) -> Column:
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_list(column.type) and not pyarrow.types.is_fixed_size_list(column.type):
        values = column.to_numpy()
        return values.astype(str) if values.dtype == object else values
    is_there = ~column.is_null().to_numpy()
    lengths = np.unique(pyarrow.compute.list_value_length(column.drop_null()).to_numpy())
    if len(lengths) > 1:
        raise DataError(
            f"{path} needs lists of one length in the column {name!r}: found lengths "
            f"{lengths[:5].tolist()}. Drop the rows of another length."
        )
    flat = pyarrow.compute.list_flatten(column).to_numpy()
    flat = flat.astype(str) if flat.dtype == object else flat
    if is_there.all():
        return np.asarray(flat.reshape(len(column), -1))
    if flat.dtype.kind == "U":
        raise DataError(
            f"{path} needs a list in every row of the column {name!r}: row "
            f"{int(np.argmin(is_there)) + 1} has none. Drop such rows."
        )
    made = np.full((len(column), int(lengths.max(initial=1))), np.nan)
    made[is_there] = flat.reshape(-1, made.shape[1])
    return made
