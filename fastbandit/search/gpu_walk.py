"""Landing and walking on a GPU, for a whole batch in one launch: what `land` and `hop` do.

One program of the kernel serves one context: it finds the partitions nearest to its points, scores
what they hold, and walks from the best arms to their neighbours, as the compiled search of
`fastbandit.runtime` does. Triton comes with torch for CUDA; without it torch does the same
in more steps.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fastbandit.search.limits import AT_LEAST, RERANKED
from fastbandit.search.ranking import NOTHING, Ranked, SearchRun

_MOST = 16  # arms asked for
_WIDEST = 128  # units of the network


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


def walks_on_gpu(run: SearchRun) -> bool:
    """Return whether one launch can do it: arms in a GPU, a network of one hidden layer."""
    function = run.surrogate.function
    return (
        run.eligible is None
        and run.count <= _MOST
        and run.score.contexts.device.type == "cuda"
        and isinstance(function, Layered)
        and not function.deeper
        and function.first.shape[1] <= _WIDEST
        and run.arms.device_index() is not None
        and find_spec("triton") is not None
    )


def walk(run: SearchRun, points: Float[Tensor, "B M D"], search: Any) -> Ranked:
    """Return the best arms that landing and walking find from some points."""
    net, device_index = run.surrogate.function, run.arms.device_index()
    assert isinstance(net, Layered)
    assert isinstance(device_index, DeviceIndex)
    import triton

    from fastbandit.search.gpu_kernel import walk_kernel

    run.tally.lookups += points.shape[1]
    partitions, count = max(search.partitions, -(-run.count // AT_LEAST)), max(run.count, RERANKED)
    hops, beam, far = search.hops, search.beam, min(search.far, len(device_index.far))
    batch, starts, dim = points.shape
    total, groups = len(device_index.centres), len(device_index.groups)
    partition, beside = device_index.partition, device_index.graph.shape[1]
    landed = (starts * partitions + -(-far // partition)) * partition
    room = landed + hops * beam * beside
    lists = torch.empty(2, batch, room, dtype=torch.float32, device=points.device)
    positions = torch.full((batch, room), -1, dtype=torch.int32, device=points.device)
    best = torch.empty(batch, count, dtype=torch.int32, device=points.device)
    scores = torch.empty(batch, count, dtype=torch.float32, device=points.device)
    found = torch.empty(batch, dtype=torch.int64, device=points.device)
    width = net.first.shape[1]
    kernel: Any = walk_kernel
    kernel[(batch,)](
        points.contiguous(),
        net.first.contiguous(),
        net.first_bias.contiguous(),
        net.last.contiguous(),
        net.wide.contiguous(),
        net.constant.contiguous(),
        device_index.vectors,
        device_index.graph,
        device_index.centres,
        device_index.groups,
        device_index.far,
        positions,
        lists[0],
        lists[1],
        best,
        scores,
        found,
        len(device_index.order),
        total,
        groups,
        LEAK=float(net.leak),
        DIM=dim,
        WIDTH=width,
        UNITS=triton.next_power_of_2(width),
        STARTS=starts,
        PARTITIONS=min(partitions, total),
        FAR=far,
        LANDED=landed,
        HOPS=hops,
        BEAM=beam,
        BESIDE=beside,
        COUNT=count,
        ROOM=room,
        LIST=triton.next_power_of_2(room),
        NEAR=min(device_index.near_groups, groups),
        ALL_GROUPS=triton.next_power_of_2(groups),
        SIZE=total // groups,
        PARTITION=partition,
        num_warps=2,
    )
    run.tally.evaluations += found
    positions = best.clamp_min(0).long()
    rows = torch.where(scores > NOTHING, device_index.order[positions], -1)
    return Ranked(rows, device_index.vectors[positions], scores)
