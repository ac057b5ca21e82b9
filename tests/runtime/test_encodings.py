"""Features to embeddings, without torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fastbandit.errors import SnapshotError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.runtime.encodings import Encoding, encoding_from, kind_from, note_of
from fastbandit.types import Inputs

NOTHING = np.zeros((1, 0), np.float32)
DENSE = Encoding(Dense(2), np.array([[1, 2, 3]], np.float32), NOTHING, NOTHING)


def test_dense_columns_and_a_constant_are_summed() -> None:
    assert DENSE.embed(Inputs(dense=np.ones((1, 2), np.float32))).tolist() == [[6.0]]


def test_columns_are_clipped_to_their_bounds() -> None:
    bounds = np.array([[0, 0], [1, 1]], np.float32)
    clipping, far = replace(DENSE, bounds=bounds), Inputs(dense=np.array([[5.0, 0.0]], np.float32))

    assert clipping.embed(far).tolist() == [[4.0]]
    assert clipping.is_clipped(far).tolist() == [True]
    assert DENSE.is_clipped(far).tolist() == [False]


def test_an_unknown_id_adds_nothing() -> None:
    by_id = Encoding(Ids(2), NOTHING, NOTHING, np.array([[1], [2]], np.float32))

    assert by_id.embed(Inputs(ids=np.array([1, 7]))).tolist() == [[2.0], [0.0]]


@pytest.mark.parametrize("kind", [Dense(2), Sparse(5), Ids(3), FeaturesAndIds(Dense(2), Ids(3))])
def test_a_kind_is_read_as_it_was_written(kind: object) -> None:
    assert kind_from(note_of(kind)) == kind  # type: ignore[arg-type]


def test_an_encoding_is_read_as_it_was_written() -> None:
    again = encoding_from(DENSE.note(), DENSE.arrays())

    assert isinstance(again, Encoding)
    assert np.array_equal(again.matrix, DENSE.matrix)


def test_a_kind_of_another_version_is_an_error() -> None:
    with pytest.raises(SnapshotError, match="'Smell'"):
        kind_from({"kind": "Smell", "size": 2})
