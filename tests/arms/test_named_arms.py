"""Arms from a table: ids, features and columns, by name."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fastbandit import Bandit, Schema
from fastbandit.arms.named_arms import columns_for, named_arms
from fastbandit.errors import InputError, SettingError
from fastbandit.features.tables import table_of

ARMS = pd.DataFrame(
    {
        "price": [3.0, None, 12.5, 7.0],
        "article_id": ["a", "b", "c", "d"],
        "title": ["Red wool hat", "Blue cotton hat", "Red shoe", "Green shoe"],
        "colour": ["red", "blue", "red", None],
    }
)


def test_the_column_that_names_each_arm_holds_the_ids() -> None:
    arms = named_arms(ARMS)

    assert arms.ids == ["a", "b", "c", "d"]
    assert arms.kind.schema is not None
    assert arms.kind.schema.key == "article_id"
    assert "article_id" not in arms.kind.schema.spans


def test_predicates_may_speak_of_numbers_categories_and_titles() -> None:
    columns = named_arms(ARMS).columns

    assert columns["colour"] == ["red", "blue", "red", ""]
    assert columns["title"][0] == "Red wool hat"
    assert math.isnan(columns["price"][1])


def test_ids_may_be_given_or_named() -> None:
    assert named_arms(ARMS, [1, 2, 3, 4]).ids == [1, 2, 3, 4]
    assert named_arms(ARMS, "title").ids == ARMS["title"].tolist()
    with pytest.raises(SettingError, match="Did you mean 'title'"):
        named_arms(ARMS, "titel")


def test_an_arm_without_an_id_is_refused() -> None:
    with pytest.raises(InputError, match="none in row 3"):
        named_arms(ARMS, "colour")


def test_a_schema_may_come_with_the_table() -> None:
    schema = Schema.from_dict(
        {"columns": {"price": "number", "article_id": {"kind": "ignored", "is_id": True}}}
    )

    arms = named_arms(schema.table(ARMS[["price", "article_id"]]))

    assert arms.ids == ["a", "b", "c", "d"]
    assert arms.features.dense is not None
    assert arms.features.dense.shape == (4, 2)


def test_a_bandit_takes_more_arms_by_name() -> None:
    bandit = Bandit(arms=ARMS, context=pd.DataFrame({"age": [20.0, 30.0]}), seed=1)
    more = pd.DataFrame({"colour": ["red"], "title": ["x"], "price": [1.0], "article_id": ["e"]})

    bandit.add_arms(more)
    counts = bandit.upsert_arms(more.assign(price=2.0))

    assert "e" in bandit
    assert counts.changed == 1
    assert bandit.select({"age": 25.0}, eligible={"price": {"<": 3}}).arms == ["e"]


@pytest.mark.parametrize(("unit", "first"), [("s", 1_700_000_000), ("ms", 1_700_000_000_123)])
def test_dates_that_are_numbers_are_filtered_as_such(unit: str, first: int) -> None:
    schema = Schema.from_dict({"columns": {"at": {"kind": "date", "unit": unit}}})

    found = columns_for(table_of({"at": [first, None]}, what="arms"), schema)["at"]

    assert found[0] == first
    assert np.isnan(found[1])
