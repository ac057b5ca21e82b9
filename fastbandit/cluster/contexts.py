"""Contexts in Parquet or CSV files: which files and columns, their rows as checked arrays."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.cluster.urls import find_tables, open_url, plain, stamp_of
from fastbandit.errors import DataError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.features.table_files import check_header
from fastbandit.features.tables import table_of
from fastbandit.packages import needed
from fastbandit.progress import Progress, silent
from fastbandit.types import Features

_USUAL = ("context", "context_*", "x_*")
_AT_ONCE = 8_192  # rows that are decoded together
_FOOTERS = 16  # that are read at a time


@dataclass(frozen=True)
class Source:
    """A file of contexts; `groups` are the rows of its row groups, `first` counts all before."""

    url: str
    size: int
    stamp: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]
    first: int = 0

    @property
    def rows(self) -> int:
        return sum(self.groups)

    @property
    def name(self) -> str:
        return plain(self.url)


@dataclass(frozen=True)
class Columns:
    """Which columns are read: those of the context, that of its id, and those to keep.

    Before they are found in files, `features` may be patterns, such as x_*; none stands for the
    usual names.
    """

    features: tuple[str, ...] = ()
    ids: str | None = None
    keep: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        own = () if self.ids is None else (self.ids,)
        return list(dict.fromkeys([*self.features, *own, *self.keep]))


def find_sources(url: str, *, progress: Progress = silent) -> list[Source]:
    """Read the rows and columns of all files, in the order of names; CSV is read whole for it."""
    files = find_tables(url)
    sources: list[Source] = []
    with ThreadPoolExecutor(_FOOTERS) as pool:
        for done, source in enumerate(pool.map(_read_footer, files), start=1):
            first = sources[-1].first + sources[-1].rows if sources else 0
            sources.append(replace(source, first=first))
            progress(done, len(files), "Looking at files")
    return sources


def _read_footer(found: tuple[str, dict[str, Any]]) -> Source:
    url, info = found
    if _is_csv(url):
        with _open_csv(url) as reader:
            rows, columns = sum(map(len, reader)), tuple(reader.schema.names)
        check_header(columns, Path(plain(url)))
        return Source(url, int(info["size"]), stamp_of(info), (rows,), columns)
    with open_parquet(url) as file:
        footer, columns = file.metadata, tuple(file.schema_arrow.names)
        groups = tuple(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    return Source(url, int(info["size"]), stamp_of(info), groups, columns)


def _is_csv(url: str) -> bool:
    return url.endswith((".csv", ".csv.gz"))


@contextmanager
def _open_csv(url: str, columns: Sequence[str] = ()) -> Generator[Any, None, None]:
    """Open a CSV file, gzipped or not, whose cells are texts: a reader of batches of rows."""
    csv = needed("pyarrow.csv", what="Scoring files", extra="score")
    pyarrow = needed("pyarrow", what="Scoring files", extra="score")
    system, path = open_url(url)
    parsing = csv.ParseOptions(newlines_in_values=True)
    try:
        with system.open(path, "rb", compression="infer") as file:
            names = csv.open_csv(file, parse_options=parsing).schema.names
            types = dict.fromkeys(names, pyarrow.string())
        reading = csv.ConvertOptions(include_columns=list(columns), column_types=types)
        with system.open(path, "rb", compression="infer") as file:
            yield csv.open_csv(file, parse_options=parsing, convert_options=reading)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{plain(url)} needs to be a whole CSV file: {error}. Write it again, or leave it out."
        ) from error


@contextmanager
def open_parquet(url: str) -> Generator[Any, None, None]:
    """Open a Parquet file."""
    parquet = needed("pyarrow.parquet", what="Scoring files", extra="score")
    system, path = open_url(url)
    try:
        file = parquet.ParquetFile(system.open(path, "rb"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{plain(url)} needs to be a whole Parquet file: {error}. Write it again, or leave it "
            f"out."
        ) from error
    try:
        yield file
    finally:
        file.close(force=True)


def find_columns(sources: Sequence[Source], kind: Features, wanted: Columns) -> Columns:
    """Find the columns in the first file, and make sure that all others have them too.

    Those of a schema are all that any file has.
    """
    first, ids, schema = sources[0], wanted.ids, _schema_of(kind)
    named: list[str] = []
    if isinstance(kind, Ids):
        ids = ids or _single(wanted.features, first)
    elif schema is not None and not wanted.features:
        present = {column for source in sources for column in source.columns}
        named = [name for name in schema.names if name in present]
    else:
        usual = (p for p in _USUAL if any(fnmatchcase(column, p) for column in first.columns))
        patterns = wanted.features or [next(usual, _USUAL[0])]
        named = _matched(patterns, first, but=(ids, *wanted.keep))
    if isinstance(kind, FeaturesAndIds) and ids is None:
        raise DataError(
            f"These contexts need features and an id: no column of {first.name} was named as the "
            f"id. Name it with --ids."
        )
    found = Columns(tuple(named), ids, wanted.keep)
    for source in sources:
        missing = next((name for name in found.names if name not in source.columns), None)
        if missing is not None:
            raise _no_column(missing, source)
    return found


def _schema_of(kind: Features) -> Any:
    """Return what features are read by, where they have names."""
    return getattr(kind.features if isinstance(kind, FeaturesAndIds) else kind, "schema", None)


def _single(columns: Sequence[str], source: Source) -> str:
    if len(columns) > 1:
        raise DataError(
            f"These contexts are ids and need one column: got {', '.join(columns)} for "
            f"{source.name}. Name the one that holds the ids with --columns."
        )
    return columns[0] if columns else _USUAL[0]


def _matched(patterns: Sequence[str], source: Source, *, but: Sequence[str | None]) -> list[str]:
    found: list[str] = []
    for pattern in patterns:
        columns = [column for column in source.columns if column not in but]
        matched = [c for c in columns if c == pattern or fnmatchcase(c, pattern)]
        if not matched:
            raise _no_column(pattern, source)
        found += [pattern] if pattern in matched else matched
    return list(dict.fromkeys(found))


def _no_column(column: str, source: Source) -> DataError:
    shown = ", ".join(source.columns[:20]) + (" and more" if len(source.columns) > 20 else "")
    return DataError(
        f"{source.name} needs a column {column!r}: it has {shown}. Name columns of the context "
        f"with --columns (x_* for all such), others with --ids and --keep."
    )


class RowReader:
    """Reads rows of files, fastest in order: it goes on where it stopped."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._source: Source | None = None
        self._at = 0
        self._batches: Any = iter(())  # of rows that follow
        self._rest: Any = None

    def read(self, source: Source, first: int, count: int) -> Any:
        import pyarrow

        starts = np.cumsum([0, *source.groups])
        group = int(np.searchsorted(starts, first, side="right")) - 1
        if self._source != source or not starts[group] <= self._at <= first:
            self._open(source, group, int(starts[group]))
        self._take(first - self._at)
        return pyarrow.Table.from_batches(self._take(count))

    def _open(self, source: Source, group: int, start: int) -> None:
        if self._source is not None:
            self._batches.close()
        self._batches = _batches(source, list(range(group, len(source.groups))), self.columns)
        self._source, self._at, self._rest = source, start, None

    def _take(self, count: int) -> list[Any]:
        pieces: list[Any] = []
        while count > 0:
            batch = self._next()
            pieces.append(batch.slice(0, count))
            self._rest = batch.slice(len(pieces[-1])) if len(batch) > count else None
            self._at += len(pieces[-1])
            count -= len(pieces[-1])
        return pieces

    def _next(self) -> Any:
        if self._rest is not None:
            return self._rest
        assert self._source is not None
        try:
            return next(self._batches)
        except (StopIteration, OSError, ValueError) as error:
            raise DataError(
                f"{self._source.name} needs to hold the {self._source.rows:,} rows of its footer: "
                f"reading ends at row {self._at} ({error}). Leave it alone while it is scored, or "
                f"write it again."
            ) from error


