"""Raw data of any make is read into checked inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from fakes import vectors_of

from fastbandit import Bandit, Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import kind_of
from fastbandit.features.schema import Schema

ROWS = vectors_of(5, 3)
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "raw",
    [
        ROWS,
        ROWS.astype(np.float64),
        ROWS.tolist(),
        torch.from_numpy(ROWS),
        torch.from_numpy(ROWS).requires_grad_(),
        pd.DataFrame(ROWS),
        np.asfortranarray(ROWS),
    ],
    ids=["float32", "float64", "list", "tensor", "slope", "pandas", "fortran"],
)
def test_tables_of_any_make_are_read_alike(raw: Any) -> None:
    read = Dense(3).read(raw, what="contexts").dense

    assert read is not None
    assert read.dtype == np.float32
    assert read.flags.c_contiguous
    assert np.array_equal(read, ROWS)


@pytest.mark.usefixtures("little_training")
def test_frames_are_arms_and_contexts_and_rewards() -> None:
    contexts = pd.DataFrame(ROWS, columns=NAMES)
    bandit = Bandit(arms=pl.DataFrame(ROWS, schema=NAMES), context=contexts, reward="real")

    decision = bandit.select(contexts)
    bandit.update(
        contexts=contexts, arms=pd.Series(decision.arms), rewards=pl.Series([1.0, 2, 3, 4, 5])
    )

    assert len(bandit.select(contexts).arms) == 5


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_are_refused_where_numbers_are_known_by_position(frame: Any) -> None:
    with pytest.raises(InputError, match="Build the bandit from a frame or a Schema"):
        Dense(2).read(frame({"x": [1.0], "y": [2.0]}), what="contexts")


def test_numbers_by_position_are_what_a_schema_has_encoded() -> None:
    schema = Schema.infer({"x": [1.0, 2.5, 4.0]})

    read = Dense.of(schema).read(schema.encode({"x": [1.0]}), what="contexts").dense

    assert read is not None
    assert np.array_equal(read, schema.encode([{"x": 1.0}]))


@pytest.mark.parametrize("make", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_sparse_matrices_of_any_make_are_read_alike(make: str) -> None:
    dense = np.array([[0, 2.0, 0], [0, 0, 0], [1, 0, 3]])

    read = Sparse(3).read(getattr(scipy.sparse, make)(dense), what="contexts").sparse

    assert read is not None
    assert read.format == "csr"
    assert read.dtype == np.float32
    assert (read.toarray() == dense).all()


def test_ids_are_whole_numbers_in_range() -> None:
    assert Ids(3).read([0, 2], what="users").ids is not None
    with pytest.raises(InputError, match="from 0 to 2: got 3"):
        Ids(3).read([0, 3], what="users")
    with pytest.raises(InputError, match="got -1"):
        Ids(3).read([-1], what="users")
    with pytest.raises(ShapeError, match="float64"):
        Ids(3).read([0.5], what="users")


def test_features_and_ids_come_as_a_pair_of_equal_length() -> None:
    kind = FeaturesAndIds(Dense(3), Ids(9))

    read = kind.read((ROWS, range(5)), what="contexts")

    assert read.dense is not None
    assert read.ids is not None
    with pytest.raises(ShapeError, match="5 rows and 4 ids"):
        kind.read((ROWS, range(4)), what="contexts")
    with pytest.raises(ShapeError, match="pair"):
        kind.read(ROWS, what="contexts")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (ROWS, Dense(3)),
        (ROWS.tolist(), Dense(3)),
        (scipy.sparse.csc_matrix(ROWS), Sparse(3)),
        (np.zeros((2, 9, 8)), Image(9, 8)),
        (pd.DataFrame(ROWS), Dense(3)),
    ],
)
def test_the_kind_of_features_shows_in_their_shape(raw: Any, kind: Any) -> None:
    assert kind_of(raw, what="arms") == kind


@pytest.mark.parametrize("make", [lambda: Dense(0), lambda: Ids(-1), lambda: Sparse(1.5)])
def test_a_size_is_a_whole_number_of_at_least_1(make: Any) -> None:
    with pytest.raises(SettingError, match="at least 1"):
        make()


def test_images_need_some_pixels() -> None:
    with pytest.raises(SettingError, match="got 7 x 9"):
        Image(7, 9)
