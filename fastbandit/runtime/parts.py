"""What a frozen policy consists of: plain arrays, by name, in the order the kernel takes them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Array, read_only
from fastbandit.arms.own_lists import own_lists, renewed_lists
from fastbandit.arms.partitions import Floats, Partitions, Positions
from fastbandit.declaration import known_name
from fastbandit.errors import InputError, NotFiniteError, SettingError, ShapeError
from fastbandit.features.kinds import shown
from fastbandit.files.array_specs import specs_of, stored
from fastbandit.noise.philox import decision_seeds
from fastbandit.runtime.fold import BOUND, draw_all_masks
from fastbandit.runtime.tables import Table

STORED_AS = {"to_embedding": "place"}
"""The names of arrays in files, where they differ."""
_OF_SOME = ("own_", "bounds")
_BY_ROW = ("own_means", "own_deviations", "own_constants", "own_widths")
DTYPES = ("float32", "int16", "int8")
"""What the coordinates of frozen arms may be stored as."""


DRAWS = 128
"""So many draws say how sure a model is that has no formula for it."""
FAR = 2**62
"""Draws behind propensities and intervals are none of a bandit's own decisions: theirs follow."""


@dataclass(frozen=True)
class FrozenModel:
    """Settings, encoder, reward network, posterior and generator.

    The last row or column of a layer is its constant. `to_embedding` maps points to embeddings: the
    axes, then the centre. `bonus` is what a bound adds, by its width, to the last weights,
    their constant and the wide weights; `root`, squared, is the inverse of Z. `box`
    holds the lowest and highest coordinates of the arms, their middle and half their
    difference. `own_*` are arm effects: shared weights, the prior's deviations, and by row the
    means and deviations of arms' own weights; or means and deviations of their constants, with a
    stamp that keeps draws apart, and the lists of `fastbandit.arms.own_lists`.
    `bounds` are what columns of contexts are clipped to, lowest and highest; none if it is empty.
    """

    counts: NDArray[np.int64] = stored("12", "int64")
    numbers: Floats = stored("4", is_finite=False)
    encoder: Floats = stored("encoded read")
    first_weights: Floats = stored("inputs units")
    first_biases: Floats = stored("units")
    deeper_weights: Floats = stored("deeper")
    hidden: NDArray[np.int64] = stored("layers", "int64")
    last_weights: Floats = stored("last")
    wide_weights: Floats = stored("inputs")
    to_embedding: Floats = stored("axes embedding")
    dropout: Floats = stored("masks 4", is_finite=False)
    mask_sizes: NDArray[np.int64] = stored("masks", "int64")
    centre: Floats = stored("2 drawn")
    spread: Floats = stored("drawn draws")
    bonus: Floats = stored("bonus")
    root: Floats = stored("roots gradient")
    layer_1: Floats = stored("signals width")
    layer_2: Floats = stored("between width")
    layer_3: Floats = stored("between proposed")
    box: Floats = stored("4 columns")
    own_shared: Floats = stored("own", default_factory=lambda: _nothing(1))
    own_prior: Floats = stored("own", default_factory=lambda: _nothing(1))
    own_means: Floats = stored("owners own_columns", default_factory=lambda: _nothing(2))
    own_deviations: Floats = stored("owners own_columns", default_factory=lambda: _nothing(2))
    own_constants: Floats = stored("constants", default_factory=lambda: _nothing(1))
    own_widths: Floats = stored("constants", default_factory=lambda: _nothing(1))
    own_stamp: NDArray[np.int64] = stored(
        "stamps", "int64", default_factory=lambda: read_only(np.zeros(0, np.int64))
    )
    own_rows: Positions = stored(
        "0 0", "int32", default_factory=lambda: read_only(np.zeros((0, 0), np.int32))
    )
    own_parts: Floats = stored("0 0", default_factory=lambda: _nothing(2))
    bounds: Floats = stored("bounds bounded", is_finite=False, default_factory=lambda: _nothing(2))

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def table(self) -> Table:
        """Where they lie, for compiled code."""
        return Table(self.arrays, specs_of(self))

    @cached_property
    def posterior_masks(self) -> Floats:
        """Dropout masks of some draws, which say how sure the model is: (draws, factors)."""
        masks = np.empty((DRAWS, int(self.mask_sizes.sum())), dtype=np.float32)
        seeds = decision_seeds(0, FAR, DRAWS)
        draw_all_masks(seeds, self.dropout, self.mask_sizes, np.float32(1.0), masks)
        return read_only(masks)

    def greedy(self) -> FrozenModel:
        """Return the same with draws and bounds of no width."""
        numbers = self.numbers.copy()
        numbers[0] = 0.0
        return replace(self, numbers=read_only(numbers))

    def with_lists(self) -> FrozenModel:
        """Return the same with lists of the best arms by their constants, where it has any."""
        if not len(self.own_constants):
            return self
        rows, parts = own_lists(self.own_constants, self.own_widths, **self._terms)
        return replace(self, own_rows=read_only(rows), own_parts=read_only(parts))

    @property
    def own(self) -> Floats:
        """What arms have of their own: constants (N,), or weights (N, K), or nothing."""
        return self.own_constants if len(self.own_constants) else self.own_means

    def with_own(self, rows: NDArray[np.int64], means: Floats, deviations: Floats) -> FrozenModel:
        """Return the same with other constants or weights of some rows, and lists that know."""
        if not len(self.own_constants):
            return self._with(
                own_means=_changed(self.own_means, rows, means),
                own_deviations=_changed(self.own_deviations, rows, deviations),
            )
        constants = _changed(self.own_constants, rows, means)
        widths = _changed(self.own_widths, rows, deviations)
        lists = (self.own_rows, self.own_parts)
        listed, parts = renewed_lists(lists, constants, widths, rows, **self._terms)
        return self._with(
            own_constants=constants,
            own_widths=widths,
            own_rows=read_only(listed),
            own_parts=read_only(parts),
        )

    def of_rows(self, rows: NDArray[np.int64]) -> FrozenModel:
        """Return the same for some arms alone, all of which are scored: what is theirs, by row."""
        return self._of_first if rows.tolist() == [0] else self._of_rows(rows)

    @cached_property
    def _of_first(self) -> FrozenModel:
        return self._of_rows(np.zeros(1, dtype=np.int64))

    def _of_rows(self, rows: NDArray[np.int64]) -> FrozenModel:
        names = [n for n in _BY_ROW if len(getattr(self, n))]
        own: dict[str, Any] = {name: read_only(getattr(self, name)[rows]) for name in names}
        if len(self.own_constants):
            none = np.zeros((1, 0))
            own["own_rows"] = read_only(none.astype(np.int32))
            own["own_parts"] = read_only(none.astype(np.float32))
        return self._with(**own)

    def _with(self, **own: Array) -> FrozenModel:
        """Return the same with some other arrays: where the rest lies is known."""
        changed = replace(self, **own)
        vars(changed)["table"] = Table(changed.arrays, self.table.specs, before=self.table)
        return changed

    @property
    def _terms(self) -> dict[str, Any]:
        """How own constants are drawn."""
        is_drawn, stamp = int(self.counts[1]) != BOUND, int(self.own_stamp[0])
        return {"scale": float(self.numbers[0]), "is_drawn": is_drawn, "stamp": stamp}

    @property
    def stored(self) -> dict[str, Array]:
        """The arrays to be written, by name: without what only some models have.

        Lists are made again by whoever reads the arrays.
        """
        names = [f.name for f in fields(self) if f.name not in ("own_rows", "own_parts")]
        named = {STORED_AS.get(name, name): getattr(self, name) for name in names}
        return {name: a for name, a in named.items() if a.size or not name.startswith(_OF_SOME)}