def _batches(source: Source, groups: list[int], columns: Columns) -> Generator[Any, None, None]:
    """Yield rows from a group on."""
    if _is_csv(source.url):
        with _open_csv(source.url, columns.names) as reader:
            yield from reader
        return
    which = {"row_groups": groups, "columns": columns.names}
    with open_parquet(source.url) as file:
        yield from file.iter_batches(_AT_ONCE, use_threads=False, **which)


def read_contexts(table: Any, columns: Columns, kind: Features, *, where: str, first: int) -> Any:
    """Turn a table into contexts of a kind; errors name the file and the row in it."""
    rows, schema = _Rows(table, where, first), _schema_of(kind)
    if isinstance(kind, Ids):
        assert columns.ids is not None
        return rows.whole_numbers(columns.ids)
    dense = kind.features if isinstance(kind, FeaturesAndIds) else kind
    assert isinstance(dense, Dense | Sparse)
    if schema is not None:
        named = table_of(table.select(columns.features), what="rows")
        what = f"rows of {where}" + f" from {first} on" * (first > 0)
        features = schema.encode(replace(named, is_text=_is_csv(where)), what=what)
    else:
        features = np.concatenate([rows.floats(name) for name in columns.features], axis=1)
    if features.shape[1] != dense.dim:
        names = ", ".join(columns.features[:6]) + ", …" * (len(columns.features) > 6)
        raise DataError(
            f"These contexts need {dense.dim} numbers each: the columns {names} of {where} hold "
            f"{features.shape[1]}. Name the right ones with --columns, or take the bandit that was "
            f"made for these."
        )
    if isinstance(kind, FeaturesAndIds):
        assert columns.ids is not None
        return features, rows.whole_numbers(columns.ids)
    return features


