"""What a linear model sees of a context: a few bounded numbers, fitted without any reward.

Numbers are standardised by statistics that no single row can move far, and clipped; the
directions of a text have one scale, for the first ones say most. Words are
weighted by how rare they are (idf) and scaled to length 1. Where there are more columns than
`most`, the principal directions of the contexts seen so far take their place. Ids differ
by fixed random signs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.types import Floats, Inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CLIP = 5.0
"""So many standard deviations from the mean, a number is cut."""
_FAR = 10.0  # times the median deviation: statistics see no number beyond
_ID_COLUMNS = 32
_ITERATIONS = 4
_SPARE = 8  # more directions than needed make the needed ones exact sooner
_SEED = 20
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """A fitted map from inputs to features of length about 1: arrays alone.

    `shift` and `scale` have a number a column (words: `scale` holds idf weights). `basis` has no
    columns where the columns themselves are the features. `length` is the mean length of what
    was seen.
    """

    shift: Floats
    scale: Floats
    basis: Floats
    length: float
    has_ids: bool

    @staticmethod
    def fit(inputs: Inputs, *, most: int, alike: Sequence[slice] = ()) -> ContextFeatures:
        """Fit scales and directions to the contexts seen so far; at most so many directions.

        Columns of a slice that are `alike` have one scale: those that vary more count for more.
        """
        if inputs.sparse is not None:
            return _fit_words(inputs, most)
        if inputs.dense is not None:
            return _fit_numbers(inputs, most, alike)
        return ContextFeatures.none(has_ids=True)

    @staticmethod
    def none(*, has_ids: bool) -> ContextFeatures:
        """Return features that see nothing of a context but its id."""
        return ContextFeatures(np.zeros(0), np.zeros(0), np.zeros((0, 0)), 1.0, has_ids)

    @property
    def count(self) -> int:
        plain = self.basis.shape[1] or len(self.scale)
        return plain + (_ID_COLUMNS if self.has_ids else 0)

    def __call__(self, inputs: Inputs) -> Floats:
        """Return the features of contexts: (n, count)."""
        parts = []
        if inputs.sparse is not None:
            weighted = _weighted(inputs.sparse, self.scale)
            plain = weighted @ self.basis if self.basis.size else weighted.toarray()
            parts.append(np.asarray(plain) / self.length)
        elif inputs.dense is not None:
            numbers = np.clip(self._standardised(inputs.dense), -CLIP, CLIP)
            parts.append((numbers @ self.basis if self.basis.size else numbers) / self.length)
        if self.has_ids:
            assert inputs.ids is not None
            parts.append(id_signs(inputs.ids))
        return np.concatenate(parts, axis=1)

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        """Return for each context whether a number of it was cut: (n,)."""
        if inputs.dense is None:
            return np.zeros(len(inputs), dtype=bool)
        return np.asarray((np.abs(self._standardised(inputs.dense)) > CLIP).any(axis=1))

    def _standardised(self, dense: NDArray[np.float32]) -> Floats:
        numbers: Floats = dense.reshape(len(dense), -1).astype(np.float64)
        return (numbers - self.shift) / self.scale


@dataclass(frozen=True, eq=False)
class FeatureNetwork:
    """Two layers of rectified units: what they say of a context, centred and of length about 1."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    centre: Floats
    length: float

    def __call__(self, plain: Floats) -> Floats:
        """Return the features of contexts: (n, units)."""
        if not self.first.size:
            return np.zeros((len(plain), 0))
        hidden = np.maximum(plain @ self.first + self.first_bias, 0.0)
        units: Floats = np.maximum(hidden @ self.second + self.second_bias, 0.0)
        return (units - self.centre) / self.length

    @staticmethod
    def none() -> FeatureNetwork:
        nothing = np.zeros(0)
        return FeatureNetwork(np.zeros((0, 0)), nothing, np.zeros((0, 0)), nothing, nothing, 1.0)


@dataclass(frozen=True, eq=False)
class LinearInputs:
    """What each arm's linear model sees of a context: a constant, features, a network's units."""

    features: ContextFeatures
    network: FeatureNetwork

    @property
    def count(self) -> int:
        """The number of inputs, the constant included."""
        return 1 + self.features.count + self.network.second.shape[1]

    def __call__(self, contexts: Inputs) -> Floats:
        """Return the inputs of contexts: (n, count)."""
        plain = self.features(contexts)
        return np.concatenate([np.ones((len(plain), 1)), plain, self.network(plain)], axis=1)

    @staticmethod
    def blank() -> LinearInputs:
        """Return inputs that see nothing of a context, before anything was learned."""
        return LinearInputs(ContextFeatures.none(has_ids=False), FeatureNetwork.none())

    def arrays(self) -> dict[str, NDArray[Any]]:
        features, network = self.features, self.network
        lengths = np.array([features.length, float(features.has_ids), network.length])
        layers = ("first", "first_bias", "second", "second_bias", "centre")
        seen = {name: getattr(features, name) for name in ("shift", "scale", "basis")}
        return {**seen, **{name: getattr(network, name) for name in layers}, "lengths": lengths}

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> LinearInputs:
        length, has_ids, scale = arrays["lengths"].tolist()
        plain = (arrays["shift"], arrays["scale"], arrays["basis"])
        layers = (arrays["first"], arrays["first_bias"], arrays["second"], arrays["second_bias"])
        return LinearInputs(
            ContextFeatures(*plain, length=length, has_ids=bool(has_ids)),
            FeatureNetwork(*layers, centre=arrays["centre"], length=scale),
        )


