"""Members that learn together: each takes a part of every minibatch, and all take the same step.

All members draw the same rows from the random source that they share, so that a team learns
what one alone would, up to the noise of dropout and the order of sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor, nn

from fastbandit.arms.partition_ranges import RangeWork, Rows
from fastbandit.errors import FastbanditError


@runtime_checkable
class ProcessGroup(Protocol):
    """Those who learn together; a member has a `rank` below `size`."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def noise(self, rng: Generator) -> Generator:
        """Give the source of this member's own noise, drawn from the one that all share."""
        ...

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of each member by their mean."""
        ...

    def gather(self, own: Tensor) -> Tensor:
        """Put the rows of all members one after the other."""
        ...

    def check(self, parameters: Iterable[Tensor]) -> None:
        """Raise unless all members hold the same numbers."""
        ...


@dataclass(frozen=True)
class SingleProcess:
    """A team of one: nothing is shared."""

    rank: int = 0
    size: int = 1

    def noise(self, rng: Generator) -> Generator:
        return rng

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        pass

    def gather(self, own: Tensor) -> Tensor:
        return own

    def check(self, parameters: Iterable[Tensor]) -> None:
        pass


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

    def check(self, parameters: Iterable[Tensor]) -> None:
        digest = hashlib.sha256()
        for one in parameters:
            digest.update(one.detach().cpu().numpy().tobytes())
        found: list[str | None] = [None] * self.size
        torch.distributed.all_gather_object(found, digest.hexdigest())
        if len(set(found)) != 1:
            raise FastbanditError(
                f"Members of a team need to learn the same network: got {len(set(found))} "
                f"different ones from {self.size} members. Let all run the same versions of "
                f"torch on the same kind of processor, or train with one worker."
            )


def share_of(rows: Tensor, group: ProcessGroup) -> tuple[Tensor, float]:
    """Give a member's part of a minibatch, and what its mean weighs in that of the whole.

    Weighed so, the mean over the members is the mean over the minibatch.
    """
    own = rows[group.rank :: group.size]
    return own, len(own) * group.size / len(rows)


@dataclass(frozen=True)
class GroupSpread:
    """Works out ranges, one for each member; all members get all of it."""

    group: ProcessGroup

    @property
    def parts(self) -> int:
        return self.group.size

    def __call__(self, work: RangeWork, count: int) -> Rows:
        """Do work on this member's range of range(count), and put those of all together."""
        ends = [count * (self.group.rank + more) // self.group.size for more in (0, 1)]
        own = torch.from_numpy(work(*ends))
        rows: Rows = self.group.gather(own).numpy()
        return rows
