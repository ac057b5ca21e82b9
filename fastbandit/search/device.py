"""What one launch on a GPU needs: a small network to score arms by, and arms in partitions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Layered(Protocol):
    """A function of arms that is a small network, its weights there to be read."""

    first: Float[Tensor, "B H D"]
    first_bias: Float[Tensor, "B H"]
    deeper: tuple[Tensor, ...]  # the layers between the first and the last
    last: Float[Tensor, "B H"]
    wide: Float[Tensor, "B D"]
    constant: Float[Tensor, " B"]
    leak: float


@runtime_checkable
class DeviceIndex(Protocol):
    """Arms in partitions in the memory of a device, with the neighbours of each position."""

    order: Int[Tensor, " n"]  # the row of each position
    vectors: Float[Tensor, "n D"]
    graph: Int[Tensor, "n L"]
    centres: Float[Tensor, "C D"]
    groups: Float[Tensor, "G D"]
    far: Int[Tensor, " F"]
    partition: int  # the most that one holds
    near_groups: int  # groups of partitions that a look-up looks into
