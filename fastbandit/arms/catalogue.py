"""A finite set of arms: ids, features, coordinates, and an index to find them by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.arms.device_partitions import DevicePartitions
from fastbandit.arms.frame import Frame, aligned, frame_of
from fastbandit.arms.ids import IdTable
from fastbandit.arms.lookup import Lookup
from fastbandit.arms.spanner import SPANNING, spanning_positions
from fastbandit.errors import EligibilityError, InputError, ShapeError
from fastbandit.interfaces import Affine, Candidates
from fastbandit.types import Inputs


@dataclass(frozen=True)
class Catalogue:
    """Arms that may be chosen. Rows never move: a removed arm keeps its row, unused.

    A catalogue is never changed, only replaced: `add`, `remove` and `embedded_by` give a new
    one. Before a model has embedded it, it holds ids and features alone.
    """

    table: IdTable
    features: Inputs
    live: NDArray[np.bool_]
    frame: Frame | None = None
    vectors: Float[Tensor, "N D"] | None = None
    lookup: Lookup | None = None

    @staticmethod
    def of(table: IdTable, features: Inputs) -> Catalogue:
        """Give a catalogue of arms that nobody has embedded yet."""
        if len(table) == 0:
            raise InputError("A catalogue needs at least one arm: got none. Give ids or features.")
        return Catalogue(table, features, np.ones(len(table), dtype=bool))

    def __len__(self) -> int:
        return int(self.live.sum())

    def is_live(self, id: Any) -> bool:
        """Tell whether an arm can be chosen."""
        return id in self.table and bool(self.live[self.table.rows([id])[0]])

    # -- a new catalogue from this one

    def add(
        self,
        ids: Iterable[Any] | None,
        features: Inputs,
        *,
        embed: Callable[[Inputs], Tensor] | None,
    ) -> Catalogue:
        """Give a catalogue with more arms, where `embed` is the model's way to see them.

        Arms known before stay where they are in the coordinates; the index is built anew.
        """
        first = len(self.table)
        ids = range(first, first + len(features)) if ids is None else ids
        table = self.table.append(ids, live=self.live)
        if len(table) != first + len(features):
            raise ShapeError(
                f"Each new arm needs one id and one row of features: got {len(table) - first} "
                f"ids and {len(features)} rows. Drop those that have only one of the two."
            )
        live = np.concatenate([self.live, np.ones(len(features), dtype=bool)])
        grown = Catalogue(table, Inputs.stack([self.features, features]), live)
        if self.frame is None or embed is None:
            return grown
        points = self.frame.coordinates(embed(features))
        return grown.restored(self.frame, torch.cat([self._vectors, points]), np.flatnonzero(live))

    def remove(self, ids: Iterable[Any]) -> Catalogue:
        """Give a catalogue in which these arms can no longer be chosen."""
        rows = self.table.rows(ids)
        live = self.live.copy()
        live[rows] = False
        if not live.any():
            raise EligibilityError(
                f"A catalogue needs at least one arm: removing {len(rows)} arms would leave none. "
                f"Add others first."
            )
        return replace(self, live=live)

    def embedded_by(self, embed: Callable[[Inputs], Tensor]) -> Catalogue:
        """Embed all arms anew, and index those that are alive."""
        embeddings = embed(self.features)
        indexed = np.flatnonzero(self.live)
        frame = frame_of(embeddings[torch.from_numpy(indexed)])
        if self.vectors is not None:
            frame = aligned(frame, embeddings[: len(self.vectors)], self.vectors)
        return self.restored(frame, frame.coordinates(embeddings).contiguous(), indexed)

    def restored(
        self, frame: Frame, vectors: Float[Tensor, "N D"], indexed: NDArray[np.int64]
    ) -> Catalogue:
        """Index the rows `indexed` by coordinates that were worked out before."""
        return replace(self, frame=frame, vectors=vectors, lookup=Lookup(vectors, indexed))

    # -- the role of an arm space

    @property
    def size(self) -> int:
        return len(self)

    @property
    def dim(self) -> int:
        return int(self._vectors.shape[1])

    @cached_property
    def low(self) -> Float[Tensor, " D"]:
        return self._vectors.amin(0)

    @cached_property
    def high(self) -> Float[Tensor, " D"]:
        return self._vectors.amax(0)

    @property
    def to_embedding(self) -> Affine:
        assert self.frame is not None, "a catalogue is embedded by a model that has learned"
        return self.frame.to_embedding

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Bool[Tensor, "b N"] | None
    ) -> Candidates:
        rows = self._lookup.nearest(points, count, eligible=eligible)
        return Candidates(rows, self.at(rows))

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Candidates:
        rows = self._lookup.around(points, partitions, far=far, eligible=eligible)
        return Candidates(rows, self.at(rows))

    def at(self, rows: Int[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
        """Give the coordinates of rows (of row 0 where a place is empty)."""
        return self._vectors[rows.clamp_min(0)]

    def neighbours(self, rows: Int[Tensor, "B K"]) -> Candidates:
        near = self._lookup.graph[rows.clamp_min(0)].long()  # (B, K, L)
        near = torch.where(rows[..., None] >= 0, near, -1).flatten(1)
        return Candidates(near, self.at(near))

    def device_index(self) -> DevicePartitions | None:
        return self._lookup.device_index if self._vectors.device.type == "cuda" else None

    def few(self, eligible: Bool[Tensor, "b N"] | None, limit: int) -> Candidates | None:
        if eligible is None:
            return None
        counts = eligible.sum(1)
        counts = torch.where(counts <= limit, counts, 0)
        width = int(counts.max())
        if width == 0:
            return None
        context, row = (eligible & (counts > 0)[:, None]).nonzero(as_tuple=True)
        first = counts.cumsum(0) - counts  # where each context's arms begin
        place = torch.arange(len(row), device=row.device) - first[context]
        rows = row.new_full((len(eligible), width), -1)
        rows[context, place] = row
        return Candidates(rows, self.at(rows))

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        rows = torch.from_numpy(np.flatnonzero(self.live))
        picked = rows[torch.randint(len(rows), (count,), generator=rng)][None].to(
            self._vectors.device
        )
        return Candidates(picked, self.at(picked))

    def spanning(self, count: int) -> Candidates:
        rows = self._spanner if count <= SPANNING else self._span(count)
        rows = rows[None, :count]
        return Candidates(rows, self.at(rows))

    @cached_property
    def _spanner(self) -> Int[Tensor, " K"]:
        return self._span(SPANNING)

    def _span(self, count: int) -> Int[Tensor, " K"]:
        rows = torch.from_numpy(np.flatnonzero(self.live)).to(self._vectors.device)
        return rows[spanning_positions(self._vectors[rows], count)]

    def all(self) -> Candidates:
        rows = torch.arange(len(self._vectors), device=self._vectors.device)[None]
        return Candidates(rows, self._vectors[None])

    @property
    def _vectors(self) -> Float[Tensor, "N D"]:
        assert self.vectors is not None, "a catalogue is searched after a model embedded it"
        return self.vectors

    @property
    def _lookup(self) -> Lookup:
        assert self.lookup is not None, "a catalogue is searched after a model embedded it"
        return self.lookup
