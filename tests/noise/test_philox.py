"""Random numbers that anyone can draw again."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.noise.philox import Stream, decision_seeds, normals, philox, uniforms

SEEDS = decision_seeds(3, 0, 50)


def words(seed: int, block: int, stream: int) -> list[str]:
    found = philox(np.array([seed], dtype=np.uint64), np.array([block], dtype=np.uint64), stream)
    return [f"{word:08x}" for word in found[0, 0]]


def test_philox_gives_the_published_words() -> None:
    """The known answer of Random123 for Philox4x32-10, counter 0 and key 0."""
    assert words(0, 0, 0) == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def plain_philox(counter: list[int], key: list[int]) -> list[str]:
    """Philox4x32-10 in whole numbers of Python, step by step as in the paper."""
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ counter[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [f"{word:08x}" for word in counter]


def test_the_plain_philox_of_this_file_gives_the_published_words_too() -> None:
    ones = 0xFFFFFFFF

    assert plain_philox([ones] * 4, [ones] * 2) == [
        "408f276d",
        "41c83b0e",
        "a20bc7c6",
        "6d5451fd",
    ]


@pytest.mark.parametrize(
    ("seed", "block", "stream"), [(2**64 - 1, 2**64 - 1, 2**32 - 1), (12345678901234567890, 7, 4)]
)
def test_philox_agrees_with_whole_numbers_of_python(seed: int, block: int, stream: int) -> None:
    counter = [block & 0xFFFFFFFF, block >> 32, stream, 0]

    assert words(seed, block, stream) == plain_philox(counter, [seed & 0xFFFFFFFF, seed >> 32])


def test_uniforms_lie_strictly_between_0_and_1() -> None:
    numbers = uniforms(decision_seeds(0, 0, 2_000), 100, Stream.POSTERIOR)

    assert numbers.dtype == np.float32
    assert numbers.min() > 0
    assert numbers.max() < 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.005)
    assert numbers.var() == pytest.approx(1 / 12, abs=0.005)


def test_the_extreme_words_stay_inside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    extremes = np.array([[[0, 2**32 - 1, 511, 512]]], dtype=np.uint32)
    monkeypatch.setattr("fastbandit.noise.philox", lambda *args: extremes)

    numbers = uniforms(SEEDS[:1], 4, Stream.POSTERIOR)

    assert ((numbers > 0) & (numbers < 1)).all()


def test_streams_of_one_seed_differ() -> None:
    drawn = [uniforms(SEEDS, 8, stream) for stream in Stream]

    assert len({array.tobytes() for array in drawn}) == len(Stream)


def test_more_numbers_begin_with_the_same_ones() -> None:
    assert (uniforms(SEEDS, 3, Stream.STARTS) == uniforms(SEEDS, 11, Stream.STARTS)[:, :3]).all()


def test_a_seed_gives_the_same_numbers_in_any_company() -> None:
    assert (uniforms(SEEDS, 5, Stream.STARTS)[7:8] == uniforms(SEEDS[7:8], 5, Stream.STARTS)).all()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_normals_are_standard_and_finite(count: int) -> None:
    numbers = normals(decision_seeds(1, 0, 20_000), count, Stream.STARTS)

    assert numbers.shape == (20_000, count)
    assert np.isfinite(numbers).all()
    assert numbers.mean() == pytest.approx(0, abs=0.03)
    assert numbers.std() == pytest.approx(1, abs=0.03)


def test_decision_seeds_do_not_depend_on_batches() -> None:
    whole = decision_seeds(9, 0, 10)

    assert (np.concatenate([decision_seeds(9, 0, 4), decision_seeds(9, 4, 6)]) == whole).all()
    assert len(set(whole.tolist())) == 10


@pytest.mark.parametrize("seed", [-1, 2**64, 2**200])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert decision_seeds(seed, 0, 2).dtype == np.uint64
