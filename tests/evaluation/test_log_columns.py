"""Which columns of a log hold what."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.errors import DataError
from fastbandit.evaluation.log_columns import LogColumns, columns_in
from fastbandit.features.columns import Number
from fastbandit.features.schema import Schema

LOG = Path("log.csv")
HEADER = ["time", "decision", "x_a", "age", "arm", "reward", "propensity"]


def test_usual_names_are_the_context_of_a_log_that_is_judged() -> None:
    assert columns_in(HEADER, LOG, LogColumns(), is_judged=True).context == ["x_a"]


def test_all_others_are_the_context_where_none_has_a_usual_name() -> None:
    header = [name for name in HEADER if name != "x_a"]

    assert columns_in(header, LOG, LogColumns(), is_judged=True).context == ["age"]


def test_all_others_are_the_context_of_a_log_to_learn_from() -> None:
    found = columns_in(HEADER, LOG, LogColumns(), is_judged=False)

    assert found.context == ["x_a", "age"]
    assert found.time == "time"


def test_a_schema_names_the_columns() -> None:
    asked = LogColumns(schema=Schema((Number("age"),)))

    assert columns_in(HEADER, LOG, asked, is_judged=True).context == ["age"]


def test_a_log_to_learn_from_needs_no_propensities() -> None:
    found = columns_in(HEADER[:-1], LOG, LogColumns(), is_judged=False)

    assert found.propensity is None
    with pytest.raises(DataError, match="a column of propensities"):
        columns_in(HEADER[:-1], LOG, LogColumns(), is_judged=True)
