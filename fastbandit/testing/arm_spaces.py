"""The contracts of arm spaces and of their indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from fastbandit.interfaces import ArmSpace, Index
from fastbandit.score import Candidates
from fastbandit.testing.laws import need, need_close


def check_arm_space(arms: ArmSpace, *, rng: Generator) -> None:
    """Every arm of a space lies in its box, is placed by its map, and is found where it lies."""
    everything, sample = arms.all(), arms.sample(9, rng=rng)
    shape = (arms.dim,)
    need(arms.low.shape == arms.high.shape == shape, f"a box of {arms.low.shape}, not {shape}")
    numbers = torch.rand(4, 3, arms.dim, generator=rng).to(arms.low)
    points = arms.low + (arms.high - arms.low) * numbers
    near = arms.nearest(points, 2, eligible=None)
    around = arms.around(points, 2, far=3, eligible=None)
    named = {"all()": everything, "sample()": sample, "nearest()": near, "around()": around}
    for name, some in named.items():
        inside = (some.points >= arms.low - 1e-4) & (some.points <= arms.high + 1e-4)
        need(bool(inside.all()), f"an arm of {name} lies outside the box")
        need(some.rows.shape == some.points.shape[:2], f"{name}: rows and points that differ")
    need(len(everything.rows) == len(sample.rows) == 1, "all() and sample() are a batch of one")
    placed = arms.to_embedding(points)
    need(placed.shape[:2] == (4, 3), f"place() turns {points.shape} into {placed.shape}")
    need_close(arms.to_embedding(points[1:2, :1]), placed[1:2, :1], "place() of one point alone")
    if arms.neighbours(everything.rows) is not None:
        _check_rows(arms, everything, rng=rng)


def _check_rows(arms: ArmSpace, everything: Candidates, *, rng: Generator) -> None:
    """A finite space finds each arm at its own point, respects masks, and knows neighbours."""
    total = everything.rows.shape[1]
    some = torch.randint(total, (1, 5), generator=rng)
    points = everything.points[:, some[0]]
    found = arms.nearest(points, 1, eligible=None)
    need_close(found.points, points, "the arm nearest to an arm")
    mask = torch.rand(3, total, generator=rng) < 0.3
    mask[:, 0] = True
    repeated = points.expand(3, -1, -1)
    masked = {
        "nearest()": arms.nearest(repeated, 4, eligible=mask),
        "around()": arms.around(repeated, 1, far=3, eligible=mask),
    }
    for name, near in masked.items():
        taken = mask.gather(1, near.rows.clamp_min(0)) | (near.rows < 0)
        need(bool(taken.all()), f"{name} returns an arm that is not eligible")
    few = arms.few(mask, total)
    need(few is not None, "few() returns nothing although all are few")
    if few is not None:
        sets = [set(rows[rows >= 0].tolist()) for rows in few.rows]
        wanted = [set(row.nonzero()[:, 0].tolist()) for row in mask]
        need(sets == wanted, "few() does not return exactly the eligible arms")
    need(arms.few(mask, 0) is None, "few() returns arms although none are few")
    beside = arms.neighbours(some)
    if beside is not None:
        rows = beside.rows.unflatten(1, (some.shape[1], -1))
        need(not bool((rows == some[..., None]).any()), "an arm is its own neighbour")
        real = beside.rows >= 0
        expected = everything.points[0][beside.rows.clamp_min(0)]
        need_close(beside.points[real], expected[real], "the points of neighbours")


def check_index(
    index: Index, vectors: NDArray[np.float32], *, numbers: np.random.Generator
) -> None:
    """An index returns different, eligible positions, nearest first, -1 only after the last."""
    total = len(vectors)
    need(len(index) == total, f"an index of {total} vectors says it holds {len(index)}")
    points = numbers.normal(size=(6, vectors.shape[1])).astype(np.float32)
    masks: list[NDArray[np.bool_] | None] = [None, numbers.random(total) < 0.5]
    lone = np.zeros(total, dtype=bool)
    lone[int(numbers.integers(total))] = True
    for eligible in [*masks, lone, np.zeros(total, dtype=bool)]:
        for count in (1, 10, total + 3):
            found = index.search(points, count, eligible=eligible)
            need(found.shape == (6, count), f"{found.shape} positions for {count} wanted")
            for point, row in zip(points, found, strict=True):
                _check_found(row, point, vectors, eligible)
    own = index.search(vectors[:5], 1)[:, 0]
    need_close(torch.from_numpy(vectors[own]), torch.from_numpy(vectors[:5]), "a vector's nearest")


def _check_found(row: Any, point: Any, vectors: Any, eligible: Any) -> None:
    """The positions found for a point are different, eligible, as many as there are, and sorted."""
    total = len(vectors) if eligible is None else int(eligible.sum())
    real, count = row[row >= 0], len(row)
    need(len(set(real.tolist())) == len(real), f"a position comes twice in {row.tolist()}")
    need(len(real) == min(count, total), f"{len(real)} of {count} wanted, {total} eligible")
    need(bool((row[len(real) :] == -1).all()), "an empty row before a position")
    need(eligible is None or bool(eligible[real].all()), "a position that is not eligible")
    distances = np.square(vectors[real] - point).sum(1)
    need(bool((np.diff(distances) >= -1e-3).all()), "a nearer position after a farther one")
