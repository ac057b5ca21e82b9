"""A frozen bandit that was never trained, made without torch: it decides as fast as any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastbandit.arms.cells import NEIGHBOURS, Floats, build_cells
from fastbandit.arms.ids import IdTable
from fastbandit.features import Dense
from fastbandit.runtime.encodings import Encoding
from fastbandit.runtime.fold import MEAN
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.kernel import ASCENT
from fastbandit.runtime.live import Live
from fastbandit.runtime.parts import Array, FrozenArms, FrozenModel, still
from fastbandit.runtime.words import Words

DIM = 8
"""Features of contexts and arms."""
_HIDDEN = 64
_LEAK = 0.1
_STARTS, _LOOKUPS, _CELLS, _FAR, _HOPS, _BEAM, _STEPS = 8, 2, 2, 32, 8, 4, 4
_STEP = 0.15 * np.sqrt(DIM)


@dataclass(frozen=True)
class Network:
    """One hidden layer over a context and an arm: (2 D, H) weights, and the last ones."""

    weights: Floats
    biases: Floats
    last: Floats

    def scores(self, context: Floats, arms: Floats) -> Floats:
        """Score all arms, in NumPy: (N,)."""
        shared = context @ self.weights[:DIM] + self.biases
        units = arms @ self.weights[DIM:] + shared
        scores: Floats = np.where(units > 0, units, np.float32(_LEAK) * units) @ self.last
        return scores


def draw_network(rng: np.random.Generator) -> Network:
    """Make up a network."""
    weights = rng.standard_normal((2 * DIM, _HIDDEN), np.float32) / np.float32(DIM**0.5)
    biases, last = (rng.standard_normal(_HIDDEN, np.float32) for _ in range(2))
    return Network(weights, biases, last)


def made_up_bandit(network: Network, arms: Floats) -> FrozenBandit:
    """Freeze a network over arms, whose coordinates are their features."""
    cells = build_cells(arms)
    frozen = FrozenArms.of(cells, np.arange(len(arms)), cells.graph(NEIGHBOURS))
    live = Live(frozen, IdTable(count=len(arms)), still(_zeros(0, DIM)), len(arms))
    as_it_is = still(np.eye(DIM, DIM + 1, dtype=np.float32))
    kind = Encoding(Dense(DIM), as_it_is, still(_zeros(1, 0)), still(_zeros(1, 0)))
    identity, middle = still(np.eye(DIM, dtype=np.float32)), still(_zeros(DIM))
    words = Words(kind, kind, identity, middle, "real", 0.0, 1.0, seed=0, version=1)
    return FrozenBandit(_model(network, arms), live, words)


def _model(network: Network, arms: Floats) -> FrozenModel:
    steps = (_STARTS, _LOOKUPS, _CELLS, _FAR, _HOPS, _BEAM, _STEPS)
    low, high = arms.min(0), arms.max(0)
    parts: dict[str, Array] = {
        "counts": np.array([ASCENT, MEAN, 0, 0, *steps, _HIDDEN], np.int64),
        "numbers": np.array([0.0, _STEP, _LEAK, np.inf], np.float32),
        "encoder": np.eye(DIM, DIM + 1, dtype=np.float32),
        "first_weights": network.weights,
        "first_biases": network.biases,
        "deeper_weights": _zeros(0),
        "hidden": np.array([_HIDDEN], np.int64),
        "last_weights": np.append(network.last, np.float32(0.0)),
        "wide_weights": _zeros(2 * DIM),
        "place": np.eye(DIM + 1, DIM, dtype=np.float32),
        "dropout": _zeros(0, 4),
        "mask_sizes": np.zeros(0, np.int64),
        "centre": _zeros(2, 0),
        "spread": _zeros(0, 0),
        "bonus": _zeros(0),
        "root": _zeros(0, 0),
        "layer_1": _zeros(1, 0),
        "layer_2": _zeros(1, 0),
        "layer_3": _zeros(1, 0),
        "box": np.stack([low, high, (high + low) / 2, (high - low) / 2]),
    }
    return FrozenModel(**{name: still(part) for name, part in parts.items()})


def _zeros(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)
