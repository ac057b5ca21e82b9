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
from fastbandit.arms.ids import ArmIds
from fastbandit.arms.lookup import Lookup
from fastbandit.arms.offers import PLACEHOLDER
from fastbandit.arms.rows import ArmRows, Upserted
from fastbandit.arms.spanner import SPANNING, spanning_positions
from fastbandit.score import Affine, Candidates
from fastbandit.types import Inputs

Embed = Callable[[Inputs], Tensor] | None
"""How a model sees features of arms; None before it has learned anything."""


@dataclass(frozen=True)
class Catalogue:
    """Arms that may be chosen, and where a model sees them.

    A catalogue is never changed, only replaced. Before a model has embedded it, it holds rows
    alone.
    """

    rows: ArmRows
    frame: Frame | None = None
    vectors: Float[Tensor, "N D"] | None = None
    lookup: Lookup | None = None

    @staticmethod
    def of(ids: ArmIds, features: Inputs, columns: Any = None) -> Catalogue:
        """Return a catalogue of arms that no model has embedded yet."""
        return Catalogue(ArmRows.of(ids, features, columns))

    def __len__(self) -> int:
        return self.rows.live_count

    @property
    def table(self) -> ArmIds:
        """The ids, by row."""
        return self.rows.ids

    @property
    def features(self) -> Inputs:
        assert self.rows.features is not None
        return self.rows.features

    @property
    def live(self) -> NDArray[np.bool_]:
        return self.rows.live

    def is_live(self, id: Any) -> bool:
        return self.rows.is_live(id)

    # -- a new catalogue from this one

    def add(
        self, ids: Iterable[Any] | None, features: Inputs, *, columns: Any = None, embed: Embed
    ) -> Catalogue:
        """Return a catalogue with more arms, where `embed` is the model's way to see them.

        Arms known before stay where they are in the coordinates; the index is built anew.
        """
        rows = self.rows.added(len(features), ids, features=features, columns=columns)
        return self._grown(rows, embed)

    def upsert(
        self, ids: list[Any], features: Inputs, *, columns: Any = None, embed: Embed
    ) -> tuple[Catalogue, Upserted]:
        """Return a catalogue with more arms, in place of those of the same ids, and counts."""
        rows, _, counts = self.rows.upserted(
            ids,
            features=features,
            columns=columns,
            is_same=lambda given, rows: _are_same(features.take(given), self.features.take(rows)),
        )
        return self._grown(rows, embed), counts

    def discard(self, ids: Iterable[Any]) -> tuple[Catalogue, list[Any]]:
        """Return a catalogue without these arms, and the ids of those that were not there."""
        rows, missing = self.rows.discarded(ids)
        return replace(self, rows=rows), missing

    def read_again(self, ids: list[Any], features: Inputs) -> Catalogue:
        """Return a catalogue in which these arms have other features, in the rows they have.

        Where a model sees them stays as it was until all are embedded anew.
        """
        rows, every, dense = self.table.rows(ids), self.features, features.dense
        if every.dense is None or dense is None or (every.dense[rows] == dense).all():
            return self
        changed = every.dense.copy()
        changed[rows] = dense
        return replace(self, rows=replace(self.rows, features=replace(every, dense=changed)))

    def _grown(self, rows: ArmRows, embed: Embed) -> Catalogue:
        if rows is self.rows:
            return self
        grown = Catalogue(rows)
        if self.frame is None or embed is None:
            return grown
        points = self.frame.coordinates(embed(grown.features.take(slice(self.rows.total, None))))
        vectors = torch.cat([self._vectors, points])
        return grown.restored(self.frame, vectors, rows.live_rows)

    def embedded_by(self, embed: Callable[[Inputs], Tensor]) -> Catalogue:
        """Embed all arms anew, and index those that are live."""
        embeddings = embed(self.features)
        indexed = self.rows.live_rows
        has_none = self.is_live(PLACEHOLDER)  # then arms come with requests
        seen = embeddings if has_none else embeddings[torch.from_numpy(indexed)]
        frame = frame_of(seen, is_whole=has_none)
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
        return self._candidates(self._lookup.nearest(points, count, eligible=eligible))

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Candidates:
        return self._candidates(self._lookup.around(points, partitions, far=far, eligible=eligible))

    def at(self, rows: Int[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
        """Return the coordinates of rows (of row 0 in place of -1)."""
        return self._vectors[rows.clamp_min(0)]

    def _candidates(self, rows: Int[Tensor, "B K"]) -> Candidates:
        return Candidates(rows, self.at(rows))

    def neighbours(self, rows: Int[Tensor, "B K"]) -> Candidates:
        near = self._lookup.graph[rows.clamp_min(0)].long()  # (B, K, L)
        return self._candidates(torch.where(rows[..., None] >= 0, near, -1).flatten(1))

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
        slot = torch.arange(len(row), device=row.device) - first[context]
        rows = row.new_full((len(eligible), width), -1)
        rows[context, slot] = row
        return self._candidates(rows)

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        rows = torch.from_numpy(self.rows.live_rows)
        picked = rows[torch.randint(len(rows), (count,), generator=rng)][None]
        return self._candidates(picked.to(self._vectors.device))

    def spanning(self, count: int) -> Candidates:
        rows = self._spanner if count <= SPANNING else self._span(count)
        return self._candidates(rows[None, :count])

    @cached_property
    def _spanner(self) -> Int[Tensor, " K"]:
        return self._span(SPANNING)

    def _span(self, count: int) -> Int[Tensor, " K"]:
        rows = torch.from_numpy(self.rows.live_rows).to(self._vectors.device)
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


def _are_same(some: Inputs, others: Inputs) -> NDArray[np.bool_]:
    """Compare features row by row; where ids alone are known, nothing differs."""
    is_same = np.ones(len(some), dtype=np.bool_)
    if some.dense is not None:
        is_same &= (some.dense == others.dense).all(axis=1)
    if some.sparse is not None:
        is_same &= np.diff((some.sparse != others.sparse).tocsr().indptr) == 0
    return is_same
