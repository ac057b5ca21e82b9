"""Reads the first arms from a file: ids, features, and columns for predicates."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.packages import needed
from fastbandit.settings.service import ArmsConfig
from fastbandit.storage.events import Arm

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class ArmFile:
    """Arms, one row each: `columns` by their names."""

    ids: list[Any]
    features: NDArray[np.float32]
    columns: dict[str, list[Any]]

    def __post_init__(self) -> None:
        if not len(self.ids) or not self.features.shape[1]:
            raise DataError(
                f"The arms need at least one arm and one feature: got {len(self.ids)} arms with "
                f"{self.features.shape[1]} features. Add columns of numbers."
            )
        for id in self.ids:
            if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
                raise DataError(
                    f"An arm needs text or a whole number as its id: got {id!r}. Name it."
                )
        ((id, count),) = Counter(self.ids).most_common(1)
        if count > 1:
            raise DataError(
                f"Each arm needs an id of its own: got {id!r} twice. Drop or rename one of them."
            )

    def first(self, count: int) -> ArmFile:
        columns = {name: values[:count] for name, values in self.columns.items()}
        return ArmFile(self.ids[:count], self.features[:count], columns)

    @staticmethod
    def of(arms: Sequence[Arm]) -> ArmFile:
        """Return arms that were upserted into a log."""
        names = (arms[0].columns or {}) if arms else {}
        return ArmFile(
            ids=[arm.id for arm in arms],
            features=np.array([arm.features for arm in arms], dtype=np.float32),
            columns={name: [(arm.columns or {}).get(name) for arm in arms] for name in names},
        )


def read_arm_file(config: ArmsConfig) -> ArmFile:
    path = Path(config.file)
    with _reporting(path):
        if path.suffix == ".npy":
            matrix = np.load(path, allow_pickle=False)
            _check_matrix(matrix, path)
            _check_finite(matrix, path, [f"number {n}" for n in range(matrix.shape[1])])
            return ArmFile(list(range(len(matrix))), matrix.astype(np.float32), {})
        table = _READERS[path.suffix](path)
        if path.suffix == ".csv":
            table = {name: _parsed(table[name], is_id=name == config.id) for name in table}
        return _from_table(table, config, path)


def check_arm_file(config: ArmsConfig) -> None:
    """Raise what is wrong with the file of the config, as far as its first rows show that."""
    path = Path(config.file)
    with _reporting(path):
        if path.suffix == ".csv":
            _check_columns(_header(path), config, path)
        elif path.suffix == ".parquet":
            _check_columns(_parquet().read_schema(path).names, config, path)
        elif path.suffix == ".npy":
            _check_matrix(np.load(path, mmap_mode="r", allow_pickle=False), path)
        else:
            path.open("rb").close()


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"The first arms need a file: found none at {path}. Correct arms.file."
        ) from error
    except (OSError, ValueError, KeyError, EOFError, csv.Error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"The file of the arms needs to be .csv, .parquet, .npy or .json that can be read: "
            f"{path} cannot ({type(error).__name__}: {error}). Write it anew."
        ) from error


def _check_matrix(matrix: NDArray[Any], path: Path) -> None:
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise DataError(
            f"An array of arms needs one row of numbers for each: {path} has shape "
            f"{matrix.shape} of {matrix.dtype}. Save a matrix."
        )


def _from_table(table: dict[str, list[Any]], config: ArmsConfig, path: Path) -> ArmFile:
    _check_columns(table, config, path)
    names = [name for name in table if name != config.id and name not in config.columns]
    for name in names:
        _check_numbers(name, table[name], path)
    numbers = [np.asarray(table[name], dtype=np.float64) for name in names]
    features = np.stack(numbers, axis=1) if numbers else np.empty((len(table[config.id]), 0))
    _check_finite(features, path, names)
    return ArmFile(
        ids=table[config.id],
        features=features.astype(np.float32),
        columns={name: table[name] for name in config.columns},
    )


def _check_columns(names: Iterable[str], config: ArmsConfig, path: Path) -> None:
    found = list(names)
    missing = next((name for name in (config.id, *config.columns) if name not in found), None)
    if missing is not None:
        raise DataError(
            f"The arms need a column {missing!r}: {path} has {', '.join(found)}. Add it, or "
            f"correct arms.{'id' if missing == config.id else 'columns'}."
        )


def _check_numbers(name: str, values: list[Any], path: Path) -> None:
    wrong = next((v for v in values if isinstance(v, bool) or not isinstance(v, int | float)), None)
    if wrong is not None or None in values:
        raise DataError(
            f"A feature of the arms needs numbers: {name!r} in {path} has {wrong!r}. Drop that "
            f"column, name it in arms.columns, or turn it into numbers."
        )


def _check_finite(features: NDArray[Any], path: Path, names: list[str]) -> None:
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(features.astype(np.float32)))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise DataError(
            f"Features of arms need finite numbers: {path} has {features[row, column]} in "
            f"{names[column]!r} of row {row} ({len(wrong)} such numbers). Fill or drop them."
        )


def _read_csv(path: Path) -> dict[str, list[Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    odd = next((n for n, row in enumerate(rows, start=2) if len(row) != len(header)), None)
    if odd is not None:
        raise ValueError(f"row {odd} has another number of values than the header")
    return {name: [row[n] for row in rows] for n, name in enumerate(header)}


def _header(path: Path) -> list[str]:
    """Return the names of the columns, if there is a row below them."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = [*islice(filter(None, csv.reader(file)), 2)] or [[]]
    if header and not rows:
        raise DataError(f"The arms need at least one arm: {path} has none. Add a row for each.")
    return header


def _parsed(texts: list[str], *, is_id: bool) -> list[Any]:
    """Turn texts into numbers or booleans (ids: whole numbers), where all of them are such."""
    if is_id:
        are_whole = all(_WHOLE.fullmatch(text) for text in texts)
        return [int(text) for text in texts] if are_whole else texts
    if all(text.lower() in _BOOLEANS for text in texts):
        return [_BOOLEANS[text.lower()] for text in texts]
    try:
        return [float(text) for text in texts]
    except ValueError:
        return texts


def _read_json(path: Path) -> dict[str, list[Any]]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise ValueError("it needs a list of objects, one for each arm")
    odd = next((n for n, row in enumerate(rows) if row.keys() != rows[0].keys()), None)
    if odd is not None:
        raise ValueError(f"object {odd} has other keys than the first")
    return {name: [row[name] for row in rows] for name in rows[0]}


def _parquet() -> Any:
    return needed("pyarrow.parquet", what="Reading arms from Parquet", extra="evaluation")


_READERS: dict[str, Callable[[Path], dict[str, list[Any]]]] = {
    ".csv": _read_csv,
    ".json": _read_json,
    ".parquet": lambda path: _parquet().read_table(path).to_pydict(),
}
