"""Tables in files are read by name, and a schema reads all of them alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastbandit import Schema
from fastbandit.errors import DataError
from fastbandit.features.table_files import read_table_file

ROWS = [
    {"price": 1.5, "city": "Paris, France", "seen": "2024-01-01"},
    {"price": None, "city": "Oslo", "seen": "2024-03-01"},
    {"price": 2.0, "city": None, "seen": None},
]
CSV = 'price,city,seen\n1.5,"Paris, France",2024-01-01\n,Oslo,2024-03-01\n2.0,,\n'
SCHEMA = Schema.infer(ROWS)


def write(path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(ROWS))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(CSV.encode()))
    else:
        path.write_text(CSV)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.json", "a.jsonl"])
def test_files_of_any_format_are_read_alike(name: str, tmp_path: Path) -> None:
    table = read_table_file(write(tmp_path / name))

    assert np.array_equal(SCHEMA.encode(table), SCHEMA.encode(ROWS))


@pytest.mark.parametrize(
    ("name", "text", "needed"),
    [
        ("a.csv", "", "empty"),
        ("a.csv", "x,y\n", "at least one row"),
        ("a.csv", "x,x\n1,2\n", "stands twice"),
        ("a.csv", "x;y\n1;2\n", "semicolons"),
        ("a.csv", "x,y\n1\n", "2 fields"),
        ("a.json", "{}", "a list of objects"),
        ("a.json", "[", "JSON"),
        ("a.txt", "x\n1\n", "ends in"),
    ],
)
def test_a_file_that_is_no_table_is_named(
    name: str, text: str, needed: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match=needed):
        read_table_file(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no"):
        read_table_file(tmp_path / "none.csv")
