"""A schema reads rows by name, in any order, to the bit alike in every door."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from fastbandit import Schema
from fastbandit.errors import DataError, SettingError, ValueOfColumnError
from fastbandit.settings.parts import read, write
from tests.features.named_rows import rows, some_rows

SCHEMA = Schema.infer(rows(200))


def test_every_kind_is_inferred() -> None:
    kinds = {name: kind for name, kind, _, _ in SCHEMA.rows()}

    assert kinds == {
        "price": "number",
        "income": "number",
        "member": "flag",
        "city": "category",
        "user_id": "id",
        "tags": "set",
        "query": "text",
        "seen": "date",
        "vector": "vector",
    }


@pytest.mark.parametrize("name", ["user_id", "userId", "USER_ID", "itemCode", "id"])
def test_whole_numbers_with_the_name_of_a_code_are_names(name: str) -> None:
    assert Schema.infer({name: [7, 7, 9, 9]})[name].note.startswith("a code by its name")


@pytest.mark.parametrize("name", ["paid", "grid", "monkey"])
def test_a_word_that_ends_like_a_code_is_none(name: str) -> None:
    assert Schema.infer({name: [7, 7, 9, 9]})[name].note == "whole numbers"


def test_names_that_repeat_between_separators_are_a_set_in_few_rows() -> None:
    genres = ["Comedy|Crime|Drama|Thriller", "Crime|Drama", "Comedy|Drama", "Crime|Thriller"] * 3

    assert Schema.infer({"genres": genres}).rows()[0][1] == "set"


def test_few_gaps_are_not_none() -> None:
    assert "under 1% missing" in Schema.infer({"x": [None, *range(200)]})["x"].note


@settings(max_examples=60, deadline=None)
@given(some_rows())
def test_one_row_and_many_are_encoded_alike(some: list[dict[str, Any]]) -> None:
    many = SCHEMA.encode(some)

    assert np.isfinite(many).all()
    assert many.tobytes() == np.stack([SCHEMA.encode_one(row) for row in some]).tobytes()


def test_batches_are_what_the_whole_is() -> None:
    some = rows(30)

    batches = list(SCHEMA.encode_batches(some, rows=8))

    assert [len(batch) for batch in batches] == [8, 8, 8, 6]
    assert np.concatenate(batches).tobytes() == SCHEMA.encode(some).tobytes()


def test_an_error_of_a_batch_names_the_row_of_the_table() -> None:
    some = rows(20)
    some[13]["member"] = "maybe"

    with pytest.raises(ValueOfColumnError, match="row 13 of the rows"):
        list(SCHEMA.encode_batches(some, rows=8))


def test_many_rows_are_encoded_by_threads_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    some = rows(30)
    alone = SCHEMA.encode(some)
    monkeypatch.setattr("fastbandit.features.schema._MANY", 1)
    monkeypatch.setattr("fastbandit.features.schema.cores", lambda: 2)

    assert SCHEMA.encode(some).tobytes() == alone.tobytes()


def test_zero_bytes_in_names_and_texts_are_encoded_alike() -> None:
    plain = Schema.from_dict({"columns": {"user": "id", "query": "text"}})
    some = [{"user": "a\0b", "query": "red\0shoe"}, {"user": "", "query": "\0"}]

    assert plain.encode(some).tobytes() == np.stack(list(map(plain.encode_one, some))).tobytes()
    assert np.array_equal(
        plain.encode_one(some[0])[17:],
        plain.encode_one({"user": "", "query": "red shoe"})[17:],
    )


@settings(max_examples=40, deadline=None)
@given(some_rows())
def test_the_order_of_columns_never_matters(some: list[dict[str, Any]]) -> None:
    names = list(some[0])
    Random(len(some)).shuffle(names)
    shuffled = [{name: row[name] for name in names} for row in some]

    assert SCHEMA.encode(shuffled).tobytes() == SCHEMA.encode(some).tobytes()


@settings(max_examples=40, deadline=None)
@given(some_rows())
def test_a_schema_that_was_saved_encodes_alike(some: list[dict[str, Any]]) -> None:
    as_json = Schema.from_dict(json.loads(json.dumps(SCHEMA.as_dict())))
    as_part = read(json.loads(json.dumps(write(SCHEMA))))

    assert as_json == as_part == SCHEMA
    assert as_json.encode(some).tobytes() == SCHEMA.encode(some).tobytes()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_frames_and_arrow_are_read_as_dicts_are(make: Any) -> None:
    some = rows(30)

    assert SCHEMA.encode(make(some)).tobytes() == SCHEMA.encode(some).tobytes()


def test_a_schema_is_read_from_json_and_toml(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.json")
    (tmp_path / "schema.toml").write_text(
        '[columns.price]\nkind = "number"\nmean = 3\n[columns.city]\nkind = "category"\n'
        'levels = ["Oslo", "Rome, Italy"]\n'
    )

    assert Schema.load(tmp_path / "schema.json") == SCHEMA
    assert Schema.load(tmp_path / "schema.toml").names == ("price", "city")


def test_a_file_that_is_no_schema_is_named(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("{")

    with pytest.raises(DataError, match=r"schema\.json"):
        Schema.load(tmp_path / "schema.json")


@pytest.mark.parametrize(
    ("said", "needed"),
    [
        ({}, "a table of columns"),
        ({"columns": {"x": {"kind": "nubmer"}}}, "Did you mean 'number'"),
        ({"columns": {"x": {"kind": "number", "lgo": True}}}, "Did you mean 'log'"),
        ({"columns": {"x": {"kind": "number", "std": 0.0}}}, "above 0"),
        ({"columns": {"x": {"kind": "date", "zone": "Oslo"}}}, "Europe/Oslo"),
        ({"columns": {"x": {"kind": "ignored"}}}, "none that is used"),
    ],
)
def test_a_wrong_declaration_is_refused(said: dict[str, Any], needed: str) -> None:
    with pytest.raises(SettingError, match=needed):
        Schema.from_dict(said)


def test_a_missing_name_takes_the_default_that_is_declared() -> None:
    plain = Schema.from_dict({"columns": {"x": "number", "city": "category"}})
    kind = Schema.from_dict(
        {
            "columns": {
                "x": "number",
                "city": {"kind": "category", "default": "Oslo", "levels": ["Oslo"]},
            }
        }
    )

    assert np.array_equal(kind.encode_one({"x": 1}), kind.encode_one({"x": 1, "city": "Oslo"}))
    assert np.array_equal(
        kind.encode([{"x": 1}, {"x": 2, "city": "Rome"}])[0], kind.encode_one({"x": 1})
    )
    with pytest.raises(ValueOfColumnError, match="'city': it is missing"):
        plain.encode_one({"x": 1})
    with pytest.raises(ValueOfColumnError, match="'city': it is missing"):
        plain.encode([{"x": 1, "city": "Oslo"}, {"x": 1}])


def test_an_error_names_the_column_and_the_row() -> None:
    some = rows(3)
    some[2]["member"] = "maybe"

    with pytest.raises(
        ValueOfColumnError, match=r"'member'.*'maybe'.*row 2 of the contexts"
    ) as raised:
        SCHEMA.encode(some, what="contexts")

    assert (raised.value.column, raised.value.row) == ("member", 2)


def test_a_schema_can_be_looked_at() -> None:
    assert "income   number" in str(SCHEMA)
    assert "heavy-tailed" in SCHEMA._repr_html_()
    odd = Schema.from_dict({"columns": {"<b>": "number"}})
    assert "<b>" not in odd._repr_html_()