@dataclass(frozen=True)
class _Rows:
    """A table of rows from `first` on of the file `where`, whose columns are checked as read."""

    table: Any
    where: str
    first: int

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return the numbers of a column, or of the lists in it: (n, 1) or (n, width)."""
        import pyarrow

        column, types = self._column(name, pyarrow.float64()), pyarrow.types
        checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        is_list = any(check(column.type) for check in checks)
        numbers = self._flattened(name, column) if is_list else column.to_numpy()
        if numbers.dtype.kind not in "fiub":
            raise DataError(
                f"Contexts need numbers: the column {name!r} of {self.where} holds {column.type}. "
                f"Encode it as numbers, or leave it out with --columns."
            )
        with np.errstate(over="ignore"):
            floats = numbers.astype(np.float32).reshape(len(column), -1)
        is_bad = ~np.isfinite(floats).all(axis=1)
        if is_bad.any():
            row = int(np.argmax(is_bad))
            wrong = floats[row][~np.isfinite(floats[row])][0]
            raise DataError(
                f"Contexts need finite numbers: row {self.first + row} of {self.where} has {wrong} "
                f"in the column {name!r}. Fill or drop such rows ({int(is_bad.sum())} in this "
                f"part)."
            )
        return floats

    def _column(self, name: str, kind: Any) -> Any:
        """Return a column; texts of CSV as numbers of a kind, where they are such."""
        column = self.table.column(name)
        if _is_csv(self.where):
            with suppress(ValueError):
                return column.cast(kind)
        return column

    def _flattened(self, name: str, column: Any) -> NDArray[Any]:
        """Return the numbers of lists of one length, one after the other."""
        from pyarrow import compute

        lengths = compute.fill_null(compute.list_value_length(column), -1).to_numpy()
        most = max(lengths, default=0)
        wrong = np.flatnonzero((lengths != lengths[:1]) | (lengths < 0))
        if len(wrong):
            row = int(wrong[0])
            found = "no list" if lengths[row] < 0 else f"{lengths[row]} numbers"
            raise DataError(
                f"Contexts need lists of one length: row {self.first + row} of {self.where} has "
                f"{found} in the column {name!r}, other rows {most}. Fill or drop such rows."
            )
        numbers: NDArray[Any] = compute.list_flatten(column).to_numpy()
        return numbers

    def whole_numbers(self, name: str) -> NDArray[np.int64]:
        import pyarrow

        column = self._column(name, pyarrow.int64())
        numbers = column.to_numpy()
        if numbers.dtype.kind not in "iu":
            is_null = column.is_null().to_numpy()
            row = self.first + int(np.argmax(is_null))
            raise DataError(
                f"Contexts need a whole number for an id: the column {name!r} of {self.where} "
                f"holds {f'none in row {row}' if is_null.any() else column.type}. Number the ids "
                f"from 0 first, and drop rows without one."
            )
        return numbers.astype(np.int64)


@dataclass(frozen=True)
class Part:
    """Rows of one file that are scored together: `first` in the file, `row` among all."""

    number: int
    source: Source
    first: int
    rows: int

    @property
    def row(self) -> int:
        return self.source.first + self.first

    @property
    def name(self) -> str:
        return f"part-{self.number:06d}.parquet"


def parts_of(sources: Sequence[Source], rows: int) -> list[Part]:
    """Cut files into parts of so many rows; the last of a file may have fewer."""
    parts: list[Part] = []
    for source in sources:
        for first in range(0, source.rows, rows):
            parts.append(Part(len(parts), source, first, min(rows, source.rows - first)))
    return parts
