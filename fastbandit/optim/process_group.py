"""Processes that train together: each takes a part of every minibatch, all take the same step.

All ranks draw the same rows from the random source that they share. So a group learns what one
process would, up to the noise of dropout and the order of sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor, nn

from fastbandit.errors import FastbanditError


@dataclass(frozen=True)
class Loop:
    """What a loop of training changes as it goes on: all that another process needs to go on."""

    network: nn.Module
    optimiser: torch.optim.Optimizer
    rng: Generator
    losses: list[Tensor] = field(default_factory=list)


Iterations = Callable[[Loop, int], Iterable[int]]
"""Called with a loop and how often it is to be done: yields the numbers of what is left of it."""


def all_iterations(loop: Loop, count: int) -> Iterable[int]:
    return range(count)


@runtime_checkable
class ProcessGroup(Protocol):
    """Processes that train together, each with a `rank` below `size`."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def noise(self, rng: Generator) -> Generator:
        """Return the source of this rank's own noise, drawn from the one that all share."""
        ...

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of each rank by their mean."""
        ...

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all ranks, one after the other."""
        ...

    def check(self, parameters: Iterable[Tensor]) -> None:
        """Raise unless all ranks hold the same numbers."""
        ...

    def iterations(self, loop: Loop, count: int) -> Iterable[int]:
        """Return the numbers of a loop's iterations that are still to be done, in their order."""
        ...


@dataclass(frozen=True)
class SingleProcess:
    """A group of one process: nothing is shared. `left_of` may go on with an earlier one's loop."""

    rank: int = 0
    size: int = 1
    left_of: Iterations = all_iterations

    def noise(self, rng: Generator) -> Generator:
        return rng

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        pass

    def gather(self, own: Tensor) -> Tensor:
        return own

    def check(self, parameters: Iterable[Tensor]) -> None:
        pass

    def iterations(self, loop: Loop, count: int) -> Iterable[int]:
        return self.left_of(loop, count)


SINGLE = SingleProcess()


class TorchProcessGroup:
    """The processes of torch's process group, which has been started."""

    def __init__(self) -> None:
        self.rank, self.size = torch.distributed.get_rank(), torch.distributed.get_world_size()

    def noise(self, rng: Generator) -> Generator:
        seeds = torch.randint(2**62, (self.size,), generator=rng)
        return Generator().manual_seed(int(seeds[self.rank]))

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        parts = (flat / self.size).split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def gather(self, own: Tensor) -> Tensor:
        counts = own.new_zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(own)
        torch.distributed.all_reduce(counts)
        parts = [own.new_empty(int(count), *own.shape[1:]) for count in counts]
        parts[self.rank] = own.contiguous()
        for rank, part in enumerate(parts):
            torch.distributed.broadcast(part, src=rank)
        return torch.cat(parts)

    def iterations(self, loop: Loop, count: int) -> Iterable[int]:
        return all_iterations(loop, count)

    def check(self, parameters: Iterable[Tensor]) -> None:
        digest = hashlib.sha256()
        for one in parameters:
            digest.update(one.detach().cpu().numpy().tobytes())
        found: list[str | None] = [None] * self.size
        torch.distributed.all_gather_object(found, digest.hexdigest())
        if len(set(found)) != 1:
            raise FastbanditError(
                f"A process group needs to learn one network: got {len(set(found))} "
                f"different ones from {self.size} processes. Let all run the same versions of "
                f"torch on the same kind of processor, or train with one worker."
            )


def share_of(rows: Tensor, group: ProcessGroup) -> tuple[Tensor, float]:
    """Return a rank's part of a minibatch, and what its mean weighs in that of the whole.

    Weighed so, the mean over the ranks is the mean over the minibatch.
    """
    own = rows[group.rank :: group.size]
    return own, len(own) * group.size / len(rows)
