"""Bytes that an object holds: each block of numbers once, whoever else has it."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from lab.baselines.faiss_index import FaissIndex
from lab.experiments.held_memory import held_bytes


@dataclass
class Holder:
    one: object
    two: object = None


BLOCK = np.zeros(100_000)


@pytest.mark.parametrize(
    "other",
    [BLOCK, BLOCK[10:500], torch.from_numpy(BLOCK), lambda: None],
    ids=["the same", "a view", "a tensor of the same memory", "a function"],
)
def test_memory_that_is_shared_counts_once(other: object) -> None:
    assert held_bytes(Holder(BLOCK, other)) == pytest.approx(800_000, abs=5_000)


def test_a_view_holds_all_that_it_is_a_view_of() -> None:
    assert held_bytes(np.zeros(100_000)[:10]) >= 800_000


def test_what_a_function_closes_over_is_held() -> None:
    block = np.zeros(50_000)

    assert held_bytes(lambda: block) == pytest.approx(400_000, abs=5_000)


def test_tensors_of_their_own_add_up() -> None:
    held = held_bytes([torch.zeros(1000), torch.zeros(1000), np.zeros(1000, dtype=np.float32)])

    assert held == pytest.approx(12_000, abs=1_500)


def test_objects_in_an_array_are_held() -> None:
    words = np.array(["a" * 1000, "b" * 2000], dtype=object)

    assert held_bytes(words) > 3000


def test_an_index_of_faiss_holds_its_vectors() -> None:
    pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).random((2000, 8), dtype=np.float32)

    assert held_bytes(FaissIndex(vectors)) > vectors.nbytes
