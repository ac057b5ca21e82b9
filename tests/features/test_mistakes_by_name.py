"""Mistakes with named columns: each is a clear error or the value declared, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastbandit import Bandit, Schema
from fastbandit.errors import (
    DataError,
    DuplicateArmError,
    FastbanditError,
    InputError,
    SettingError,
    ShapeError,
    UnknownArmError,
    ValueOfColumnError,
)
from fastbandit.features.table_files import read_table_file

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "price": {"kind": "number", "mean": 10.0, "std": 5.0},
            "member": "flag",
            "city": {"kind": "category", "levels": ["Oslo", "Paris, France", "1", "true"]},
            "tags": {"kind": "set", "levels": ["a", "b"]},
            "labels": {"kind": "set", "levels": ["a", "b"], "separator": "|"},
            "query": {"kind": "text", "dim": 8, "longest": 50},
            "seen": {"kind": "date", "zone": "Europe/Oslo", "std": 1e9},
            "user": {"kind": "id", "dim": 8},
            "vector": {"kind": "vector", "dim": 3},
            "image": {"kind": "image", "side": 2},
            "country": {"kind": "category", "levels": ["no", "se"], "default": "no"},
        }
    }
)
ROW: dict[str, Any] = {
    "price": 12.5,
    "member": True,
    "city": "Oslo",
    "tags": ["a"],
    "labels": "a|b",
    "query": "red shoes",
    "seen": "2024-07-01T12:00:00+02:00",
    "user": "u1",
    "vector": [1.0, 2.0, 3.0],
    "image": [[0, 1], [2, 3]],
    "country": "se",
}
ARMS = pd.DataFrame(
    {
        "sku": [f"s{n}" for n in range(6)],
        "cost": [1.0, 2.5, 4.0, 8.5, 16.0, None],
        "colour": ["red", "blue", "red", "blue", "red", "green"],
    }
)


def a_bandit() -> Bandit:
    return Bandit(context=SCHEMA, arms=ARMS, seed=1)


@pytest.fixture
def bandit() -> Bandit:
    return a_bandit()


DOORS: dict[str, Callable[[Bandit, dict[str, Any]], Any]] = {
    "one": lambda bandit, row: SCHEMA.encode_one(row),
    "many": lambda bandit, row: bandit.select([ROW, row]),
    "update": lambda bandit, row: bandit.update(
        contexts=[ROW, row], arms=["s1", "s2"], rewards=[0, 1]
    ),
}


def changed(**values: Any) -> dict[str, Any]:
    return ROW | values


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ROW.items() if key != name}


# -- values of another kind


class Wrong(NamedTuple):
    """A value that its column refuses, and what the message says of it."""

    column: str
    value: Any
    says: str


WRONG = {
    "a text for a number": Wrong("price", "12.5", "'12.5' (str)"),
    "a comma in a number": Wrong("price", "12,5", "'12,5' (str)"),
    "a flag for a number": Wrong("price", True, "True (bool)"),
    "a flag of NumPy for a number": Wrong("price", np.bool_(True), "True"),
    "a list for a number": Wrong("price", [1.0], "[1.0] (list)"),
    "a dict for a number": Wrong("price", {"eur": 1}, "{'eur': 1} (dict)"),
    "bytes for a number": Wrong("price", b"12", "b'12' (bytes)"),
    "a date for a number": Wrong("price", date(2024, 1, 1), "datetime.date(2024, 1, 1)"),
    "an infinite number": Wrong("price", math.inf, "inf (float)"),
    "an infinite number of NumPy": Wrong("price", np.float32(-np.inf), "inf"),
    "a number beyond all floats": Wrong("price", 10**400, "1000000"),
    "a complex number": Wrong("price", 1 + 2j, "(1+2j) (complex)"),
    "an infinite decimal": Wrong("price", Decimal("Infinity"), "Infinity"),
    "a text for a flag": Wrong("member", "maybe", "'maybe' (str)"),
    "a flag written as text": Wrong("member", "true", "'true' (str)"),
    "two for a flag": Wrong("member", 2, "2 (int)"),
    "a half for a flag": Wrong("member", 0.5, "0.5 (float)"),
    "a list for a flag": Wrong("member", [True], "[True] (list)"),
    "a list for a category": Wrong("city", ["Oslo"], "['Oslo'] (list)"),
    "a dict for a category": Wrong("city", {"name": "Oslo"}, "{'name': 'Oslo'} (dict)"),
    "bytes for a category": Wrong("city", b"Oslo", "b'Oslo' (bytes)"),
    "an infinite category": Wrong("city", math.inf, "inf (float)"),
    "a text for a set": Wrong("tags", "a", "'a' (str)"),
    "a text with another separator for a set": Wrong("tags", "a|b", "'a|b' (str)"),
    "a number for a set": Wrong("tags", 3, "3 (int)"),
    "a dict in a set": Wrong("tags", [{"a": 1}], "{'a': 1} (dict)"),
    "a dict for a set": Wrong("tags", {"a": 1}, "{'a': 1} (dict)"),
    "a set of several types": Wrong("tags", {"a", (1,)}, "(1,) (tuple)"),
    "a number for a set with a separator": Wrong("labels", 1.5, "1.5 (float)"),
    "a number for a text": Wrong("query", 42, "42 (int)"),
    "a list for a text": Wrong("query", ["red"], "['red'] (list)"),
    "bytes for a text": Wrong("query", b"red", "b'red' (bytes)"),
    "a huge text": Wrong("query", "x" * 51, "51"),
    "a word for a date": Wrong("seen", "yesterday", "'yesterday' (str)"),
    "a day that does not exist": Wrong("seen", "2024-02-30", "'2024-02-30' (str)"),
    "a number for a date": Wrong("seen", 1719828000, "1719828000 (int)"),
    "a flag for a date": Wrong("seen", True, "True (bool)"),
    "a list for a date": Wrong("seen", [2024, 7, 1], "[2024, 7, 1] (list)"),
    "a list for an id": Wrong("user", ["u1"], "['u1'] (list)"),
    "a dict for an id": Wrong("user", {"id": 1}, "{'id': 1} (dict)"),
    "bytes for an id": Wrong("user", b"u1", "b'u1' (bytes)"),
    "a vector too short": Wrong("vector", [1.0, 2.0], "[1.0, 2.0] (list)"),
    "a vector too long": Wrong("vector", [1.0] * 4, "[1.0, 1.0, 1.0, 1.0] (list)"),
    "a number for a vector": Wrong("vector", 1.0, "1.0 (float)"),
    "a text for a vector": Wrong("vector", "1 2 3", "'1 2 3' (str)"),
    "a gap in a vector": Wrong("vector", [1.0, None, 3.0], "None"),
    "an infinite number in a vector": Wrong("vector", [1.0, math.inf, 3.0], "inf"),
    "texts in a vector": Wrong("vector", ["a", "b", "c"], "['a', 'b', 'c'] (list)"),
    "numbers as texts in a vector": Wrong("vector", ["1", "2", "3"], "['1', '2', '3'] (list)"),
    "a huge number in a vector": Wrong("vector", [10**400, 0, 0], "1000000"),
    "a ragged vector": Wrong("vector", [[1.0], [2.0, 3.0]], "[[1.0], [2.0, 3.0]] (list)"),
    "a dict for a vector": Wrong("vector", {"x": 1}, "{'x': 1} (dict)"),
    "an image too small": Wrong("image", [[1]], "[[1]] (list)"),
    "a flat image": Wrong("image", [1, 2, 3, 4], "[1, 2, 3, 4] (list)"),
    "a coloured image": Wrong("image", np.zeros((4, 4, 3)), "ndarray"),
    "a ragged image": Wrong("image", [[1, 2], [3]], "[[1, 2], [3]] (list)"),
    "a text for an image": Wrong("image", "cat.png", "'cat.png' (str)"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("door", list(DOORS))
def test_a_value_of_another_kind_is_named(bandit: Bandit, case: Wrong, door: str) -> None:
    row = changed(**{case.column: case.value})

    with pytest.raises(ValueOfColumnError) as raised:
        DOORS[door](bandit, row)

    message = str(raised.value)
    assert f"column {case.column!r} needs" in message
    assert case.says in message
    assert ". " in message.split(": got ", 1)[1]  # and what to do
    assert raised.value.column == case.column
    assert raised.value.row == (None if door == "one" else 1)
    assert (bandit.version, bandit.history, len(bandit)) == (0, None, 6)


# -- values that are taken


LIKE = {
    "a whole number": ({"price": 12}, {"price": 12.0}),
    "a number of NumPy": ({"price": np.float64(12.5)}, {}),
    "a small number of NumPy": ({"price": np.int8(12)}, {"price": 12}),
    "a decimal": ({"price": Decimal("12.5")}, {}),
    "a number far away": ({"price": 1e30}, {"price": 35.0}),
    "a number far below": ({"price": -1e30}, {"price": -15.0}),
    "not a number": ({"price": math.nan}, {"price": None}),
    "pandas' NA for a number": ({"price": pd.NA}, {"price": None}),
    "an empty text for a number": ({"price": ""}, {"price": None}),
    "one for a flag": ({"member": 1}, {"member": True}),
    "zero for a flag": ({"member": 0.0}, {"member": False}),
    "a flag of NumPy": ({"member": np.bool_(True)}, {}),
    "a whole number for a category": ({"city": 1}, {"city": "1"}),
    "a float for a category": ({"city": 1.0}, {"city": "1"}),
    "a flag for a category": ({"city": True}, {"city": "true"}),
    "a level nobody saw": ({"city": "Rome"}, {"city": "Bergen"}),
    "an empty category": ({"city": ""}, {"city": None}),
    "a text of NumPy": ({"city": np.str_("Oslo")}, {}),
    "a set as a tuple": ({"tags": ("a",)}, {}),
    "a set as a set": ({"tags": {"a"}}, {}),
    "a set with one name twice": ({"tags": ["a", "a"]}, {}),
    "a gap in a set": ({"tags": ["a", None]}, {}),
    "spaces around a separator": ({"labels": " a | b "}, {}),
    "a set as a list where a separator is declared": ({"labels": ["b", "a"]}, {}),
    "capitals in a text": ({"query": "RED Shoes"}, {}),
    "a text of spaces": ({"query": "  "}, {"query": None}),
    "a date without a zone": ({"seen": "2024-07-01T12:00:00"}, {}),
    "a date in UTC": ({"seen": "2024-07-01T10:00:00Z"}, {}),
    "a date as an object": ({"seen": datetime(2024, 7, 1, 10, tzinfo=UTC)}, {}),
    "a date of another zone": (
        {"seen": datetime(2024, 7, 1, 15, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))},
        {},
    ),
    "a time of pandas": ({"seen": pd.Timestamp("2024-07-01T12:00", tz="Europe/Oslo")}, {}),
    "a day": ({"seen": date(2024, 7, 1)}, {"seen": "2024-07-01T00:00:00+02:00"}),
    "a time of NumPy": ({"seen": np.datetime64("2024-07-01T12:00")}, {}),
    "pandas' NaT": ({"seen": pd.NaT}, {"seen": None}),
    "NumPy's NaT": ({"seen": np.datetime64("NaT")}, {"seen": None}),
    "a number for an id": ({"user": 7}, {"user": "7"}),
    "a float for an id": ({"user": 7.0}, {"user": "7"}),
    "an empty id": ({"user": ""}, {"user": None}),
    "a vector of NumPy": ({"vector": np.array([1.0, 2.0, 3.0], np.float32)}, {}),
    "an image of bytes": ({"image": np.array([[0, 1], [2, 3]], np.uint8)}, {}),
}


@pytest.mark.parametrize(("given", "alike"), LIKE.values(), ids=LIKE)
def test_a_value_that_means_the_same_is_encoded_alike(
    given: dict[str, Any], alike: dict[str, Any]
) -> None:
    wanted = SCHEMA.encode_one(changed(**alike))

    assert SCHEMA.encode_one(changed(**given)).tobytes() == wanted.tobytes()
    assert SCHEMA.encode([ROW, changed(**given)])[1].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", list(ROW))
def test_a_gap_sets_the_first_number_of_its_column(name: str) -> None:
    encoded = SCHEMA.encode_one(changed(**{name: None}))[SCHEMA.spans[name]]

    assert encoded[0] == 1.0
    assert not encoded[1:].any()
    assert SCHEMA.encode([changed(**{name: None})])[0].tobytes() == (
        SCHEMA.encode_one(changed(**{name: None})).tobytes()
    )


# -- rows and frames


def frame_of(rows: list[dict[str, Any]], names: list[str] | None = None) -> pd.DataFrame:
    return pd.DataFrame(rows)[names or list(rows[0])]


ROWS_THAT_FAIL: dict[str, tuple[Callable[[], Any], type[FastbanditError], str | None]] = {
    "a name is missing": (lambda: without("price"), ValueOfColumnError, "'price'.*missing.*Send"),
    "a name is missing in one row": (
        lambda: [ROW, without("user")],
        ValueOfColumnError,
        "'user'.*missing",
    ),
    "a name too many": (lambda: ROW | {"pirce": 1.0}, ValueOfColumnError, "'pirce' is not one"),
    "a name in capitals": (
        lambda: without("price") | {"Price": 1.0},
        ValueOfColumnError,
        "'price'.*missing",
    ),
    "a column is missing": (
        lambda: frame_of([ROW], [name for name in ROW if name != "city"]),
        ValueOfColumnError,
        "'city'.*missing",
    ),
    "a column twice": (
        lambda: frame_of([ROW], [*ROW, "price"]),
        ValueOfColumnError,
        "'price' stands there twice.*Rename",
    ),
    "no columns": (lambda: pd.DataFrame(index=range(2)), InputError, None),
    "columns without names": (lambda: pd.DataFrame([[1.0, 2.0]]), InputError, None),
    "names and numbers for columns": (
        lambda: pd.DataFrame([[1.0, 2.0]], columns=["price", 1]),
        ValueOfColumnError,
        r"1 \(int\).*Name them",
    ),
    "no rows at all": (lambda: [], InputError, None),
    "a list of other things": (lambda: [ROW, 3], ShapeError, "int in row 1"),
    "columns of several lengths": (
        lambda: {"price": [1.0, 2.0], "member": [True]},
        ShapeError,
        "as many values",
    ),
    "a nested dict": (lambda: {"user": ROW}, ValueOfColumnError, "missing"),
    "numbers of another width": (lambda: np.zeros((1, 3)), ShapeError, r"got \(1, 3\)"),
    "a text": (lambda: "Oslo", InputError, None),
    "nothing": (lambda: None, InputError, None),
}


@pytest.mark.parametrize(("make", "error", "says"), ROWS_THAT_FAIL.values(), ids=ROWS_THAT_FAIL)
def test_rows_that_do_not_fit_change_nothing(
    bandit: Bandit, make: Callable[[], Any], error: type[FastbanditError], says: str | None
) -> None:
    with pytest.raises(error, match=says):
        bandit.select(make())
    with pytest.raises(error, match=says):
        bandit.update(contexts=make(), arms=["s1"], rewards=[1])

    assert (bandit.version, bandit.history, len(bandit)) == (0, None, 6)


def test_a_frame_in_another_order_is_decided_alike(bandit: Bandit) -> None:
    rows, seeds = [ROW, changed(price=1.0)], np.arange(2, dtype=np.uint64)
    other = pd.DataFrame(rows)[list(reversed(ROW))]

    assert bandit.select(other, seeds=seeds).arms == bandit.select(rows, seeds=seeds).arms
    assert SCHEMA.encode(other).tobytes() == SCHEMA.encode(rows).tobytes()


def test_a_missing_name_with_a_default_counts_as_that() -> None:
    wanted = SCHEMA.encode_one(changed(country="no"))

    assert SCHEMA.encode_one(without("country")).tobytes() == wanted.tobytes()
    assert SCHEMA.encode([ROW, without("country")])[1].tobytes() == wanted.tobytes()
    assert SCHEMA.encode(pd.DataFrame([without("country")]))[0].tobytes() == wanted.tobytes()


def test_a_frame_without_rows_has_no_decisions(bandit: Bandit) -> None:
    assert bandit.select(pd.DataFrame([ROW]).iloc[:0]).arms == []


def few(**columns: Any) -> dict[str, Any]:
    """Return columns for a schema of a number, a flag, a category, a date and a text."""
    count = len(next(iter(columns.values())))
    usual = {"price": [1.0], "member": [True], "city": ["Oslo"], "seen": [None], "query": ["x"]}
    return {name: values * count for name, values in usual.items()} | columns


FEW = SCHEMA.without(["tags", "labels", "user", "vector", "image", "country"])


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (
            lambda: pd.DataFrame(few(city=pd.Categorical(["Oslo", None, "Rome"]))),
            few(city=["Oslo", None, "Rome"]),
        ),
        (
            lambda: pd.DataFrame(few(member=pd.array([True, None], dtype="boolean"))),
            few(member=[True, None]),
        ),
        (
            lambda: pd.DataFrame(few(price=pd.array([3, None], dtype="Int64"))),
            few(price=[3, None]),
        ),
        (
            lambda: pd.DataFrame(few(query=pd.array(["red", None], dtype="string"))),
            few(query=["red", None]),
        ),
        (
            lambda: pl.DataFrame(few(price=[3, None], member=[None, True], city=[None, "Oslo"])),
            few(price=[3, None], member=[None, True], city=[None, "Oslo"]),
        ),
        (
            lambda: pl.DataFrame(few(city=pl.Series(["Oslo", "x"], dtype=pl.Categorical))),
            few(city=["Oslo", "x"]),
        ),
        (
            lambda: pa.table(few(city=pa.array(["Oslo", None]).dictionary_encode())),
            few(city=["Oslo", None]),
        ),
        (
            lambda: pa.table(few(price=pa.array([Decimal("1.5"), None]))),
            few(price=[1.5, None]),
        ),
        (
            lambda: pa.table(few(seen=pa.array([date(2024, 7, 1), None]))),
            few(seen=["2024-07-01", None]),
        ),
        (
            lambda: pd.DataFrame(
                few(seen=pd.to_datetime(["2024-07-01T12:00", None]).tz_localize("Asia/Tokyo"))
            ),
            few(seen=["2024-07-01T12:00+09:00", None]),
        ),
        (
            lambda: pl.DataFrame(
                few(seen=pl.Series([datetime(2024, 7, 1, 3)]).dt.replace_time_zone("UTC"))
            ),
            few(seen=["2024-07-01T12:00+09:00"]),
        ),
        (
            lambda: pa.table(
                few(seen=pa.array([datetime(2024, 7, 1, 3)], pa.timestamp("ms", tz="Asia/Tokyo")))
            ),
            few(seen=["2024-07-01T03:00Z"]),
        ),
    ],
    ids=[
        "pandas' categories",
        "pandas' flags",
        "pandas' whole numbers",
        "pandas' texts",
        "polars' nulls",
        "polars' categories",
        "Arrow's dictionaries",
        "Arrow's decimals",
        "Arrow's days",
        "pandas' zones",
        "polars' zones",
        "Arrow's zones",
    ],
)
def test_columns_of_every_make_are_read_as_lists_are(
    made: Callable[[], Any], wanted: dict[str, Any]
) -> None:
    assert FEW.encode(made()).tobytes() == FEW.encode(wanted).tobytes()


def test_a_comma_in_a_cell_of_csv_stays_in_its_level(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        'price,member,city,seen,query\n12.5,yes,"Paris, France",2024-07-01,"red, blue"\n,,,,\n'
    )
    rows = [
        {"price": 12.5, "member": True, "city": "Paris, France"}
        | {"seen": "2024-07-01", "query": "red, blue"},
        dict.fromkeys(FEW.names),
    ]

    read = FEW.encode(read_table_file(tmp_path / "rows.csv"))

    assert read.tobytes() == FEW.encode(rows).tobytes()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("cheap,yes,Oslo,2024-07-01,x", "'price'.*'cheap'"),
        ('"12,5",yes,Oslo,2024-07-01,x', "'price'.*'12,5'"),
        ("inf,yes,Oslo,2024-07-01,x", "'price'.*inf"),
        ("1,perhaps,Oslo,2024-07-01,x", "'member'.*'perhaps'"),
        ("1,yes,Oslo,tomorrow,x", "'seen'.*'tomorrow'"),
    ],
)
def test_a_wrong_cell_of_csv_is_named(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "rows.csv").write_text(f"price,member,city,seen,query\n1,no,a,,b\n{line}\n")

    with pytest.raises(ValueOfColumnError, match=f"{says}.*row 1 of the rows"):
        FEW.encode(read_table_file(tmp_path / "rows.csv"))


def test_a_header_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("price,price\n1,2\n")

    with pytest.raises(DataError, match="'price' stands twice"):
        read_table_file(tmp_path / "rows.csv")


# -- arms


def more(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"sku": ["n1", "n2"], "cost": [1.0, 2.0], "colour": ["red", "x"]} | columns)


ARMS_THAT_FAIL: dict[str, tuple[Any, type[FastbanditError], str | None]] = {
    "a column is missing": (
        more().drop(columns="colour"),
        ValueOfColumnError,
        "'colour'.*missing",
    ),
    "a column too many": (more(size=[1, 2]), ValueOfColumnError, "'size' is not one"),
    "another kind": (more(cost=["1", "2"]), ValueOfColumnError, "'cost' needs a number.*'1'"),
    "an infinite number": (more(cost=[1.0, math.inf]), ValueOfColumnError, "'cost'.*inf"),
    "an id is missing": (more(sku=["n1", None]), InputError, "'sku' has none in row 1"),
    "an id of NaN": (more(sku=["n1", math.nan]), InputError, "'sku' has none in row 1"),
    "an id twice": (more(sku=["n1", "n1"]), DuplicateArmError, "n1"),
    "an id that is a list": (more(sku=[["n1"], ["n2"]]), InputError, None),
    "numbers of another width": (np.zeros((2, 3)), InputError, None),
}


@pytest.mark.parametrize("call", ["add_arms", "upsert_arms"])
@pytest.mark.parametrize(("arms", "error", "says"), ARMS_THAT_FAIL.values(), ids=ARMS_THAT_FAIL)
def test_arms_that_do_not_fit_change_nothing(
    bandit: Bandit, arms: Any, error: type[FastbanditError], says: str | None, call: str
) -> None:
    with pytest.raises(error, match=says):
        getattr(bandit, call)(arms)

    assert (bandit.version, len(bandit)) == (0, 6)
    assert "n1" not in bandit


def test_an_id_that_is_there_cannot_be_added_again(bandit: Bandit) -> None:
    with pytest.raises(DuplicateArmError, match="s1"):
        bandit.add_arms(more(sku=["n1", "s1"]))

    assert (len(bandit), "n1" in bandit) == (6, False)


def test_arms_in_another_order_of_columns_are_the_same() -> None:
    bandit = a_bandit()

    assert bandit.upsert_arms(ARMS[["colour", "cost", "sku"]]) == (0, 0, 6)


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ("nmae", SettingError, "nmae"),
        (["a"], FastbanditError, "6"),
        (["a"] * 6, DuplicateArmError, "a"),
    ],
)
def test_ids_that_do_not_fit_the_arms_are_refused(
    ids: Any, error: type[FastbanditError], says: str
) -> None:
    with pytest.raises(error, match=says):
        Bandit(context=2, arms=ARMS, ids=ids)


def test_a_column_of_ids_with_a_gap_is_refused() -> None:
    with pytest.raises(InputError, match="'sku' has none in row 2"):
        Bandit(context=2, arms=ARMS.assign(sku=["a", "b", None, "c", "d", "e"]), ids="sku")


def test_a_column_of_ids_with_one_twice_is_refused() -> None:
    with pytest.raises(DuplicateArmError, match="'a'"):
        Bandit(context=2, arms=ARMS.assign(sku=["a", "b", "a", "c", "d", "e"]), ids="sku")


@pytest.mark.parametrize(
    ("eligible", "says"),
    [({"clour": "red"}, "clour"), ({"cost": {"<=": "cheap"}}, "cost"), ({"colour": 3}, "colour")],
)
def test_a_predicate_that_does_not_fit_is_refused(bandit: Bandit, eligible: Any, says: str) -> None:
    with pytest.raises(FastbanditError, match=says):
        bandit.select([ROW], eligible=eligible)

    assert bandit.version == 0


def test_a_predicate_is_kept_to_where_a_value_is_missing(bandit: Bandit) -> None:
    decided = bandit.select([ROW] * 20, eligible={"cost": {"<=": 3}})

    assert set(decided.arms) <= {"s0", "s1"}


# -- bandits by position, and what is learned


def test_names_are_refused_by_a_bandit_that_knows_positions() -> None:
    bandit = Bandit(context=2, arms=np.eye(4))

    with pytest.raises(InputError, match=r"came with names.*frame.to_numpy"):
        bandit.select(pd.DataFrame({"x": [1.0], "y": [2.0]}))
    with pytest.raises(InputError, match="came with names"):
        bandit.update(contexts=[{"x": 1.0, "y": 2.0}], arms=[0], rewards=[1])

    assert bandit.version == 0


@pytest.mark.parametrize(
    ("arms", "rewards", "error", "says"),
    [
        (["s1"], [2.0], InputError, "2"),
        (["s1"], ["yes"], InputError, "yes"),
        (["s9"], [1], UnknownArmError, "s9"),
        (["s1", "s2"], [1, 0], ShapeError, "1 contexts and 2 arms"),
    ],
)
def test_what_cannot_be_learned_is_not(
    bandit: Bandit, arms: Any, rewards: Any, error: type[FastbanditError], says: str
) -> None:
    with pytest.raises(error, match=says):
        bandit.update(contexts=[ROW], arms=arms, rewards=rewards)

    assert (bandit.version, bandit.history) == (0, None)


# -- declarations and inference


@pytest.mark.parametrize(
    ("kinds", "error", "says"),
    [
        ({"prise": "number"}, SettingError, "price"),
        ({"price": "nubmer"}, SettingError, "number"),
        ({"city": "number"}, ValueOfColumnError, "'city' needs a number"),
        ({"city": "date"}, ValueOfColumnError, "'city' needs a date"),
        ({"price": "text"}, ValueOfColumnError, "'price' needs a text"),
        ({"price": "vector"}, FastbanditError, "'price'"),
        ({"city": "vector"}, FastbanditError, "'city'"),
        ({"city": "image"}, FastbanditError, "'city'"),
        ({"city": "set"}, ValueOfColumnError, "'city' needs a list"),
    ],
)
def test_a_kind_that_the_values_refuse_is_named(
    kinds: dict[str, str], error: type[FastbanditError], says: str
) -> None:
    with pytest.raises(error, match=says):
        Schema.infer({"price": [1.5, 2.5], "city": ["Oslo", "Rome"]}, kinds=kinds)


@pytest.mark.parametrize(
    "raw", [pd.DataFrame(), pd.DataFrame({"x": []}), {"x": [], "y": []}, [], {}]
)
def test_nothing_is_inferred_from_nothing(raw: Any) -> None:
    with pytest.raises(InputError, match="Give one"):
        Schema.infer(raw)


def test_ragged_vectors_are_refused_when_they_are_declared() -> None:
    with pytest.raises(ValueOfColumnError, match="'v' needs lists of 2 numbers"):
        Schema.infer({"v": [[1.0, 2.0], [1.0]], "x": [1, 2]}, kinds={"v": "vector"})


def test_ragged_numbers_are_taken_for_a_set() -> None:
    found = Schema.infer({"v": [[1, 2], [1]], "x": [1.5, 2.5]})

    assert dict(row[:2] for row in found.rows())["v"] == "set"