@dataclass(frozen=True)
class FrozenArms:
    """Arms in the order of their partitions, and the neighbours of each position.

    Vectors may be whole numbers of 8 or 16 bits: times the first row of `decode`, plus the
    second, they are coordinates.
    """

    order: Positions = stored("arms", "int32", least=0, below="rows")
    vectors: Floats | NDArray[np.int16] | NDArray[np.int8] = stored("arms dim", *DTYPES)
    decode: Floats = stored("2 dim")
    graph: Positions = stored("arms neighbours", "int32", least=-1, below="arms")
    centres: NDArray[np.float32] = stored("blocks columns 16", is_finite=False)
    groups: NDArray[np.float32] = stored("group_blocks columns 16", is_finite=False)
    far: Positions = stored("outermost", "int32", least=0, below="arms")

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def table(self) -> Table:
        """Where they lie, for compiled code."""
        return Table(self.arrays, specs_of(self))

    @cached_property
    def kind(self) -> Array:
        """No numbers, of the kind that vectors are stored as: which code is compiled for."""
        return np.empty(0, dtype=self.vectors.dtype)

    @property
    def points(self) -> Floats:
        """The coordinates of all positions."""
        return self.vectors * self.decode[0] + self.decode[1]

    @property
    def dtype(self) -> str:
        """The kind of numbers that vectors are stored as."""
        return str(self.vectors.dtype)

    @staticmethod
    def of(
        partitions: Partitions, rows: NDArray[np.int64], graph: Positions, *, dtype: str = "float32"
    ) -> FrozenArms:
        """Freeze partitions of these rows; the graph is by position."""
        order = rows[partitions.order].astype(np.int32)
        vectors, decode = packed(partitions.vectors, dtype)
        index = (partitions.centres, partitions.groups, partitions.far)
        return FrozenArms(*map(read_only, (order, vectors, decode, graph, *index)))


