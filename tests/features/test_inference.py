"""What columns seem to mean, and the reason that is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit import Schema
from fastbandit.features.columns import Number
from fastbandit.features.date_columns import Date
from fastbandit.features.tables import Table

N = 100


@pytest.mark.parametrize(
    ("name", "values", "kind", "why"),
    [
        ("x", [n / 7 for n in range(N)], "number", "numbers"),
        ("x", [n % 7 for n in range(N)], "number", "whole numbers"),
        ("x", [10.0 ** (n % 9) for n in range(N)], "number", "heavy-tailed"),
        ("x", [str(n / 2) for n in range(N)], "number", "written as text"),
        ("x", [n % 2 for n in range(N)], "flag", "zeros and ones"),
        ("x", [n % 3 == 0 for n in range(N)], "flag", "true and false"),
        ("zip", [n % 9 + 1000 for n in range(N)], "category", "a code by its name"),
        ("x", [f"0{n % 9}" for n in range(N)], "category", "names: 9 different"),
        ("user_id", [f"u{n % 80}" for n in range(N)], "id", "80 different"),
        ("name", [f"n{n}" for n in range(N)], "ignored", "another one in each row"),
        ("x", ["same"] * N, "ignored", "all rows have 'same'"),
        ("x", [None] * N, "ignored", "no value at all"),
        ("x", ["a|b", "b", "c|a", "a"] * 25, "set", "parted by '|'"),
        ("x", [["a"], ["a", "b"]] * 50, "set", "lists of several lengths"),
        ("x", [[1.0, 2.0]] * 50 + [[2.0, 1.0]] * 50, "vector", "lists of 2 numbers"),
        ("x", [f"2024-01-{n % 28 + 1:02}" for n in range(N)], "date", "written as text"),
        ("x", [f"red shoe of size {n}" for n in range(N)], "text", "texts of 5 words"),
        ("x", ["a", 1, 2.5, "b"] * 25, "category", "several types"),
    ],
)
def test_a_kind_is_inferred_with_a_reason(
    name: str, values: list[Any], kind: str, why: str
) -> None:
    found = Schema.infer({name: values, "other": [n / 3 for n in range(N)]}).rows()[0]

    assert found[1] == kind
    assert why in found[3]


@pytest.mark.parametrize(
    ("name", "first", "unit"),
    [
        ("created_at", 1_700_000_000, "s"),
        ("timestamp", 900_000_000, "s"),
        ("updatedAt", 1_700_000_000_000, "ms"),
        ("clickTime", 1_700_000_000.5, "s"),
    ],
)
@pytest.mark.parametrize("is_text", [False, True])
def test_numbers_that_count_since_1970_are_dates(
    name: str, first: float, unit: str, is_text: bool
) -> None:
    values: list[Any] = [first + step * 86_401 for step in range(30)]
    table = Table({name: list(map(str, values)) if is_text else values}, 30, is_text)

    column = Schema.infer(table)[name]

    assert isinstance(column, Date)
    assert (column.unit, column.note.partition(",")[2]) == (unit, " by name and size")
    assert np.isfinite(Schema.infer(table).encode(table)).all()


@pytest.mark.parametrize(("name", "first"), [("price", 1_700_000_000), ("playtime", 3_000)])
def test_other_numbers_are_no_dates(name: str, first: int) -> None:
    assert isinstance(Schema.infer({name: [first + step for step in range(30)]})[name], Number)


def test_gaps_are_told() -> None:
    assert "25% missing" in Schema.infer({"x": [1.5, 2.5, 3.5, None]}).rows()[0][3]


def test_cells_of_csv_are_words_for_flags() -> None:
    cells = Table({"x": ["yes", "no", "yes"]}, 3, is_text=True)

    assert Schema.infer(cells).rows()[0][1] == "flag"


def test_a_kind_that_is_named_counts() -> None:
    assert Schema.infer({"x": [1, 2, 3]}, kinds={"x": "category"}).rows()[0][1::2] == (
        "category",
        "as you said",
    )


def test_dicts_are_a_mapping_that_has_learned_their_names() -> None:
    found = Schema.infer([{"user": {"age": 31.0}}, {"user": {"age": 40.0, "city": "Oslo"}}])

    assert found["user"].says().startswith("1 numbers, 1 levels: 2 of 128 slots")
