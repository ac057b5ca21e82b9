"""Random numbers that are a pure function of a seed and a position.

Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC 2011). A decision's seed is all that is needed to draw its noise again, in any order, on
any machine, with or without torch.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Stream(IntEnum):
    """What a number is drawn for; streams of one seed never overlap."""

    POSTERIOR = 0
    STARTS = 1
    UNIFORM_CHOICE = 2
    SEEDS = 3
    TRAINING = 4
    ARMS = 5


def philox(
    seeds: NDArray[np.uint64], blocks: NDArray[np.uint64], stream: int
) -> NDArray[np.uint32]:
    """Return four 32-bit words for each seed and block number: shape (seeds, blocks, 4)."""
    seeds = seeds[:, None]
    shape = np.broadcast_shapes(seeds.shape, blocks[None].shape)
    counter = [
        np.broadcast_to(blocks[None] & _LOW, shape),
        np.broadcast_to(blocks[None] >> _HALF, shape),
        np.full(shape, stream, dtype=np.uint64),
        np.zeros(shape, dtype=np.uint64),
    ]
    return np.stack(mixed(counter, [seeds & _LOW, seeds >> _HALF]), axis=-1).astype(np.uint32)


def mixed(counter: list[Any], key: list[Any]) -> list[Any]:
    """Return the words of counters and keys of 32 bits each, held in arrays or tensors of 64."""
    for _ in range(_ROUNDS):
        first, second = _MULTIPLIERS[0] * counter[0], _MULTIPLIERS[1] * counter[2]
        counter = [
            ((second >> 32) & 0xFFFFFFFF) ^ counter[1] ^ key[0],
            second & 0xFFFFFFFF,
            ((first >> 32) & 0xFFFFFFFF) ^ counter[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(part + step) & 0xFFFFFFFF for part, step in zip(key, _KEY_STEPS, strict=True)]
    return counter


def uniforms(seeds: NDArray[np.uint64], count: int, stream: Stream) -> NDArray[np.float32]:
    """Draw `count` numbers strictly between 0 and 1 for each seed: shape (seeds, count)."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    words = philox(np.asarray(seeds, dtype=np.uint64), blocks, int(stream))
    words = words.reshape(len(seeds), 4 * len(blocks))[:, :count]
    return ((words >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)


def normals(seeds: NDArray[np.uint64], count: int, stream: Stream) -> NDArray[np.float32]:
    """Draw `count` standard normal numbers for each seed, by Box and Muller's transform."""
    pairs = -(-count // 2)
    numbers = uniforms(seeds, 2 * pairs, stream)
    radius = np.sqrt(-2.0 * np.log(numbers[:, :pairs]))
    angle = np.float32(2.0 * np.pi) * numbers[:, pairs:]
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return both[:, :count].astype(np.float32)


def normals_at(
    seeds: NDArray[np.uint64], positions: NDArray[np.int64], stream: Stream
) -> NDArray[np.float32]:
    """Draw a standard normal number for each seed and place: (seeds, places).

    A number depends on its seed and its place alone, however many others are drawn.
    """
    words = philox(seeds, positions.astype(np.uint64), int(stream))[..., :2]
    numbers = ((words >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
    radius = np.sqrt(np.float32(-2.0) * np.log(numbers[..., 0]))
    return radius * np.cos(np.float32(2.0 * np.pi) * numbers[..., 1])


def decision_seeds(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return the seeds of decisions `first` to `first + count - 1` of a bandit's life."""
    root = np.array([seed % 2**64], dtype=np.uint64)
    blocks = np.arange(first, first + count, dtype=np.uint64)
    words = philox(root, blocks, int(Stream.SEEDS))[0].astype(np.uint64)
    return words[:, 0] | (words[:, 1] << _HALF)
