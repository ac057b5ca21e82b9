"""The first arms are read from a file, or the error says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import DataError
from fastbandit.learning.arm_file import ArmFile, check_arm_file, read_arm_file
from fastbandit.settings.service import ArmsConfig


def read(path: Path, **changes: Any) -> ArmFile:
    return read_arm_file(ArmsConfig(file=str(path), **changes))


def write(folder: Path, text: str, name: str = "arms.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


ROWS = [{"id": "a", "x": 1, "y": 0.5, "new": True}, {"id": "b", "x": 2, "y": -1.5, "new": False}]


@pytest.mark.parametrize("kind", [".csv", ".json", ".parquet"])
def test_tables_of_each_kind_read_alike(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"arms{kind}"
    if kind == ".csv":
        path.write_text("id,x,y,new\na,1,0.5,true\nb,2,-1.5,false\n")
    elif kind == ".json":
        path.write_text(json.dumps(ROWS))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)

    arms = read(path, columns=("new",))

    assert arms.ids == ["a", "b"]
    assert arms.features.tolist() == [[1.0, 0.5], [2.0, -1.5]]
    assert arms.columns == {"new": [True, False]}


def test_the_rows_of_an_array_are_their_own_ids(tmp_path: Path) -> None:
    np.save(tmp_path / "arms.npy", np.eye(3))

    assert read(tmp_path / "arms.npy").ids == [0, 1, 2]


@pytest.mark.parametrize(
    ("texts", "ids"),
    [("1 -2", [1, -2]), ("01 2", ["01", "2"]), ("x 2", ["x", "2"]), ("1.0 2", ["1.0", "2"])],
)
def test_ids_are_whole_numbers_only_where_all_are_written_so(
    tmp_path: Path, texts: str, ids: list[Any]
) -> None:
    first, second = texts.split()
    found = read(write(tmp_path, f"id,x\n{first},1\n{second},2\n")).ids

    assert found == ids


@pytest.mark.parametrize("name", ["no file", "no ids", "no columns", "no arms", "empty"])
def test_the_first_rows_of_a_file_show_what_is_wrong_with_it(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    path = tmp_path / "arms.csv" if text is None else write(tmp_path, text)

    with pytest.raises(DataError, match=message):
        check_arm_file(ArmsConfig(file=str(path), columns=("price",)))


@pytest.mark.parametrize("kind", [".csv", ".json", ".parquet", ".npy"])
def test_first_rows_without_fault_pass(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"arms{kind}"
    if kind == ".csv":
        path.write_text("id,x\na,1\nb,red\n")  # what stands further down is not looked at
    elif kind == ".json":
        path.write_text(json.dumps(ROWS))
    elif kind == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    else:
        np.save(path, np.zeros((2, 3)))

    check_arm_file(ArmsConfig(file=str(path)))


@pytest.mark.parametrize("name", ["arms.npy", "arms.parquet"])
def test_a_file_of_another_kind_than_its_name_says_is_one_clear_error(
    tmp_path: Path, name: str
) -> None:
    config = ArmsConfig(file=str(write(tmp_path, "", name)))

    for look in (check_arm_file, read_arm_file):
        with pytest.raises(DataError, match="cannot"):
            look(config)


WRONG = {
    "no file": (None, "found none"),
    "no ids": ("name,x\na,1\n", "a column 'id'"),
    "no columns": ("id,x\na,1\n", "a column 'price'"),
    "text": ("id,x,price\na,red,1\n", "'x' .* has 'red'"),
    "nothing": ("id,x,price\na,,1\n", "'x' .* has ''"),
    "NaN": ("id,x,price\na,nan,1\n", "finite"),
    "too large": ("id,x,price\na,1e39,1\n", "finite"),
    "no id": ("id,x,price\n,1,1\n", "whole number as its id: got ''"),
    "twice": ("id,x,price\na,1,1\na,2,1\n", "'a' twice"),
    "ragged": ("id,x,price\na,1\n", "row 2"),
    "no arms": ("id,x,price\n", "at least one arm"),
    "no features": ("id,price\na,1\n", "one feature"),
    "empty": ("", "a column 'id'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_one_clear_error(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    path = tmp_path / "arms.csv" if text is None else write(tmp_path, text)

    with pytest.raises(DataError, match=message):
        read(path, columns=("price",))


@pytest.mark.parametrize("text", ["{}", "[1]", "[]", "{", '[{"id": 1}, {"x": 2}]'])
def test_json_that_is_no_table_is_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="cannot"):
        read(write(tmp_path, text, "arms.json"))


@pytest.mark.parametrize("array", [np.zeros(3), np.array([["a"]]), np.array([[np.inf]])])
def test_an_array_that_is_no_matrix_of_numbers_is_rejected(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "arms.npy", array)

    with pytest.raises(DataError):
        read(tmp_path / "arms.npy")
