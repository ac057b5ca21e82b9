"""Raw features to embeddings without torch: dense, sparse, ids, and features with ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Array, read_only
from fastbandit.arms.partitions import Floats
from fastbandit.errors import SnapshotError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.features.schema import Schema
from fastbandit.reward.context_features import LinearInputs
from fastbandit.types import Features, Inputs

_KINDS: dict[str, type[Dense] | type[Sparse] | type[Ids]] = {
    "Dense": Dense,
    "Sparse": Sparse,
    "Ids": Ids,
}


@dataclass(frozen=True)
class Encoding:
    """A kind of features, and the arrays that embed them.

    `matrix` (E, C + 1) acts on dense columns and a constant, `tokens` (C, E) are summed by a
    row's own weights, `ids` (n, E) are looked up. Those that a kind does not need are empty.
    Dense columns are cut to the two rows of `bounds`, or not where it is empty. `typical` is the
    mean of the dense columns that were seen, empty where it is not known.
    """

    kind: Features
    matrix: Floats
    tokens: Floats
    ids: Floats
    bounds: Floats = field(default_factory=lambda: read_only(np.zeros((0, 0), np.float32)))
    typical: Floats = field(default_factory=lambda: read_only(np.zeros(0, np.float32)))

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code embeds contexts by itself: plain numbers."""
        return isinstance(self.kind, Dense)

    @property
    def features(self) -> int:
        """How many numbers or words a row has beside its id."""
        return self.matrix.shape[1] - 1 if len(self.matrix) else len(self.tokens)

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        """Return for each row whether a number of it is cut: (n,)."""
        if inputs.dense is None or not self.bounds.size:
            return np.zeros(len(inputs), dtype=bool)
        low, high = self.bounds
        return np.asarray(((inputs.dense < low) | (inputs.dense > high)).any(axis=1))

    def embed(self, inputs: Inputs) -> Floats:
        """Embed rows: (n, E)."""
        size = max(
            part.shape[axis] for part, axis in ((self.matrix, 0), (self.tokens, 1), (self.ids, 1))
        )
        embedded = np.zeros((len(inputs), size), dtype=np.float32)
        if inputs.dense is not None:
            dense = np.clip(inputs.dense, *self.bounds) if self.bounds.size else inputs.dense
            embedded += dense @ self.matrix[:, :-1].T + self.matrix[:, -1]
        if inputs.sparse is not None:
            lengths = np.sqrt(np.asarray(inputs.sparse.multiply(inputs.sparse).sum(1))[:, 0])
            embedded += (inputs.sparse @ self.tokens) / np.where(lengths > 0, lengths, 1)[:, None]
        if inputs.ids is not None:
            is_known = inputs.ids < len(self.ids)
            embedded += self.ids[np.where(is_known, inputs.ids, 0)] * is_known[:, None]
        return embedded

    # -- files

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        named = {"matrix": self.matrix, "words": self.tokens, "ids": self.ids}
        return named | ({"bounds": self.bounds} if self.bounds.size else {})

    def note(self) -> dict[str, Any]:
        """Return the kind of features, and what is typical of them, as JSON values."""
        typical = {"typical": self.typical.tolist()} if self.typical.size else {}
        return {**note_of(self.kind), **typical}


@dataclass(frozen=True)
class LinearEncoding:
    """A kind of features, and what arms' own linear models see of them."""

    kind: Features
    inputs: LinearInputs
    is_compiled: ClassVar[bool] = False

    @property
    def features(self) -> int:
        """How many numbers or words a row has beside its id."""
        return len(self.inputs.features.scale)

    @property
    def typical(self) -> NDArray[np.float64]:
        """The mean of the dense columns that were seen, empty where there are none."""
        return self.inputs.features.shift

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        """Return for each context whether a number of it is cut: (n,)."""
        return self.inputs.features.is_clipped(inputs)

    def embed(self, inputs: Inputs) -> Floats:
        """Return what the linear models see: (n, K)."""
        return self.inputs(inputs).astype(np.float32)

    # -- files

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return self.inputs.arrays()

    def note(self) -> dict[str, Any]:
        """Return the kind of features as JSON values."""
        return {**note_of(self.kind), "seen": "linear"}


def encoding_from(note: dict[str, Any], arrays: dict[str, Array]) -> Encoding | LinearEncoding:
    """Return an encoding from its JSON values and arrays."""
    if note.get("seen") == "linear":
        return LinearEncoding(kind_from(note), LinearInputs.of(arrays))
    tokens = arrays.pop("words")
    typical = read_only(np.array(note.get("typical", ()), dtype=np.float32))
    return Encoding(kind_from(note), tokens=tokens, typical=typical, **arrays)


def typical_inputs(encoding: Encoding | LinearEncoding) -> Inputs:
    """Return one row whose features are all typical."""
    kind, typical = encoding.kind, encoding.typical
    plain = kind.features if isinstance(kind, FeaturesAndIds) else kind
    ids = np.zeros(1, dtype=np.int64) if isinstance(kind, Ids | FeaturesAndIds) else None
    if isinstance(plain, Sparse):
        from scipy.sparse import csr_matrix

        return Inputs(sparse=csr_matrix((1, plain.dim), dtype=np.float32), ids=ids)
    if isinstance(plain, Ids):
        return Inputs(ids=ids)
    sides = (plain.height, plain.width) if hasattr(plain, "height") else (plain.dim,)  # type: ignore[attr-defined]
    usual = typical if np.size(typical) else np.zeros(sides)
    return Inputs(dense=np.asarray(usual, dtype=np.float32).reshape(1, *sides), ids=ids)


def note_of(kind: Features) -> dict[str, Any]:
    """Turn a kind of features into JSON values."""
    if isinstance(kind, FeaturesAndIds):
        both = (note_of(kind.features), note_of(kind.ids))
        return {"kind": "FeaturesAndIds", "features": both[0], "ids": both[1]}
    size = kind.count if isinstance(kind, Ids) else getattr(kind, "dim", None)
    schema = getattr(kind, "schema", None)
    named = {} if schema is None else {"schema": schema.as_dict()}
    return {"kind": type(kind).__name__, "size": size, **named}


def kind_from(note: dict[str, Any]) -> Features:
    """Turn JSON values back into a kind of features."""
    if note["kind"] == "FeaturesAndIds":
        ids, features = kind_from(note["ids"]), kind_from(note["features"])
        if not isinstance(ids, Ids) or not isinstance(features, Dense | Sparse):
            raise ValueError(f"features {features} with ids {ids}")
        return FeaturesAndIds(features, ids)
    if note["kind"] not in _KINDS:
        raise SnapshotError(
            f"This version reads contexts of kind {', '.join(_KINDS)}: got {note['kind']!r}. "
            f"Install the version of fastbandit that froze it, or a newer one."
        )
    if "schema" in note:
        return Dense.of(Schema.from_dict(note["schema"]))
    return _KINDS[note["kind"]](int(note["size"]))
