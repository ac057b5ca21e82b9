"""Tables in files, by name: Parquet, CSV (gzipped or not), JSON, Arrow."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError, MissingExtraError
from fastbandit.features.csv_files import open_text, read_csv
from fastbandit.features.tables import Table, table_of

TABLES = (".parquet", ".csv", ".csv.gz")
_LINES = (".json", ".jsonl", ".ndjson")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table_file(path: str | Path) -> Table:
    """Read a table with a header: cells of CSV are texts, which a schema turns into values."""
    found = Path(path).expanduser()
    if not found.exists():
        raise DataError(f"A table needs a file that exists: found no {found}. Correct the path.")
    if found.suffix in _LINES:
        table = table_of(_read_json(found), what="rows")
    elif is_parquet(found):
        file = open_parquet(found)
        check_header(file.schema_arrow.names, found)
        table = table_of(file.read(), what="rows")
    else:
        header = header_of(found)
        columns = read_csv(found, header)
        table = Table(columns, len(columns[header[0]]), is_text=True)
    check_any(table.rows, found)
    return table


def _read_json(path: Path) -> Any:
    """Return a list of objects: one list, or one object a line."""
    with open_text(path) as file:
        try:
            if path.suffix == ".json":
                rows = json.load(file)
            else:
                rows = [json.loads(line) for line in file if line.strip()]
        except ValueError as error:
            raise DataError(f"{path} needs to be JSON: {error}. Write it again.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} needs a list of objects, one for each row. Write it so.")
    check_any(len(rows), path)
    return rows


def header_of(path: Path) -> list[str]:
    """Return the names of the columns."""
    if not path.name.endswith(TABLES):
        raise DataError(
            f"A table needs to be a file that ends in {', '.join(TABLES)}: got {path}. Save it as "
            f"one of these."
        )
    if is_parquet(path):
        header = list(open_parquet(path).schema_arrow.names)
    else:
        with open_text(path) as file:
            header = next(csv.reader(file), [])
    check_header(header, path)
    return header


def is_parquet(path: Path) -> bool:
    """Return whether a file knows the types of its columns; one in CSV has texts alone."""
    return path.suffix == ".parquet"


# -- checks


def check_header(header: Sequence[str], path: Path) -> None:
    """Raise where names of columns are missing, twice, or not parted by commas."""
    if not header:
        raise DataError(
            f"{path} needs a header and a row for each round: it is empty. Write it again."
        )
    separator = next((mark for mark in _SEPARATORS if mark in header[0]), None)
    if len(header) == 1 and separator is not None:
        raise DataError(
            f"{path} needs commas between its columns: its header is {header[0][:60]!r}, with "
            f"{_SEPARATORS[separator]}. Save it with commas, or as Parquet."
        )
    twice = next((name for column, name in enumerate(header) if name in header[:column]), None)
    if twice is not None:
        raise DataError(
            f"{path} needs another name for each column: {twice!r} stands twice in its header. "
            f"Rename or drop one of the two."
        )


def check_any(rows: int, path: Path) -> None:
    """Raise where a table has no row."""
    if not rows:
        raise DataError(
            f"{path} needs at least one row: it has a header alone. Write it with its rows."
        )


# -- Parquet


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, or say why that cannot be."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow: it is not installed. Run pip install "
            "'fastbandit[evaluation]', or save the table as CSV."
        ) from error
    try:
        return ParquetFile(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} needs to be a whole Parquet file: {error}. Write it again."
        ) from error
