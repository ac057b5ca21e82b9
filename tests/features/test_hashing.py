"""Words and names are hashed, always to the same numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbandit.features.hashing import (
    RARITIES,
    add_tokens,
    bytes_of,
    count_tokens,
    name_numbers,
    names_of,
)

HALF = 0.5**0.5


def hashed(*texts: str) -> NDArray[np.float32]:
    out = np.zeros((len(texts), 9), dtype=np.float32)
    add_tokens(bytes_of(texts), np.ones(RARITIES), np.zeros((0, out.shape[1] - 1), np.int8), out)
    return out


def test_names_are_hashed_as_they_ever_were() -> None:
    assert name_numbers("u1", 16) == (11, -HALF, 4, HALF)
    assert name_numbers("Köln", 32) == (20, HALF, 28, -HALF)


def test_no_name_cancels_itself() -> None:
    for dim in (2, 16, 33):
        places = [name_numbers(f"u{n}", dim)[::2] for n in range(300)]
        assert all(one != other and other < dim for one, other in places)


def test_words_are_hashed_as_they_ever_were() -> None:
    assert hashed("red")[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_the_order_and_the_case_of_words_do_not_matter() -> None:
    assert np.array_equal(hashed("Red, blue!")[0], hashed("blue RED")[0])


def test_texts_do_not_mix() -> None:
    assert np.array_equal(
        hashed("red", "", "blue"), np.concatenate([hashed(w) for w in ("red", "", "blue")])
    )


def test_a_zero_in_a_text_parts_no_rows() -> None:
    assert np.array_equal(hashed("red\x00blue", "x")[0], hashed("red blue")[0])


def test_a_word_counts_once_a_text() -> None:
    counts = np.zeros(RARITIES, dtype=np.int64)

    assert count_tokens(bytes_of(["red red", "red", "..."]), counts) == 3
    assert sorted(counts.tolist())[-2:] == [0, 2]


def test_names_are_bytes_one_after_the_other() -> None:
    data, sizes = names_of(["a", "", "Kö"])

    assert (data.tobytes(), sizes.tolist()) == ("aKö".encode(), [1, 0, 3])
