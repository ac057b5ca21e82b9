"""Vectors that are brought, and images."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.errors import ValueOfColumnError
from fastbandit.features.vector_columns import Picture, Vector


def test_a_vector_is_standardised_as_a_whole() -> None:
    fitted = Vector("v").fitted([[0.0, 2.0], [2.0, 0.0], None])
    out = np.zeros((2, 3), dtype=np.float32)

    fitted.fill([[2.0, 0.0], None], out)

    assert (fitted.dim, fitted.mean, fitted.std) == (2, 1.0, 1.0)
    assert out.tolist() == [[0, 1, -1], [1, 0, 0]]


def test_an_array_of_vectors_is_read_as_lists_are() -> None:
    vector, numbers = Vector("v", dim=2, mean=0.5), np.array([[1.0, 2.0], [3.0, 400.0]])
    both = np.zeros((2, 2, 3), dtype=np.float32)

    vector.fill(numbers, both[0])
    vector.fill(numbers.tolist(), both[1])

    assert both[0].tobytes() == both[1].tobytes()


def test_an_array_with_a_wrong_row_names_it() -> None:
    out = np.zeros((2, 3), dtype=np.float32)

    with pytest.raises(ValueOfColumnError) as raised:
        Vector("v", dim=2).fill(np.array([[1.0, 2.0], [3.0, np.inf]]), out)

    assert raised.value.row == 1


def test_a_cell_of_csv_holds_a_vector() -> None:
    assert Vector("v", dim=2).from_text("[1, 2.5]") == [1.0, 2.5]


def test_an_image_is_the_brightness_of_its_fields() -> None:
    out = np.zeros(5, dtype=np.float32)

    Picture("image", side=2).writer(0)(
        [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]], out
    )

    assert out.tolist() == [0, 1, 2, 3, 4]
