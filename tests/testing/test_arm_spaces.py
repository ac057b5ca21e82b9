"""Every arm space and index through the laws of fastbandit/testing/arm_spaces.py."""

from __future__ import annotations

import numpy as np
import pytest
from arm_spaces import DIM, SPACES
from fakes import catalogue_of, vectors_of
from numpy.typing import NDArray
from torch import Generator

from fastbandit.testing.arm_spaces import check_arm_space, check_index
from lab.baselines.faiss_index import FaissIndex


@pytest.mark.parametrize("space", SPACES)
def test_arm_spaces(space: str, rng: Generator) -> None:
    check_arm_space(SPACES[space](), rng=rng)


@pytest.mark.parametrize("count", [1, 17, 5_000, 20_000])
def test_a_catalogue_of_any_size_is_an_arm_space(count: int, rng: Generator) -> None:
    check_arm_space(catalogue_of(vectors_of(count, DIM)), rng=rng)


def test_a_catalogue_of_equal_arms_is_an_arm_space(rng: Generator) -> None:
    check_arm_space(catalogue_of(np.repeat(vectors_of(5, DIM), 60, axis=0)), rng=rng)


@pytest.mark.parametrize("count", [1, 30, 3_000])
def test_indexes(count: int, numbers: np.random.Generator) -> None:
    vectors = vectors_of(count, 4)

    check_index(FaissIndex(vectors), vectors, numbers=numbers)


class Upside(FaissIndex):
    """An index that returns the farthest first."""

    def search(self, *args: object, **settings: object) -> NDArray[np.int64]:
        return super().search(*args, **settings)[:, ::-1].copy()  # type: ignore[arg-type]


def test_an_index_in_another_order_is_caught(numbers: np.random.Generator) -> None:
    vectors = vectors_of(30, 4)

    with pytest.raises(AssertionError, match=r"empty row before|nearer position after"):
        check_index(Upside(vectors), vectors, numbers=numbers)
