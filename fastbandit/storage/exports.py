"""Decisions with what came of them as files that other tools read, one row for each decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

import apsw
from msgspec import json

from fastbandit.declaration import known_name
from fastbandit.errors import DataError, SettingError
from fastbandit.files.atomic import raising, replacing
from fastbandit.packages import needed
from fastbandit.progress import Progress, silent
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.dsjson import DsjsonLines
from fastbandit.storage.events import ArmId, Context
from fastbandit.storage.joined_rows import (
    Bounds,
    Row,
    context_names,
    count_decisions,
    has_text_ids,
    joined_rows,
    secret_names,
)
from fastbandit.storage.log_reader import one_moment_of

FORMATS = ("parquet", "dsjson", "jsonl")
_SUFFIXES = {".parquet": "parquet", ".dsjson": "dsjson", ".jsonl": "jsonl", ".csv": "csv"}
ALL = Bounds()
_NAMED = "context."
_JSON_KINDS = {"text": {"text"}, "number": {"integer", "real"}, "boolean": {"true", "false"}}
_ROWS_A_GROUP = 20_000
Write: TypeAlias = Callable[[Sequence[Row]], Counter[str]]
"""Writes rows; returns how many it left out, by reason."""


@dataclass(frozen=True)
class Exported:
    """The file that was written, its rows, and how many were left out for which reason."""

    file: Path
    rows: int
    left_out: dict[str, int]


def export(
    data_dir: Path, out: Path, format: str, *, bounds: Bounds = ALL, progress: Progress = silent
) -> Exported:
    """Write the decisions of a log that lie within bounds, as they are at one moment.

    Columns that the log holds as secret are left out.
    """
    known_name("format of an export", format, FORMATS)
    rows, left_out = 0, Counter[str]()
    with one_moment_of(data_dir / LOG_FILE) as log:
        steps, hidden = count_decisions(log, bounds), secret_names(log)
        needs = f"An export needs a file that can be written: {out} cannot"
        with (
            raising(DataError, needs, fix="Make room there, or name another."),
            replacing(out) as beside,
            _opened(format, beside, log, bounds) as write,
        ):
            for batch in joined_rows(log, bounds):
                for row in batch:
                    row.context = hidden.public_context(row.context)
                    row.offered = hidden.public_offers(row.offered)
                left_out += write(batch)
                rows += len(batch)
                progress(rows, steps, "Writing")
    return Exported(out, rows - left_out.total(), dict(left_out))


def format_of(out: Path, format: str | None) -> str:
    """Return the format of a file by its name, where none is named; both have to agree."""
    named = _SUFFIXES.get(out.suffix, "" if out.suffix else "parquet")
    wanted = format or named
    if wanted not in FORMATS or (named != wanted and out.suffix in _SUFFIXES):
        raise SettingError(
            f"An export needs a format and a file of that format, .parquet, .dsjson or .jsonl: got "
            f"--out {out} and {f'--format {format}' if format else 'no --format'}. Name the file "
            f"so, or the format with --format."
        )
    return wanted


def _opened(
    format: str, path: Path, log: apsw.Connection, bounds: Bounds
) -> AbstractContextManager[Write]:
    if format == "parquet":
        hidden = secret_names(log).context
        known = context_names(log, bounds)
        names = {name: kinds for name, kinds in known.items() if name not in hidden}
        return _parquet(path, has_text_ids=has_text_ids(log, bounds), names=names)
    if format == "jsonl":
        return _lines(path, lambda rows: (map(json.encode, rows), Counter()))
    return _lines(path, DsjsonLines(log, secret_names(log)).of)


@contextmanager
def _lines(
    path: Path, of: Callable[[Sequence[Row]], tuple[Iterable[bytes], Counter[str]]]
) -> Iterator[Write]:
    with path.open("wb") as file:

        def write(rows: Sequence[Row]) -> Counter[str]:
            lines, left_out = of(rows)
            file.writelines(line + b"\n" for line in lines)
            return left_out

        yield write


@contextmanager
def _parquet(path: Path, *, has_text_ids: bool, names: dict[str, set[str]]) -> Iterator[Write]:
    what = "An export as Parquet, unlike one as jsonl,"
    parquet = needed("pyarrow.parquet", what=what, extra="evaluation")
    pyarrow = needed("pyarrow", what=what, extra="evaluation")
    schema = _schema(pyarrow, has_text_ids=has_text_ids, names=names)
    texts = {f"{_NAMED}{name}" for name, kinds in names.items() if _arrow_kind(kinds) == "json"}
    waiting: list[Row] = []
    with parquet.ParquetWriter(path, schema) as writer:

        def flush() -> None:
            columns = [
                pyarrow.array(_cells(waiting, field.name, has_text_ids, texts), field.type)
                for field in schema
            ]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))
            waiting.clear()

        def write(rows: Sequence[Row]) -> Counter[str]:
            waiting.extend(rows)
            if len(waiting) >= _ROWS_A_GROUP:
                flush()
            return Counter()

        yield write
        if waiting:
            flush()


def _cells(rows: Sequence[Row], name: str, has_text_ids: bool, texts: set[str]) -> list[Any]:
    """Return the values of a column: ids of one kind, predicates and `texts` as JSON."""
    key = name.removeprefix(_NAMED)
    if name == key:
        values = [getattr(row, name) for row in rows]
    else:
        values = [row.context.get(key) if isinstance(row.context, dict) else None for row in rows]
    if name == "context":  # no context has a name, or there would be a column for it
        return [value if isinstance(value, list) else [] for value in values]
    if name == "arms" and has_text_ids:
        return [[str(arm) for arm in arms] for arms in values]
    if name == "other" and has_text_ids:
        return [None if value is None else str(value) for value in values]
    if name in ("eligible", "offered") or name in texts:
        return [None if value is None else json.encode(value).decode() for value in values]
    return values


def _arrow_kind(kinds: set[str]) -> str:
    """Return what a column of values that are such JSON is: numbers, texts, booleans, or JSON."""
    found = kinds - {"null"}
    return next((kind for kind, types in _JSON_KINDS.items() if found <= types), "json")


def _schema(arrow: Any, *, has_text_ids: bool, names: dict[str, set[str]]) -> Any:
    number, whole, text = arrow.float64(), arrow.int64(), arrow.string()
    numbers, id = arrow.list_(number), text if has_text_ids else whole
    kinds: dict[Any, Any] = {
        int: whole,
        float: number,
        float | None: number,
        bool: arrow.bool_(),
        str: text,
        datetime: arrow.timestamp("us", tz="UTC"),
        Context: numbers,
        list[float]: numbers,
        list[float] | None: numbers,
        list[float | None]: numbers,
        list[ArmId]: arrow.list_(id),
        ArmId | None: id,
        Any: text,
    }
    plain = {"number": number, "text": text, "boolean": arrow.bool_(), "json": text}
    said = {"json": {"json": "yes"}}  # texts that are JSON
    named = [
        arrow.field(f"{_NAMED}{name}", plain[kind], metadata=said.get(kind))
        for name, kind in ((name, _arrow_kind(types)) for name, types in names.items())
    ]
    fields: list[Any] = []
    for name, kind in get_type_hints(Row).items():
        fields += named if name == "context" and named else [(name, kinds[kind])]
    return arrow.schema(fields)
