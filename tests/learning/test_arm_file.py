"""The first arms are read from a file, or the error says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import DataError, InputError, ShapeError, ValueOfColumnError
from fastbandit.learning.arm_file import ArmFile, check_arm_file, first_arms, read_arm_file
from fastbandit.settings.service import ArmsConfig
from fastbandit.storage.events import Arm, ArmsChanged


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
    assert isinstance(arms.features, np.ndarray)
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
        with pytest.raises(DataError, match=r"cannot|whole Parquet"):
            look(config)


WRONG = {
    "no file": (None, "found none"),
    "no ids": ("name,x\na,1\n", "a column 'id'"),
    "no columns": ("id,x\na,1\n", "a column 'price'"),
    "too large": ("id,x,price\na,1e39,1\n", "finite"),
    "no id": ("id,x,price\n,1,1\n", "whole number as its id: got ''"),
    "twice": ("id,x,price\na,1,1\na,2,1\n", "'a' twice"),
    "ragged": ("id,x,price\na,1\n", "line 2"),
    "no arms": ("id,x,price\n", "at least one row"),
    "empty": ("", "it is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_one_clear_error(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    path = tmp_path / "arms.csv" if text is None else write(tmp_path, text)

    with pytest.raises(DataError, match=message):
        read(path, columns=("price",))


@pytest.mark.parametrize("text", ["{}", "[1]", "[]", "{", '[{"id": 1}, {"x": 2}]'])
def test_json_that_is_no_table_is_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="needs"):
        read(write(tmp_path, text, "arms.json"))


@pytest.mark.parametrize("array", [np.zeros(3), np.array([["a"]]), np.array([[np.inf]])])
def test_an_array_that_is_no_matrix_of_numbers_is_rejected(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "arms.npy", array)

    with pytest.raises(DataError):
        read(tmp_path / "arms.npy")


# -- by name


MIXED = "id,title,price,genre,since\na,Quiet,10,jazz,2024-01-03\nb,Loud,,rock,\nc,Both,30,jazz,\n"


def test_a_table_with_texts_and_gaps_is_read_by_name(tmp_path: Path) -> None:
    arms = read(write(tmp_path, MIXED))

    assert arms.schema is not None
    assert {"price", "genre", "since"} <= {*arms.schema.names}
    assert "id" not in arms.schema.names
    assert arms.columns["genre"] == ["jazz", "rock", "jazz"]
    assert arms.first(2).ids == ["a", "b"]


def test_columns_for_predicates_alone_are_no_features(tmp_path: Path) -> None:
    arms = read(write(tmp_path, MIXED), columns=("genre",))

    assert arms.schema is not None
    assert "genre" not in arms.schema.spans
    assert arms.columns["genre"] == ["jazz", "rock", "jazz"]


def test_a_schema_file_says_what_columns_mean(tmp_path: Path) -> None:
    columns = {"price": {"kind": "number"}, "genre": {"kind": "category"}}
    others = {"title": {"kind": "ignored"}, "since": {"kind": "date"}}
    schema = write(tmp_path, json.dumps({"columns": {**columns, **others}}), "schema.json")

    arms = read(write(tmp_path, MIXED), schema=str(schema))

    assert arms.schema is not None
    assert arms.schema["genre"].levels == ("jazz", "rock")  # type: ignore[attr-defined]


def test_ids_alone_are_enough(tmp_path: Path) -> None:
    assert read(write(tmp_path, "id,price\na,1\nb,2\n"), columns=("price",)).features is None


@pytest.mark.parametrize(("column", "title"), [("name", ""), ("caption", "caption")])
def test_names_stay_beside_ids_that_have_nothing_else(
    tmp_path: Path, column: str, title: str
) -> None:
    rows = "".join(f"{n},word{n}\n" for n in range(60))

    arms = read(write(tmp_path, f"id,{column}\n{rows}"), title=title)

    assert arms.features is None
    assert arms.columns[column][:2] == ["word0", "word1"]


def test_first_arms_of_a_log_keep_their_titles() -> None:
    texts = [f"{n} {'many words ' * n}" for n in range(1, 9)]
    config = ArmsConfig(title="caption")
    change = ArmsChanged(arms_of(*({"caption": text, "x": len(text)} for text in texts)))

    logged = first_arms(change, [], config)

    assert [(arm.columns or {})["caption"] for arm in logged] == texts
    assert ArmFile.of(logged, config).columns["caption"] == texts


def test_a_row_that_lacks_a_name_has_a_gap_there(tmp_path: Path) -> None:
    rows = [{"id": 1, "genre": "jazz"}, {"id": 2}, {"id": 3, "genre": "rock"}]

    assert read(write(tmp_path, json.dumps(rows), "arms.json")).columns["genre"][1] == ""


def arms_of(*features: Any) -> list[Arm]:
    return [Arm(n, one) for n, one in enumerate(features)]


def test_arms_of_a_log_by_name_have_an_inferred_schema() -> None:
    arms = ArmFile.of(arms_of({"x": 1.5, "y": "a"}, {"x": 2.0, "y": "b"}), ArmsConfig())

    assert arms.schema is not None
    assert arms.schema.names == ("x", "y")
    assert arms.columns == {"x": [1.5, 2.0], "y": ["a", "b"]}


def test_arms_of_a_log_with_lists_and_objects_are_rejected() -> None:
    with pytest.raises(InputError, match="one kind"):
        ArmFile.of(arms_of([1.0], {"x": 1.0}), ArmsConfig())


def test_later_arms_need_what_the_first_have() -> None:
    first = ArmsChanged(first_arms(ArmsChanged(arms_of({"x": 1}, {"x": 2})), [], ArmsConfig()))

    with pytest.raises(ValueOfColumnError, match="'x'"):
        first_arms(ArmsChanged(arms_of({"x": "red"})), [first], ArmsConfig())
    with pytest.raises(InputError, match="by their names"):
        first_arms(ArmsChanged(arms_of([1.0])), [first], ArmsConfig())
    with pytest.raises(ShapeError, match="same number"):
        first_arms(ArmsChanged(arms_of([1.0], [1.0, 2.0])), [], ArmsConfig())
