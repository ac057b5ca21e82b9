"""Your own log: a table with a row for each decision, in Parquet or CSV.

It needs columns of the context, one of the arm that was taken, one of its reward, and, where
not every arm was equally likely, one of the probability with which it was taken.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.errors import DataError, SettingError
from fastbandit.features.csv_files import open_text, read_csv
from fastbandit.features.kinds import Dense
from fastbandit.features.table_files import open_parquet
from fastbandit.progress import progress_bar
from fastbandit.types import Inputs
from lab.experiments.datasets.files import data_folder
from lab.experiments.environment import Floats, Tabled
from lab.experiments.logged import LoggedData, fit_simulator

MODES = ("replay", "simulator")
_MOST_LEVELS = 256

Column = NDArray[Any]
"""Finite float64 numbers, or text."""


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    path: str | Path | None = None,
    context: str | Sequence[str] = (),
    arm: str = "arm",
    reward: str = "reward",
    propensity: str | None = None,
    arms: str | Path | None = None,
    mode: str = "replay",
) -> Tabled | LoggedData:
    """Read a log for `replay`, or with mode "simulator" fit a simulator to it.

    `context` names columns; "x_*" stands for all that start with x_. Text becomes one flag for
    each level, numbers stay as they are; the columns of the arm, the reward and the propensity
    are never part of it. `arms` is a table with the column `arm` and features
    of the arms in all others; without it arms are those in the log.
    """
    known_name("mode", mode, MODES)
    if path is None or not context:
        raise SettingError(
            f"The dataset table needs a path and the columns of the context: got path={path} and "
            f"context={context!r}. Name both."
        )
    log = _read_log(
        _locate(path, data),
        name=name,
        context=[context] if isinstance(context, str) else context,
        arm=arm,
        reward=reward,
        propensity=propensity,
        arms=None if arms is None else _locate(arms, data),
        seed=seed,
    )
    if mode == "replay":
        return log
    with progress_bar(name) as progress:
        return fit_simulator(log, progress=progress)


def _read_log(
    path: Path,
    *,
    name: str,
    context: Sequence[str],
    arm: str,
    reward: str,
    propensity: str | None,
    arms: Path | None,
    seed: int,
) -> LoggedData:
    others = [arm, reward] if propensity is None else [arm, reward, propensity]
    columns = _match(context, path, but=others)
    table = _read(path, [*columns, *others], ids=arm)
    contexts = _encode(table, columns, path)
    taken = table[arm].tolist()
    ids, features = (_sorted_ids(taken), None) if arms is None else _read_arms(arms, arm)
    rewards = _numbers(table[reward], reward, path)
    return LoggedData(
        name=name,
        context=Dense(contexts.shape[1]),
        contexts=Inputs(dense=contexts),
        size=len(ids),
        chosen=_rows_of(taken, ids, path=path, arms=arms),
        rewards=rewards,
        propensities=None if propensity is None else _numbers(table[propensity], propensity, path),
        arms=features,
        ids=ids,
        reward="binary" if np.isin(rewards, (0.0, 1.0)).all() else "real",
        seed=seed,
        notes=(
            f"read from {path.name}",
            *(("no propensities: every arm is taken to be equally likely",) * (not propensity)),
        ),
    )


def _read_arms(path: Path, arm: str) -> tuple[list[str], NDArray[np.float32]]:
    """Return the ids and the features of arms, in the order of their table."""
    columns = [column for column in _header(path) if column != arm]
    table = _read(path, [arm, *columns], ids=arm)
    ids = table[arm].tolist()
    twice = [id for id, count in Counter(ids).items() if count > 1]
    if twice or not columns:
        found = f"{twice[0]!r} twice" if twice else "no features"
        raise DataError(
            f"{path} needs one row for each arm and at least one column of features: found "
            f"{found}. Mend the table of arms."
        )
    return ids, _encode(table, columns, path)


def _rows_of(
    taken: list[str], ids: list[str], *, path: Path, arms: Path | None
) -> NDArray[np.int64]:
    row_of = {id: row for row, id in enumerate(ids)}
    missing = next((id for id in taken if id not in row_of), None)
    if missing is not None:
        raise DataError(
            f"{arms} needs every arm that was taken: {path} has {missing!r}, which is not in it. "
            f"Add it, or drop those rounds."
        )
    return np.array([row_of[id] for id in taken], dtype=np.int64)


def _sorted_ids(taken: list[str]) -> list[str]:
    """Return the arms by number where all are whole numbers, else in the order of the alphabet."""
    ids = set(taken)
    is_whole = all(id.lstrip("-").isdigit() for id in ids)
    return sorted(ids, key=lambda id: (int(id) if is_whole else 0, id))


# -- columns


def _match(patterns: Sequence[str], path: Path, *, but: Sequence[str]) -> list[str]:
    """Return the columns that the names and patterns stand for, each once, and none of `but`.

    A context that held the reward would give away what is to be learned.
    """
    header, found = _header(path), []
    for pattern in patterns:
        matched = [column for column in header if fnmatchcase(column, pattern)]
        if not matched and pattern not in header:
            raise _no_column(pattern, header, path)
        found += matched or [pattern]
    retained = [column for column in dict.fromkeys(found) if column not in but]
    if not retained:
        raise SettingError(
            f"The context needs columns other than {', '.join(but)}: got {', '.join(patterns)}. "
            f"Name what was known before an arm was taken."
        )
    return retained


def _no_column(column: str, header: Sequence[str], path: Path) -> DataError:
    some = ", ".join(header[:40]) + (f" and {len(header) - 40} more" if len(header) > 40 else "")
    return DataError(f"{path} needs a column {column!r}: found {some}. Name one of these.")


def _encode(table: dict[str, Column], columns: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Put columns side by side, text as one flag for each level: (n, C)."""
    parts = []
    for column in columns:
        values = table[column]
        if values.dtype.kind == "f":
            parts.append(values.astype(np.float32)[:, None])
            continue
        levels, codes = np.unique(values, return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            raise DataError(
                f"{path} needs at most {_MOST_LEVELS} different texts in a column of features: "
                f"{column!r} has {len(levels)}. Hash them into fewer, or leave the column out."
            )
        parts.append(np.eye(len(levels), dtype=np.float32)[codes.reshape(-1)])
    return np.concatenate(parts, axis=1)


def _numbers(values: Column, column: str, path: Path) -> Floats:
    if values.dtype.kind != "f":
        wrong = next(text for text in values.tolist() if not _is_number(text))
        raise DataError(
            f"{path} needs numbers in the column {column!r}: found {wrong!r}. Name another column, "
            f"or mend this one."
        )
    return values


# -- files


def _locate(path: str | Path, data: Path | None) -> Path:
    """Return a path as it is, or below the data folder."""
    candidates = [Path(path).expanduser(), data_folder(data) / path]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        raise DataError(
            f"The dataset table needs a file: found neither {candidates[0]} nor {candidates[1]}. "
            f"Mend the path, or name the folder with --data."
        )
    return found


def _header(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return list(open_parquet(path).schema_arrow.names)
    with open_text(path) as file:
        return next(csv.reader(file), [])


def _read(path: Path, columns: Sequence[str], *, ids: str) -> dict[str, Column]:
    """Read columns as numbers or text; the column `ids` is text whatever it looks like."""
    header = _header(path)
    for column in columns:
        if column not in header:
            raise _no_column(column, header, path)
    if path.suffix == ".parquet":
        arrow = open_parquet(path).read(columns=list(columns))
        cells: dict[str, list[Any]] = {c: arrow.column(c).to_pylist() for c in columns}
    else:
        cells = dict(read_csv(path, columns))
    table = {c: _column(cells[c], c, path) for c in columns if c != ids}
    return table | {ids: np.array([_id(cell, ids, path) for cell in cells[ids]])}


def _id(cell: Any, column: str, path: Path) -> str:
    if cell is None or cell == "" or cell != cell:
        raise DataError(
            f"{path} needs an arm in every row of the column {column!r}: some rows have none. Drop "
            f"those rows."
        )
    return str(int(cell)) if isinstance(cell, float) and cell == int(cell) else str(cell)


def _column(cells: list[Any], column: str, path: Path) -> Column:
    """Return numbers where all cells that are filled are numbers, else text."""
    texts = [_text(cell) for cell in cells]
    if not all(_is_number(text) for text in texts if text):
        return np.array(texts)
    return _finite(np.array([float(text or "nan") for text in texts]), column, path)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, bool) else str(cell).strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite(numbers: Floats, column: str, path: Path) -> Floats:
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise DataError(
            f"{path} needs a finite number in every row of the column {column!r}: row "
            f"{wrong[0] + 1} has none ({len(wrong)} such rows). Fill or drop those rows."
        )
    return numbers
