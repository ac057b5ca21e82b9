"""The numbers of `fastbandit.noise.philox` as tensors, drawn where they are needed."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.noise.philox import Stream, mixed, uniforms

_LOW = 0xFFFFFFFF


def uniforms_on(
    device: torch.device, seeds: NDArray[np.uint64], count: int, stream: Stream
) -> Float[Tensor, "B Z"]:
    """Draw `count` numbers strictly between 0 and 1 for each seed, on a device.

    On a GPU they are worked out there, bit by bit the same: a large batch would otherwise
    wait for the host.
    """
    if device.type == "cpu":
        return torch.from_numpy(uniforms(seeds, count, stream))
    signed = torch.from_numpy(np.ascontiguousarray(seeds, dtype=np.uint64).view(np.int64))
    return uniforms_of(signed.to(device), count, stream)


def uniforms_of(seeds: Int[Tensor, " B"], count: int, stream: Stream) -> Float[Tensor, "B Z"]:
    """Draw numbers from seeds whose 64 bits are those of `fastbandit.noise.philox`."""
    blocks = torch.arange(-(-count // 4), device=seeds.device)
    shape = (len(seeds), len(blocks))
    counter = [
        blocks.expand(shape),
        seeds.new_zeros(shape),
        seeds.new_full(shape, int(stream)),
        seeds.new_zeros(shape),
    ]
    key = [(seeds & _LOW)[:, None], ((seeds >> 32) & _LOW)[:, None]]
    words = torch.stack(mixed(counter, key), dim=-1).flatten(1)[:, :count]
    return ((words >> 9).float() + 0.5) * 2.0**-23