def _fit_numbers(inputs: Inputs, most: int, alike: Sequence[slice]) -> ContextFeatures:
    assert inputs.dense is not None
    numbers = inputs.dense.reshape(len(inputs), -1).astype(np.float64)
    shift, scale = robust_scale(numbers, alike=alike)
    standardised = np.clip((numbers - shift) / scale, -CLIP, CLIP)
    basis = np.zeros((numbers.shape[1], 0))
    if numbers.shape[1] > most:
        basis = principal_directions(standardised, most)
        standardised = standardised @ basis
    length = max(float(np.linalg.norm(standardised, axis=1).mean()), _TINY)
    return ContextFeatures(shift, scale, basis, length, inputs.ids is not None)


def _fit_words(inputs: Inputs, most: int) -> ContextFeatures:
    matrix = inputs.sparse
    assert matrix is not None
    seen = max(1, matrix.shape[0])
    share = np.bincount(matrix.indices, minlength=matrix.shape[1]) / seen
    idf = np.maximum(np.log(1.0 / (share + 0.5 / seen)), 0.0)
    basis = np.zeros((matrix.shape[1], 0))
    weighted = _weighted(matrix, idf)
    if matrix.shape[1] > most:
        basis = principal_directions(weighted, most)
    plain = np.asarray(weighted @ basis) if basis.size else weighted.toarray()
    length = max(float(np.linalg.norm(plain, axis=1).mean()), _TINY)
    return ContextFeatures(np.zeros(0), idf, basis, length, inputs.ids is not None)


def robust_scale(numbers: Floats, *, alike: Sequence[slice] = ()) -> tuple[Floats, Floats]:
    """Return the mean and the deviation of each column, after far numbers were drawn in.

    One row of 10^30 moves neither; flags and ordinary numbers are left as they are. Columns that
    are `alike` have the largest deviation among them.
    """
    near = np.clip(numbers, *usual_range(numbers))
    mean, std = near.mean(axis=0), near.std(axis=0)
    for span in alike:
        std[span] = std[span].max()
    is_flag = ((numbers == 0) | (numbers == 1)).all(axis=0)
    std = np.where(std > 1e-6 * np.maximum(np.abs(mean), _TINY), std, 1.0)
    return mean, np.where(is_flag, np.maximum(std, 0.1), std)


def usual_range(numbers: Floats, *, rare: float = 0.0) -> tuple[Floats, Floats]:
    """Return the lowest and highest number of each column that are not far from its others.

    Far is beyond ten times the median of how far numbers lie from their median, those at the
    median left out. Above 0, only a share `rare` of them (at least one) may be far, so that a
    column with a long tail keeps it.
    """
    centre = np.median(numbers, axis=0)
    away = np.abs(numbers - centre)
    width = np.zeros(numbers.shape[1])
    for column in range(numbers.shape[1]):
        there = np.sort(away[:, column][away[:, column] > 0])
        if len(there):
            width[column] = _FAR * np.median(there)
        left = len(there) - int(np.ceil(rare * len(there)))
        if rare and left > 0:
            width[column] = max(width[column], there[left - 1])
    return centre - width, centre + width


def principal_directions(rows: Any, count: int) -> Floats:
    """Return the directions (columns, count) along which rows are longest, by subspace iteration.

    Rows are dense or sparse, and are not made dense. The same rows give the same directions.
    """
    columns = rows.shape[1]
    size = min(columns, count + _SPARE)
    start = np.random.default_rng(_SEED).standard_normal((columns, size))
    basis = np.linalg.qr(start)[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    seen = rows @ basis
    _, axes = np.linalg.eigh(seen.T @ seen)
    return basis @ axes[:, ::-1][:, :count]


def _weighted(matrix: csr_matrix, weights: Floats) -> Any:
    """Return rows of words, weighted and scaled to length 1."""
    from scipy.sparse import csr_matrix

    data = matrix.data.astype(np.float64) * weights[matrix.indices]
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, weights=data * data, minlength=matrix.shape[0])
    data /= np.sqrt(np.maximum(squares, _TINY**2))[rows]
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def id_signs(ids: NDArray[np.int64]) -> Floats:
    """Return fixed random signs of each id, of length 1 together."""
    from fastbandit.noise.philox import philox

    words = philox(np.asarray(ids, dtype=np.uint64), np.zeros(1, dtype=np.uint64), _SEED)[:, 0, 0]
    bits = (words[:, None] >> np.arange(_ID_COLUMNS, dtype=np.uint32)) & np.uint32(1)
    return (2.0 * bits - 1.0) / np.sqrt(_ID_COLUMNS)
