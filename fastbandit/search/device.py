"""What one launch on a GPU needs: a small network to score arms by, and arms in partitions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Layered(Protocol):
    """A function of arms that is a small network, its weights there to be read."""

    @property
    def first(self) -> Float[Tensor, "B H D"]: ...

    @property
    def first_bias(self) -> Float[Tensor, "B H"]: ...

    @property
    def deeper(self) -> tuple[Tensor, ...]:
        """The layers between the first and the last."""
        ...

    @property
    def last(self) -> Float[Tensor, "B H"]: ...

    @property
    def wide(self) -> Float[Tensor, "B D"]: ...

    @property
    def constant(self) -> Float[Tensor, " B"]: ...

    @property
    def leak(self) -> float: ...


@runtime_checkable
class DeviceIndex(Protocol):
    """Arms in cells in the memory of a device, with the neighbours of each place."""

    @property
    def order(self) -> Int[Tensor, " n"]:
        """The row of each position."""
        ...

    @property
    def vectors(self) -> Float[Tensor, "n D"]: ...

    @property
    def graph(self) -> Int[Tensor, "n L"]: ...

    @property
    def centres(self) -> Float[Tensor, "C D"]: ...

    @property
    def groups(self) -> Float[Tensor, "G D"]: ...

    @property
    def far(self) -> Int[Tensor, " F"]: ...

    @property
    def partition(self) -> int:
        """The most that a cell holds."""
        ...

    @property
    def near_groups(self) -> int:
        """How many groups of cells a look-up looks into."""
        ...
