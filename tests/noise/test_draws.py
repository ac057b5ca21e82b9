"""Compiled noise is the noise of `fastbandit.noise.philox`, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import seeds_of

from fastbandit.noise.draws import normals_from, number_of, seed_of, uniforms_of
from fastbandit.noise.philox import Stream, decision_seeds, normals, philox, uniforms

SEEDS = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *seeds_of(3)], dtype=np.uint64)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 64, 131])
@pytest.mark.parametrize("stream", [Stream.POSTERIOR, Stream.STARTS])
def test_uniform_numbers_are_the_same_to_the_last_bit(stream: Stream, count: int) -> None:
    expected = uniforms(SEEDS, count, stream)

    for seed, numbers in zip(SEEDS, expected, strict=True):
        drawn = np.zeros(count, dtype=np.float32)
        uniforms_of(seed, int(stream), drawn, count)

        np.testing.assert_array_equal(drawn, numbers)


def test_only_as_many_numbers_are_written_as_are_wanted() -> None:
    drawn = np.full(8, -1, dtype=np.float32)

    uniforms_of(np.uint64(7), 0, drawn, 5)

    assert (drawn[:5] > 0).all()
    assert drawn[5:].tolist() == [-1, -1, -1]


@pytest.mark.parametrize("count", [1, 2, 7, 58])
def test_normal_numbers_are_the_same_in_float_precision(count: int) -> None:
    pairs = -(-count // 2)
    expected = normals(SEEDS, count, Stream.POSTERIOR)

    for numbers, wanted in zip(uniforms(SEEDS, 2 * pairs, Stream.POSTERIOR), expected, strict=True):
        drawn = np.zeros(count, dtype=np.float32)
        normals_from(numbers, count, drawn)

        np.testing.assert_allclose(drawn, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("root", [0, 3, 2**64 - 1])
@pytest.mark.parametrize("first", [0, 2**32 - 1, 2**62])
def test_the_seed_of_a_decision_is_that_of_its_number(root: int, first: int) -> None:
    seeds = [int(seed_of(np.uint64(root), first + number)) for number in range(3)]

    assert seeds == decision_seeds(root, first, 3).tolist()


def test_a_number_is_the_first_half_of_its_block() -> None:
    blocks = np.array([0, 5, 2**32], dtype=np.uint64)
    words = philox(SEEDS, blocks, int(Stream.UNIFORM_CHOICE)).astype(np.uint64)

    for place, seed in enumerate(SEEDS):
        numbers = [number_of(seed, int(block), int(Stream.UNIFORM_CHOICE)) for block in blocks]

        expected = words[place, :, 0] | (words[place, :, 1] << np.uint64(32))
        assert [int(number) for number in numbers] == expected.tolist()
