"""Compiled noise: the numbers of `fastbandit.noise.philox`, for one decision at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastbandit.compiler.compiled import compiled

Floats = NDArray[np.float32]


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FIRST, _SECOND = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_FIRST_STEP, _SECOND_STEP = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TURN = np.float32(2.0 * math.pi)
_SEEDS = 3  # the stream of `fastbandit.noise.philox`


@compiled(allocates=False)
def _block(
    seed: np.uint64, block: np.uint64, stream: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four words of a block: Philox4x32-10, as in `fastbandit.noise.philox`."""
    one, two, three, four = block & _LOW, block >> _HALF, stream, np.uint64(0)
    key, other_key = seed & _LOW, seed >> _HALF
    for _ in range(10):
        first, second = _FIRST * one, _SECOND * three
        one, two, three, four = (
            (second >> _HALF) ^ two ^ key,
            second & _LOW,
            (first >> _HALF) ^ four ^ other_key,
            first & _LOW,
        )
        key, other_key = (key + _FIRST_STEP) & _LOW, (other_key + _SECOND_STEP) & _LOW
    return one, two, three, four


@compiled(allocates=False)
def uniforms_of(seed: np.uint64, stream: int, numbers: Floats, count: int) -> None:
    """Draw numbers strictly between 0 and 1."""
    for block in range((count + 3) // 4):
        words = _block(seed, np.uint64(block), np.uint64(stream))
        for lane in range(min(4, count - 4 * block)):
            numbers[4 * block + lane] = _uniform(words[lane])


@compiled(allocates=False)
def _uniform(word: np.uint64) -> np.float32:
    whole = np.float32(np.uint32(word & _LOW) >> np.uint32(9))
    return np.float32((whole + np.float32(0.5)) * np.float32(2.0**-23))


@compiled(allocates=False)
def normals_from(uniforms: Floats, count: int, normals: Floats) -> None:
    """Turn uniform numbers into standard normal ones, by Box and Muller's transform."""
    pairs = (count + 1) // 2
    for pair in range(pairs):
        radius = math.sqrt(np.float32(-2.0) * math.log(uniforms[pair]))
        angle = _TURN * uniforms[pairs + pair]
        normals[pair] = radius * math.cos(angle)
        if pairs + pair < count:
            normals[pairs + pair] = radius * math.sin(angle)


@compiled(allocates=False)
def normal_at(seed: np.uint64, position: int, stream: int) -> np.float32:
    """Draw the standard normal number of a position, as `philox.normals_at` does."""
    words = _block(seed, np.uint64(position), np.uint64(stream))
    radius = math.sqrt(np.float32(-2.0) * math.log(_uniform(words[0])))
    return np.float32(radius * math.cos(_TURN * _uniform(words[1])))


@compiled(allocates=False)
def seed_of(root: np.uint64, number: int) -> np.uint64:
    """Return the seed of a decision by its number, as `philox.decision_seeds` does."""
    return number_of(root, number, _SEEDS)


@compiled(allocates=False)
def seeds_from(root: np.uint64, first: int, seeds: NDArray[np.uint64]) -> None:
    """Write the seeds of decisions from a number on, as `philox.decision_seeds` does."""
    for position in range(len(seeds)):
        seeds[position] = seed_of(root, first + position)


@compiled(allocates=False)
def number_of(seed: np.uint64, block: int, stream: int) -> np.uint64:
    """Return the first 64 bits of a block: a whole number, all equally likely."""
    words = _block(seed, np.uint64(block), np.uint64(stream))
    return words[0] | (words[1] << _HALF)
