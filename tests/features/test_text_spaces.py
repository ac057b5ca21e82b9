"""Words that stand in the same texts lie together, in bytes that a schema holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from fastbandit.features.hashing import BUCKETS
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Text
from fastbandit.features.text_spaces import FEWEST, fit_space, space_array

SEA, LAND = ("boat", "sail", "wave", "harbour"), ("hill", "tree", "path", "stone")


def texts_of(count: int = 300) -> list[str]:
    """Return texts of words of the sea or of the land, among common ones."""
    rng = np.random.default_rng(0)
    topics = [SEA if number % 2 else LAND for number in range(count)]
    return [" ".join([*rng.choice(topic, 3), f"word{rng.integers(5)}"]) for topic in topics]


def encoded(column: Text, *texts: str | None) -> NDArray[np.float32]:
    return Schema((column,)).encode({"about": list(texts)})


def test_words_that_go_together_lie_together() -> None:
    column = Text("about", dim=4).fitted(texts_of())
    boat, wave, hill = encoded(column, "boat", "wave", "hill")[:, 1:]

    assert boat @ wave > 0 > boat @ hill


def test_common_words_lie_in_the_middle() -> None:
    column = Text("about", dim=4).fitted([f"{text} the" for text in texts_of()])
    the, boat = encoded(column, "the", "boat")[:, 1:]

    assert np.linalg.norm(the) < 0.2 * np.linalg.norm(boat)


def test_a_text_lies_in_the_middle_of_its_words() -> None:
    column = Text("about", dim=4).fitted(texts_of())
    both, boat, hill = encoded(column, "Boat, hill!", "boat", "hill")

    assert both == pytest.approx((boat + hill) / 2)


def test_words_that_come_later_tell_texts_apart() -> None:
    column = Text("about", dim=4).fitted(texts_of())
    one, other, none = encoded(column, "volcano", "glacier", None)

    assert one[1:].any()
    assert (one != other).any()
    assert none.tolist() == [1, 0, 0, 0, 0]


def test_a_space_comes_back_to_the_bit() -> None:
    column = Text("about", dim=4).fitted(texts_of())
    schema = Schema((column,))
    again = Schema.from_dict(json.loads(json.dumps(schema.as_dict())))
    rows = [{"about": text} for text in (*texts_of(40), "", "new words")]

    assert again == schema
    assert (again.encode(rows) == schema.encode(rows)).all()
    assert (np.stack([again.encode_one(row) for row in rows]) == schema.encode(rows)).all()


def test_a_fitted_space_is_kept() -> None:
    column = Text("about", dim=4).fitted(texts_of())

    assert column.fitted(["other words here"] * 300) == column


def test_few_texts_are_hashed_as_before() -> None:
    assert fit_space(texts_of(FEWEST - 1), 4) == ""
    column = Text("about", dim=4).fitted(texts_of(FEWEST - 1))
    assert not column.space
    assert column.rarity
    assert space_array("", 4).shape == (0, 4)


def test_texts_without_words_have_no_space() -> None:
    assert fit_space(["", "..."] * FEWEST, 4) == ""


def test_a_space_has_a_place_for_each_bucket() -> None:
    assert space_array(fit_space(texts_of(), 4), 4).shape == (BUCKETS, 4)


def test_a_space_that_was_not_written_so_is_refused() -> None:
    for written in ("###", "AAAA"):
        with pytest.raises(SettingError, match="The space of a text needs"):
            space_array(written, 4)