def _changed(numbers: Floats, rows: NDArray[np.int64], others: Floats) -> Floats:
    """Return a copy with other numbers in some rows."""
    copied = numbers.copy()
    copied[rows] = others
    return read_only(copied)


def _nothing(axes: int) -> Floats:
    return read_only(np.zeros((0,) * axes, dtype=np.float32))


def packed(vectors: Floats, dtype: str) -> tuple[Array, Floats]:
    """Return vectors in fewer bits, and the factor and shift of each column that undo it."""
    known_name("kind of numbers", dtype, DTYPES)
    dim = vectors.shape[1]
    if dtype == "float32":
        return vectors, np.stack([np.ones(dim), np.zeros(dim)]).astype(np.float32)
    most = np.iinfo(dtype).max
    low, high = vectors.min(0).astype(np.float64), vectors.max(0).astype(np.float64)
    factor = np.maximum((high - low) / (2 * most), 1e-12)
    shift = (high + low) / 2
    whole = np.rint((vectors - shift) / factor).astype(dtype)
    return whole, np.stack([factor, shift]).astype(np.float32)


def check_delta(
    own: Floats, rows: Any, means: Any, deviations: Any
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return rows, means and deviations of what arms have of their own, or say what is wrong.

    `own` is what they have: a constant an arm (N,), or weights (N, K).
    """
    arms = len(own)
    if not arms:
        raise SettingError(
            "A delta needs arms with constants or weights of their own: this bandit has none. "
            "Build it with posterior='arm-effects', and update it first."
        )
    listed, middle, width = np.asarray(rows), np.asarray(means), np.asarray(deviations)
    wanted = (listed.size, *own.shape[1:])
    are_alike = listed.shape == wanted[:1] and middle.shape == width.shape == wanted
    if not are_alike or listed.dtype.kind not in "iu":
        raise ShapeError(
            f"A delta needs a row for each arm, and means and deviations of shape {wanted}: got "
            f"{shown(rows)}, {shown(means)} and {shown(deviations)}. Give all three for each arm."
        )
    if listed.size and not 0 <= listed.min() <= listed.max() < arms:
        raise InputError(
            f"A delta needs rows of the arms that were frozen, from 0 to {arms - 1}: got "
            f"{listed.min()} to {listed.max()}. Apply it to the bandit it was made for."
        )
    middle, width = middle.astype(np.float32), width.astype(np.float32)
    if not (np.isfinite(middle).all() and np.isfinite(width).all() and (width >= 0).all()):
        raise NotFiniteError(
            "A delta needs finite means, and deviations of 0 or more: got others. Leave those "
            "arms out."
        )
    return listed.astype(np.int64), middle, width
