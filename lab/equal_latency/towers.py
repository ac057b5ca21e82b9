"""Two towers: a network of the context and one of the arm, whose dot product is the reward.

Covington, Adams and Sargin, "Deep neural networks for YouTube recommendations" (2016); Yi et al.,
"Sampling-bias-corrected neural modeling for large corpus item recommendations" (2019). Trained on
rewards, not on clicks among others: what was not shown is not counted as refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Layers = tuple[tuple[Floats, Floats], ...]


@dataclass(frozen=True)
class Fit:
    """The shape of both towers, and how they are trained, anew on all interactions each time."""

    hidden: int = 64
    width: int = 32
    steps: int = 1000
    batch: int = 256
    rate: float = 0.01
    penalty: float = 0.1


@dataclass(frozen=True, eq=False)
class Towers:
    """Both networks as arrays: weights and biases of their layers; `own` is what an id adds."""

    context: Layers
    arm: Layers
    own: Floats | float = 0.0

    def embed_contexts(self, vectors: Floats) -> Floats:
        """Return what is multiplied with arms: (n, width + 1); the last number is 1."""
        return _with_one(_forward(self.context, vectors))

    def embed_arms(self, vectors: Floats) -> Floats:
        """Return the arms' vectors: (N, width + 1); the last is what each is worth to anybody."""
        return np.asarray(_forward(self.arm, vectors) + self.own, dtype=np.float32)


def _forward(layers: Layers, vectors: Floats) -> Floats:
    (first, bias), (last, constant) = layers
    return np.asarray(np.maximum(vectors @ first + bias, 0.0) @ last + constant)


def _with_one(embedded: Floats) -> Floats:
    whole = np.ones((len(embedded), embedded.shape[1] + 1), dtype=np.float32)
    whole[:, :-1] = embedded
    return whole


@dataclass(frozen=True, eq=False)
class Seen:
    """Interactions: vectors of contexts (n, C), all arms (N, D), the rows chosen, the rewards."""

    contexts: Floats
    arms: Floats
    rows: NDArray[np.int64]
    rewards: NDArray[np.float64]


def fit_towers(seen: Seen, fit: Fit, *, is_binary: bool, has_own: bool, seed: int) -> Towers:
    """Train towers on interactions: squared error, or logistic loss where rewards are 0 and 1.

    With `has_own` each arm adds an embedding of its own to that of its features.
    """
    import torch

    rng = torch.Generator().manual_seed(seed)
    given = _layers(seen.contexts.shape[1], fit.hidden, fit.width, rng)
    shown = _layers(seen.arms.shape[1], fit.hidden, fit.width + 1, rng)
    own = torch.zeros(len(seen.arms) if has_own else 0, fit.width + 1).requires_grad_()
    x, a = torch.from_numpy(seen.contexts), torch.from_numpy(seen.arms[seen.rows])
    y, arms = torch.from_numpy(seen.rewards.astype(np.float32)), torch.from_numpy(seen.rows)
    y = y if is_binary else y - y.mean()
    optimiser = torch.optim.AdamW([*given, *shown, own], lr=fit.rate, weight_decay=fit.penalty)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, fit.steps)
    loss_of: Any = torch.nn.BCEWithLogitsLoss() if is_binary else torch.nn.MSELoss()
    for _ in range(fit.steps):
        rows = torch.randint(len(y), (min(fit.batch, len(y)),), generator=rng)
        right = _applied(shown, a[rows])
        right = right + own[arms[rows]] if has_own else right
        scores = (_applied(given, x[rows]) * right[:, :-1]).sum(1) + right[:, -1]
        optimiser.zero_grad()
        loss_of(scores, y[rows]).backward()
        optimiser.step()
        falling.step()
    return Towers(_as_arrays(given), _as_arrays(shown), own.detach().numpy() if has_own else 0.0)


def _layers(inputs: int, hidden: int, outputs: int, rng: Any) -> list[Any]:
    """Return weights and biases of two layers, as He et al. (2015) start them."""
    import torch

    first = torch.randn(inputs, hidden, generator=rng) * (2.0 / inputs) ** 0.5
    last = torch.randn(hidden, outputs, generator=rng) * (1.0 / hidden) ** 0.5 * outputs**-0.25
    parts = (first, torch.zeros(hidden), last, torch.zeros(outputs))
    return [part.requires_grad_() for part in parts]


def _applied(tower: list[Any], vectors: Any) -> Any:
    first, bias, last, constant = tower
    return (vectors @ first + bias).relu() @ last + constant


def _as_arrays(tower: list[Any]) -> Layers:
    first, bias, last, constant = (part.detach().numpy() for part in tower)
    return (first, bias), (last, constant)
