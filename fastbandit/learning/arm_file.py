"""The first arms of a service, from a file or the log: ids, features, columns for predicates.

Features are numbers by position (an array, or a table that holds plain numbers alone), columns by
name with a schema (any other table), or none at all where ids alone are known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.named_arms import columns_for, is_title
from fastbandit.arms.offers import PLACEHOLDER
from fastbandit.errors import DataError, FastbanditError, InputError, SettingError, ShapeError
from fastbandit.features.columns import Ignored, is_missing, listed
from fastbandit.features.csv_files import open_text
from fastbandit.features.schema import Schema
from fastbandit.features.table_files import check_any, header_of, read_table_file
from fastbandit.features.tables import ABSENT, Table, lacks_some, table_of
from fastbandit.settings.service import ArmsConfig
from fastbandit.storage.arm_changes import by_name
from fastbandit.storage.events import Arm, ArmsChanged

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class ArmFile:
    """Arms, one row each: numbers, a table with a schema, or no features; `columns` by name."""

    ids: list[Any]
    features: NDArray[np.float32] | Table | None
    columns: dict[str, list[Any]]

    def __post_init__(self) -> None:
        if not self.ids:
            raise DataError("The arms need at least one arm: got none. Add a row for each.")
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

    @property
    def schema(self) -> Schema | None:
        """What the features mean, where they have names."""
        return self.features.schema if isinstance(self.features, Table) else None

    def first(self, count: int) -> ArmFile:
        columns = {name: values[:count] for name, values in self.columns.items()}
        features = self.features
        if isinstance(features, Table):
            rows = range(min(count, features.rows))
            features = features.schema.table(features.take(rows))
        elif features is not None:
            features = features[:count]
        return ArmFile(self.ids[:count], features, columns)

    @staticmethod
    def without_arms(schema: Schema) -> ArmFile:
        """Return what a service has whose arms all come with requests: a row that is no arm."""
        others = None if schema.others is None else schema.others.name
        blank = {name: None for name in schema.names if name != others}
        return ArmFile([PLACEHOLDER], schema.table([blank]), {})

    @staticmethod
    def of(arms: Sequence[Arm], config: ArmsConfig) -> ArmFile:
        """Return arms that were upserted into a log."""
        ids = [arm.id for arm in arms]
        names = (arms[0].columns or {}) if arms else {}
        columns = {name: [(arm.columns or {}).get(name) for arm in arms] for name in names}
        schema = schema_of(arms, config)
        if schema is not None:
            table = schema.gathered([arm.features for arm in arms], what="arms")
            own = columns_for(table, schema, title=config.title)
            return ArmFile(ids, schema.table(table), {**columns, **own})
        if not any(arm.features for arm in arms):
            return ArmFile(ids, None, columns)
        features = np.array([arm.features for arm in arms], dtype=np.float32)
        return ArmFile(ids, features, columns)


def schema_of(arms: Sequence[Arm], config: ArmsConfig) -> Schema | None:
    """Return what the features of the first arms mean: as the config says, or by their values."""
    kinds = {type(arm.features) for arm in arms}
    if dict not in kinds:
        return None
    if kinds != {dict}:
        raise InputError(
            "Arms need features of one kind: got lists for some and objects for others. Send an "
            "object of named values for each."
        )
    table = _without_gaps(table_of([arm.features for arm in arms], what="arms"))
    found = _schema(table, config)
    if found is None:
        raise InputError(
            f"Arms need a feature that says something: {', '.join(table.names)} have the same "
            f"value in all rows, or another one in each. Name their kinds in arms.schema."
        )
    return found


def first_arms(
    change: ArmsChanged, earlier: Sequence[ArmsChanged], config: ArmsConfig
) -> list[Arm]:
    """Return arms that come before the first version, as the log holds them, if they fit others."""
    begun = next((one.upserted for one in earlier if one.upserted), None)
    schema = schema_of(begun or change.upserted, config)
    if schema is not None:
        wanted = None if begun is None else (begun[0].columns or {})
        return by_name(change.upserted, schema, wanted=wanted, title=config.title)
    every = [arm for one in (*earlier, change) for arm in one.upserted]
    sizes = {len(arm.features) for arm in every}
    if len(sizes) != 1:
        raise ShapeError(
            f"Arms need the same number of features each: got {sorted(sizes)}. Correct them."
        )
    return by_name(change.upserted, None)


def _schema(table: Table, config: ArmsConfig) -> Schema | None:
    """Return the schema of a table without ids: that of the config, or one that is inferred."""
    declared = config.read_schema()
    if declared is not None:
        own = [declared.key] if declared.key else []
        return declared.without([*own, config.id]).fit(table)
    known = {name: Ignored(name) for name in config.columns if name in table.columns}
    try:
        return Schema.infer(table, kinds=known)
    except SettingError:  # no column says anything
        return None


def read_arm_file(config: ArmsConfig) -> ArmFile:
    """Read the file of the config, or say what is wrong with it."""
    path = Path(config.file)
    with _reporting(path):
        if path.suffix == ".npy":
            matrix = np.load(path, allow_pickle=False)
            _check_matrix(matrix, path)
            _check_finite(matrix, path, [f"number {n}" for n in range(matrix.shape[1])])
            return ArmFile(list(range(len(matrix))), matrix.astype(np.float32), {})
        path.stat()  # raises where there is none
        return _from_table(_without_gaps(read_table_file(path)), config, path)


def check_arm_file(config: ArmsConfig) -> None:
    """Raise what is wrong with the file of the config, as far as its first rows show that."""
    path = Path(config.file)
    config.read_schema()
    with _reporting(path):
        if path.suffix == ".npy":
            _check_matrix(np.load(path, mmap_mode="r", allow_pickle=False), path)
        elif path.suffix in (".json", ".jsonl"):
            path.open("rb").close()
        else:
            path.stat()
            _check_columns(header_of(path), config, path)
            if path.suffix != ".parquet":
                with open_text(path) as file:
                    check_any(sum(1 for line in islice(file, 2) if line.strip()) - 1, path)


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"The first arms need a file: found none at {path}. Correct arms.file."
        ) from error
    except (OSError, ValueError, KeyError, EOFError) as error:
        if isinstance(error, FastbanditError):
            raise
        raise DataError(
            f"The file of the arms needs to be a table or .npy that can be read: {path} cannot "
            f"({type(error).__name__}: {error}). Write it anew."
        ) from error


def _without_gaps(table: Table) -> Table:
    """Return a table in which None stands where a row lacks a name."""
    if not lacks_some(table):
        return table
    named = {name: [None if v is ABSENT else v for v in table.values(name)] for name in table.names}
    return Table(named, table.rows)


def _from_table(table: Table, config: ArmsConfig, path: Path) -> ArmFile:
    _check_columns(table.columns, config, path)
    ids = _parsed(table, config.id, is_id=True)
    columns = {name: _parsed(table, name) for name in config.columns}
    rest = table.without([config.id])
    names = [name for name in rest.names if name not in config.columns]
    if not names:
        return ArmFile(ids, None, columns)
    numbers = None if config.schema else _plain_numbers(rest, names)
    if numbers is not None:
        _check_finite(numbers, path, names)
        return ArmFile(ids, numbers.astype(np.float32), columns)
    schema = _schema(rest, config)
    if schema is None:
        read = {n: listed(rest.values(n)) for n in names if is_title(n, title=config.title)}
        own = {n: ["" if is_missing(v) else str(v) for v in values] for n, values in read.items()}
        return ArmFile(ids, None, {**own, **columns})
    own = columns_for(rest, schema, title=config.title)
    return ArmFile(ids, schema.table(rest), {**own, **columns})


def _plain_numbers(table: Table, names: Sequence[str]) -> NDArray[np.float64] | None:
    """Return columns as a matrix where all are plain numbers without a gap; else None."""
    found = []
    for name in names:
        values = table.values(name)
        if isinstance(values, np.ndarray) and values.dtype.kind not in "iuf":
            return None
        if any(
            type(value) not in ((str,) if table.is_text else (int, float))
            for value in listed(values)
        ):
            return None
        try:
            found.append(np.array([float(value) for value in values], dtype=np.float64))
        except (ValueError, OverflowError):
            return None
        if np.isnan(found[-1]).any():
            return None
    return np.stack(found, axis=1)


def _parsed(table: Table, name: str, *, is_id: bool = False) -> list[Any]:
    """Return a column; texts of CSV become numbers or booleans (ids: whole numbers) if all do."""
    values = listed(table.values(name))
    if not table.is_text:
        return values
    if is_id:
        are_whole = all(_WHOLE.fullmatch(text) for text in values)
        return [int(text) for text in values] if are_whole else values
    if all(text.lower() in _BOOLEANS for text in values):
        return [_BOOLEANS[text.lower()] for text in values]
    try:
        return [float(text) for text in values]
    except ValueError:
        return values


# -- checks


def _check_matrix(matrix: NDArray[Any], path: Path) -> None:
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or not matrix.shape[1]:
        raise DataError(
            f"An array of arms needs one row of numbers for each: {path} has shape "
            f"{matrix.shape} of {matrix.dtype}. Save a matrix."
        )


def _check_columns(names: Iterable[str], config: ArmsConfig, path: Path) -> None:
    found = list(names)
    named = {config.id: "id", **dict.fromkeys(config.columns, "columns")}
    named.setdefault(config.title or config.id, "title")
    missing = next((name for name in named if name not in found), None)
    if missing is not None:
        raise DataError(
            f"The arms need a column {missing!r}: {path} has {', '.join(found)}. Add it, or "
            f"correct arms.{named[missing]}."
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
