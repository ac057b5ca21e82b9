"""CSV files are read whole, or the error names the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastbandit.errors import DataError
from fastbandit.features.csv_files import read_blocks, read_csv, to_numbers


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_read_as_text_in_the_order_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x,y,z\n1,2,3\n4,5,6\n")

    assert read_csv(path, ["z", "x"]) == {"z": ["3", "6"], "x": ["1", "4"]}


def test_a_gzipped_file_is_read_like_a_plain_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))

    assert read_csv(tmp_path / "a.csv.gz", ["x"]) == {"x": ["1"]}


def test_a_gzip_file_that_ends_early_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 9_999)[:-20])

    with pytest.raises(DataError, match="needs to be a whole gzip file: the file ends early"):
        read_csv(tmp_path / "a.csv.gz", ["x"])


def test_a_row_with_too_few_fields_is_named_by_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x,y\n1,2\n3\n")

    with pytest.raises(DataError, match="needs 2 fields in each row: line 3 has 1"):
        read_csv(path, ["x"])


def test_a_ragged_file_is_filled_up(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x,y\n1,2\n3\n4,5,6\n")

    assert read_csv(path, ["y"], is_ragged=True) == {"y": ["2", "", "5"]}


def test_fields_of_a_dat_file_stand_between_colons(tmp_path: Path) -> None:
    path = write(tmp_path / "a.dat", "1::b\n2::c\n")

    assert list(read_blocks(path, ["t"], header=["n", "t"])) == [{"t": ["b", "c"]}]


def test_a_cell_that_is_no_number_is_named_by_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x\n1\nnone\n")

    with pytest.raises(DataError, match="a number in the column x: line 3 has 'none'"):
        to_numbers(["1", "none"], path=path, column="x")
