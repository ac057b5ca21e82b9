"""A box as a space of arms: points, their embeddings, and a fine cover."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.arms.box import Box
from fastbandit.arms.spanner import SPANNING, spanning_positions
from fastbandit.score import Candidates

_NEAR = 0.05
_EDGE = math.sqrt(3.0)  # points spread evenly over [-edge, edge] have standard deviation 1


@dataclass(frozen=True)
class BoxSpace:
    """A box as an arm space; `encode` is how a model that learned embeds its values.

    Searches move in points, from -√3 to √3 along each axis; `values` are in the user's units.
    """

    box: Box
    encode: Callable[[Tensor], Tensor] | None = None
    device: str = "cpu"
    size: ClassVar[None] = None

    @property
    def dim(self) -> int:
        return self.box.dim

    @cached_property
    def low(self) -> Float[Tensor, " D"]:
        return torch.full((self.dim,), -_EDGE, device=self.device)

    @cached_property
    def high(self) -> Float[Tensor, " D"]:
        return -self.low

    def embedded_by(self, encode: Callable[[Tensor], Tensor], *, device: str) -> BoxSpace:
        """Return the same box as a model that encodes values sees it."""
        return BoxSpace(self.box, encode, device)

    @property
    def to_embedding(self) -> Callable[[Tensor], Tensor]:
        encode = self.encode
        assert encode is not None, "a box is embedded by a model that has learned"
        return lambda points: encode(self.values(points))

    def values(self, points: Float[Tensor, "*s D"]) -> Float[Tensor, "*s D"]:
        """Turn points into the user's units."""
        low, high = self._corners(points)
        share = (points / _EDGE + 1) / 2
        return torch.clamp(low + (high - low) * share, low, high)

    def points(self, values: NDArray[np.float32]) -> Float[Tensor, "*s D"]:
        given = torch.as_tensor(values, dtype=torch.float32, device=self.device)
        low, high = self._corners(given)
        return (2 * (given - low) / (high - low) - 1) * _EDGE

    def _corners(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return like.new_tensor(self.box.low), like.new_tensor(self.box.high)

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Bool[Tensor, "b N"] | None
    ) -> Candidates:
        """Return the points themselves, for each is an arm, and others close around them."""
        batch, starts, dim = points.shape
        around = torch.clamp(points, self.low, self.high)[:, :, None] + self._offsets(count)
        around = torch.where(around > self.high, 2 * self.high - around, around)
        around = torch.where(around < self.low, 2 * self.low - around, around)
        around = around.reshape(batch, starts * count, dim)
        is_same = (around[:, :, None] == around[:, None]).all(-1)
        return Candidates(is_same.to(torch.uint8).argmax(-1), around)  # equal points, equal rows

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Candidates:
        """Return the points themselves and a few others close around, four for each partition."""
        return self.nearest(points, 4 * partitions, eligible=eligible)

    def _offsets(self, count: int) -> Float[Tensor, "K D"]:
        """Return `count` small steps, spread evenly around the first, which is none at all.

        Roberts' sequence: no two steps mirror each other, so none fall together at an edge.
        """
        root = 2.0
        for _ in range(40):
            root = (1 + root) ** (1 / (self.dim + 1))
        strides = root ** -torch.arange(1.0, self.dim + 1, dtype=torch.float64)
        positions = (torch.arange(count, dtype=torch.float64)[:, None] * strides + 0.5) % 1
        return (_NEAR * (2 * positions - 1)).float().to(self.device)

    def neighbours(self, rows: Int[Tensor, "B K"]) -> None:
        return None

    def device_index(self) -> None:
        return None

    def few(self, eligible: Bool[Tensor, "b N"] | None, limit: int) -> None:
        return None

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        numbers = torch.rand(count, self.dim, generator=rng).to(self.device)
        return self._as_candidates(self.low + (self.high - self.low) * numbers)

    def spanning(self, count: int) -> Candidates:
        """Return some of the fine cover."""
        positions = self._spanner if count <= SPANNING else self._span(count)
        return self._as_candidates(self.all().points[0, positions[:count]])

    @cached_property
    def _spanner(self) -> Int[Tensor, " K"]:
        return self._span(SPANNING)

    def _span(self, count: int) -> Int[Tensor, " K"]:
        return spanning_positions(self.all().points[0], count)

    def all(self) -> Candidates:
        """Return a fine cover: a grid in one dimension, Sobol's points in more."""
        if self.dim == 1:
            share = torch.linspace(0, 1, self.box.cover)[:, None]
        else:
            share = torch.quasirandom.SobolEngine(self.dim).draw(self.box.cover)
        return self._as_candidates(self.low + (self.high - self.low) * share.to(self.device))

    def _as_candidates(self, points: Float[Tensor, "K D"]) -> Candidates:
        return Candidates(torch.arange(len(points), device=points.device)[None], points[None])
