"""Numbers and flags: known encodings of known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastbandit.errors import ValueOfColumnError
from fastbandit.features.columns import Flag, Ignored, Number, is_missing, read_each


def one(column: Number | Flag, value: object) -> list[float]:
    out = np.zeros(column.width, dtype=np.float32)
    column.writer(0)(value, out)
    return list(out.tolist())


@pytest.mark.parametrize(
    ("value", "wanted"), [(12.0, [0, 1]), (8, [0, -1]), (1e30, [0, 5]), (None, [1, 0])]
)
def test_a_number_is_standardised_and_clipped(value: object, wanted: list[float]) -> None:
    assert one(Number("x", mean=10.0, std=2.0), value) == wanted


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_logarithm_keeps_the_sign(sign: float) -> None:
    assert one(Number("x", log=True), sign * (math.e - 1)) == pytest.approx([0.0, sign])


def test_what_a_number_is_fitted_to_ignores_gaps_and_outliers() -> None:
    fitted = Number("x").fitted([1.0, 3.0, None] * 500 + [1e12])

    assert fitted.mean == pytest.approx(2.0, abs=0.01)
    assert fitted.std == pytest.approx(1.0, abs=0.1)


def test_a_constant_number_has_a_deviation_of_1() -> None:
    assert Number("x").fitted([4.0, 4.0]).std == 1.0


def test_a_flag_is_0_or_1_or_missing() -> None:
    assert [one(Flag("x"), value) for value in (True, 0, None)] == [[0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize(("text", "value"), [("YES", True), ("f", False), ("maybe", "maybe")])
def test_a_flag_in_csv_is_a_word(text: str, value: object) -> None:
    assert Flag("x").from_text(text) == value


def test_a_cell_that_is_no_number_stays_as_it_is() -> None:
    assert [Number("x").from_text(text) for text in ("1.5", "cheap", "1e999")] == [
        1.5,
        "cheap",
        "1e999",
    ]


def test_an_ignored_column_takes_no_numbers() -> None:
    assert (Ignored("x").width, Ignored("x").default) == (0, "")


@pytest.mark.parametrize("value", [None, "", math.nan, np.float32("nan"), np.datetime64("NaT")])
def test_what_is_missing_is_known(value: object) -> None:
    assert is_missing(value)


def test_an_error_of_many_values_names_its_row() -> None:
    with pytest.raises(ValueOfColumnError) as raised:
        read_each(Number("x").number, [1.0, 2.0, "three"])

    assert raised.value.row == 2
