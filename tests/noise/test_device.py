"""Numbers drawn by torch are those drawn by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fastbandit.noise.device import uniforms_of, uniforms_on
from fastbandit.noise.philox import Stream, decision_seeds, uniforms


@pytest.mark.parametrize("count", [1, 4, 7, 80])
@pytest.mark.parametrize("stream", [Stream.POSTERIOR, Stream.STARTS])
def test_torch_draws_the_same_bits_as_numpy(count: int, stream: Stream) -> None:
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    seeds = np.concatenate([decision_seeds(3, 5, 40), ends])

    drawn = uniforms_of(torch.from_numpy(seeds.view(np.int64)), count, stream)

    assert np.array_equal(drawn.numpy(), uniforms(seeds, count, stream))


def test_numbers_for_the_cpu_come_from_numpy() -> None:
    seeds = decision_seeds(0, 0, 3)

    drawn = uniforms_on(torch.device("cpu"), seeds, 5, Stream.POSTERIOR)

    assert np.array_equal(drawn.numpy(), uniforms(seeds, 5, Stream.POSTERIOR))
