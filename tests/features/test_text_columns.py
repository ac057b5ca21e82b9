"""Categories, sets, texts and ids: what names become."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.features.columns import Column
from fastbandit.features.text_columns import MOST_LEVELS, Category, CategorySet, Id, Text


def one(column: Column, value: object) -> list[float]:
    out = np.zeros(column.width, dtype=np.float32)
    column.writer(0)(value, out)
    return list(out.tolist())


def test_a_category_has_a_number_for_none_for_others_and_for_each_level() -> None:
    city = Category("city", levels=("Oslo", "Rome"))

    assert one(city, None) == [1, 0, 0, 0]
    assert one(city, "Bergen") == [0, 1, 0, 0]
    assert one(city, "Rome") == [0, 0, 0, 1]


def test_rare_levels_share_a_number_in_a_large_table() -> None:
    fitted = Category("city").fitted(["Oslo"] * 500 + ["Rome"] * 4)

    assert fitted.levels == ("Oslo",)


def test_too_many_levels_are_hashed() -> None:
    fitted = Category("city").fitted([f"city {n}" for n in range(MOST_LEVELS + 1)])

    assert (fitted.levels, fitted.hashed) == ((), 32)


def test_a_set_has_a_one_for_each_name() -> None:
    tags = CategorySet("tags", levels=("a", "b"), separator="|")

    assert one(tags, "b | a") == one(tags, ["a", "b", "b"]) == [0, 0, 1, 1]
    assert one(tags, ["z"]) == [0, 1, 0, 0]
    assert one(tags, []) == [0, 0, 0, 0]


def test_rare_words_weigh_more() -> None:
    text = Text("query", dim=64).fitted([f"the thing number {n}" for n in range(90)])
    common, rare = (np.array(one(text, word)) for word in ("thing", "number 7"))
    both = np.array(one(text, "thing 7"))

    assert not common[1:].any()  # it stands in every text
    assert np.linalg.norm(rare) == pytest.approx(1.0)
    assert np.array_equal(both, rare)


def test_a_text_has_length_1_and_one_without_words_is_missing() -> None:
    text = Text("query", dim=16)

    assert np.linalg.norm(one(text, "red shoes, blue shoes")) == pytest.approx(1.0)
    assert one(text, " . ") == one(text, None) == [1.0] + [0.0] * 16


def test_an_id_sets_two_numbers() -> None:
    user = Id("user", dim=64)

    assert sorted(map(abs, one(user, "u1")))[-3:] == pytest.approx([0.0, 0.5**0.5, 0.5**0.5])
    assert one(user, "u1") != one(user, "u2")
    assert one(user, None) == [1.0] + [0.0] * 64


@pytest.mark.parametrize("dim", [1, 2, 16])
def test_many_ids_are_hashed_as_one_is(dim: int) -> None:
    user, names = (
        Id("user", dim=dim),
        [*map(str, range(200)), "Köln", "", None, 7, "\x00", "\ud800"],
    )
    out = np.zeros((len(names), user.width), dtype=np.float32)

    user.fill(names, out)

    assert out.tolist() == [one(user, name) for name in names]
