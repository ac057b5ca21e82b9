"""Gaussian-process policies on a box: upper confidence (GP-UCB) and Thompson sampling (GP-TS).

Srinivas, Krause, Kakade and Seeger, "Gaussian process optimization in the bandit setting"
(2010); Chowdhury and Gopalan, "On kernelized multi-armed bandits" (2017). The kernel is
Matérn 5/2 with a length for each side, and noise; scikit-learn fits these numbers by maximum
likelihood. A batch of GP-UCB is picked one by one, each pick with the mean as a fantasy reward
(Desautels, Krause and Burdick 2014). The theory's width √β grows and is far too wide: here it
is `width`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbandit.arms.requests import Request, read_context
from fastbandit.errors import MissingExtraError, SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, normals, uniforms
from fastbandit.types import Decision, Features
from lab.baselines.points import BoxTable, Floats, cover

if TYPE_CHECKING:
    from fastbandit.arms.box import Box

_FIT_POINTS = 300  # that lengths and noise are fitted on
_STORED_POINTS = 1000  # different points that the posterior is computed from
_PICKS = 128  # different points in a batch
_FAR = 2**61  # a position in the seed's life that no decision will reach
_RADII = (0.2, 0.07, 0.025, 0.01)  # of the looks around the best points, in shares of the box


@dataclass(frozen=True, eq=False)
class Kernel:
    """Matérn 5/2: a variance, a length for each side of the unit cube, and noise variance."""

    variance: float
    lengths: Floats
    noise: float

    def __call__(self, one: Floats, two: Floats) -> Floats:
        a, b = one / self.lengths, two / self.lengths
        squares = np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2.0 * a @ b.T
        distance = np.sqrt(5.0 * np.maximum(squares, 0.0))
        return self.variance * (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior after rewards at points; a point with n rewards has a n-th of the noise."""

    kernel: Kernel
    points: Floats
    rewards: Floats
    counts: Floats

    @cached_property
    def centre(self) -> float:
        return float(np.average(self.rewards, weights=self.counts))

    @cached_property
    def root(self) -> Floats:
        noise = np.diag(self.kernel.noise / self.counts + 1e-8 * self.kernel.variance)
        return np.asarray(np.linalg.cholesky(self.kernel(self.points, self.points) + noise))

    def halves(self, points: Floats) -> Floats:
        """Return H with Hᵀ H = what is known of the covariance of points: (n, m)."""
        from scipy.linalg import solve_triangular

        known = self.kernel(self.points, points)
        return np.asarray(solve_triangular(self.root, known, lower=True, check_finite=False))

    def means(self, halves: Floats) -> Floats:
        from scipy.linalg import solve_triangular

        excess = self.rewards - self.centre
        return self.centre + halves.T @ solve_triangular(self.root, excess, lower=True)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Points that may be chosen, and what the posterior says of them."""

    posterior: Posterior
    points: Floats

    @cached_property
    def halves(self) -> Floats:
        return self.posterior.halves(self.points)

    @cached_property
    def means(self) -> Floats:
        return self.posterior.means(self.halves)

    @cached_property
    def variances(self) -> Floats:
        known = np.square(self.halves).sum(axis=0)
        return np.maximum(self.posterior.kernel.variance - known, 0.0)

    @cached_property
    def covariance_root(self) -> Floats:
        """R with R Rᵀ = the covariance of all candidates."""
        kernel = self.posterior.kernel
        covariance = kernel(self.points, self.points) - self.halves.T @ self.halves
        for jitter in (1e-8, 1e-6, 1e-4):
            try:
                ridge = jitter * kernel.variance * np.eye(len(self.points))
                return np.asarray(np.linalg.cholesky(covariance + ridge))
            except np.linalg.LinAlgError:  # rounding left it short of positive
                continue
        return np.diag(np.sqrt(self.variances))

    def bounds(self, width: float) -> Floats:
        return np.asarray(self.means + width * np.sqrt(self.variances))

    def pick(self, count: int, *, width: float, repeats: int) -> tuple[list[int], list[float]]:
        """Pick points one by one, each as if its mean had been seen `repeats` times."""
        kernel, variances = self.posterior.kernel, self.variances.copy()
        columns, picked, bounds = np.empty((count, len(self.points))), [], []
        for number in range(count):
            scores = self.means + width * np.sqrt(np.maximum(variances, 0.0))
            best = int(scores.argmax())
            column = kernel(self.points[best : best + 1], self.points)[0]
            column -= self.halves[:, best] @ self.halves
            column -= columns[:number, best] @ columns[:number]
            columns[number] = column / np.sqrt(max(column[best], 0.0) + kernel.noise / repeats)
            variances -= columns[number] ** 2
            picked.append(best)
            bounds.append(float(scores[best]))
        return picked, bounds


class GaussianProcessBandit(ABC):
    """A Gaussian process over the points of a box; contexts are read and make no difference.

    Rewards at the same point are averaged. Of more than 1,000 different points the posterior
    keeps 1,000, drawn with the seed. Lengths and noise are fitted on at most 300
    rewards, the first 150 and as many of the others, evenly spread; they are fitted again
    whenever there are half as many rewards again.
    """

    _global_points: int
    _near_points: int

    def __init__(
        self,
        *,
        box: Box,
        context: int | Features | None,
        reward: RewardKind,
        seed: int,
        width: float,
    ) -> None:
        if not 0.0 <= width < np.inf:
            raise SettingError(
                f"The width needs to be a number of at least 0: got {width}. Try 2.0."
            )
        kind = None if context is None else read_context(context)
        self._table = BoxTable(box, kind, reward, seed)
        self._width = width
        self._points, self._rewards = np.empty((0, box.dim)), np.empty(0)
        self._kernel: Kernel | None = None
        self._fitted = 0
        self._candidates: Candidates | None = None
        self._decided = 0
        self._version = 0

    @abstractmethod
    def _choose(self, candidates: Candidates, request: Request) -> tuple[Any, Floats]:
        """Return a candidate's number and a score for each decision."""

    def select(self, contexts: Any, *, explore: bool = True) -> Decision:
        """Choose a point for each context (the highest mean, without exploration)."""
        request = self._table.read_request(contexts, first=self._decided)
        batch = len(request.seeds)
        if self._candidates is None:
            decision = self._table.decide_uniformly(request)
        else:
            candidates = self._candidates
            best = int(candidates.means.argmax())
            chosen: Any = np.full(batch, best)
            scores = np.full(batch, candidates.means[best])
            if explore and batch:
                chosen, scores = self._choose(candidates, request)
            decision = self._table.decide(
                request,
                candidates.points[chosen],
                scores,
                version=self._version,
                evaluations=len(candidates.points),
            )
        self._decided += batch
        return decision

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from rewards: costs the cube of the number of different points, up to 1,000."""
        shares, numbers = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        if len(numbers) == 0:
            return
        points = np.concatenate([self._points, shares])
        values = np.concatenate([self._rewards, numbers])
        kernel, fitted = self._kernel, self._fitted
        if kernel is None or len(values) >= 1.5 * fitted:
            kernel, fitted = fit_kernel(points, values, start=kernel), len(values)
        posterior = Posterior(kernel, *_distinct(points, values, seed=self._table.seed))
        self._candidates = self._look(posterior)
        self._points, self._rewards = points, values
        self._kernel, self._fitted = kernel, fitted
        self._version += 1

    def _look(self, posterior: Posterior) -> Candidates:
        """Cover the box; in more than one dimension look ever closer around the best points."""
        dim = self._table.box.dim
        if dim == 1:
            return Candidates(posterior, cover(1000, 1))
        seeds = decision_seeds(self._table.seed, _FAR, 1)
        shift = uniforms(seeds, dim, Stream.TRAINING)[0].astype(np.float64)
        points = cover(self._global_points, dim, shift=shift)
        for radius in _RADII:
            bounds = Candidates(posterior, points).bounds(self._width)
            tops = points[np.argsort(-bounds, kind="stable")[:5]]
            steps = radius * (2.0 * cover(self._near_points // 5, dim, shift=shift) - 1.0)
            near = np.clip(tops[:, None] + steps, 0.0, 1.0).reshape(-1, dim)
            points = np.concatenate([points, near])
        return Candidates(posterior, points)


class GaussianProcessUCB(GaussianProcessBandit):
    """GP-UCB: the point with the highest mean + `width` x standard deviation.

    It looks at 1,000 points of a line, or at 2,000 of more dimensions, a quarter of them near
    the best. Pretend rewards are forgotten when `select` returns. Of a batch of more than 128
    decisions several share a point.
    """

    _global_points, _near_points = 1500, 125

    def __init__(
        self,
        *,
        box: Box,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
        width: float = 2.0,
    ) -> None:
        super().__init__(box=box, context=context, reward=reward, seed=seed, width=width)

    def _choose(self, candidates: Candidates, request: Request) -> tuple[Any, Floats]:
        batch = len(request.seeds)
        repeats = -(-batch // _PICKS)
        count = -(-batch // repeats)
        picked, bounds = candidates.pick(count, width=self._width, repeats=repeats)
        turns = np.arange(batch) % count
        return np.array(picked)[turns], np.array(bounds)[turns]


class GaussianProcessTS(GaussianProcessBandit):
    """GP-TS: the best point under one draw of the whole function for each decision.

    A draw is of 1,000 points, 400 of them near the best in more than one dimension, where
    `width` says how bold the look for these is. `scale` widens (or narrows) the draws.
    """

    _global_points, _near_points = 600, 100

    def __init__(
        self,
        *,
        box: Box,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
        width: float = 2.0,
        scale: float = 1.0,
    ) -> None:
        if not 0.0 <= scale < np.inf:
            raise SettingError(
                f"The scale needs to be a number of at least 0: got {scale}. Try 1.0."
            )
        super().__init__(box=box, context=context, reward=reward, seed=seed, width=width)
        self._scale = scale

    def _choose(self, candidates: Candidates, request: Request) -> tuple[Any, Floats]:
        noise = normals(request.seeds, len(candidates.points), Stream.POSTERIOR)
        drift = noise.astype(np.float64) @ candidates.covariance_root.T
        draws = candidates.means + self._scale * drift
        chosen = draws.argmax(axis=1)
        return chosen, np.take_along_axis(draws, chosen[:, None], axis=1)[:, 0]


def fit_kernel(points: Floats, rewards: Floats, *, start: Kernel | None) -> Kernel:
    """Find the most likely variance, lengths and noise, from `start` or from three starts."""
    rows = _fit_rows(len(rewards))
    spread = float(rewards[rows].std()) or 1.0
    values = (rewards[rows] - rewards[rows].mean()) / spread
    dim = points.shape[1]
    starts = [Kernel(1.0, np.full(dim, length), 0.1) for length in (0.05, 0.2, 0.8)]
    if start is not None:
        starts = [
            replace(start, variance=start.variance / spread**2, noise=start.noise / spread**2)
        ]
    fits = [_fit_from(points[rows], values, each) for each in starts]
    best, _ = max(fits, key=lambda fit: fit[1])
    return replace(best, variance=best.variance * spread**2, noise=best.noise * spread**2)


def _fit_from(points: Floats, values: Floats, start: Kernel) -> tuple[Kernel, float]:
    process = _needed("sklearn.gaussian_process")
    kernels = process.kernels
    variance = kernels.ConstantKernel(np.clip(start.variance, 1e-2, 1e2), (1e-2, 1e2))
    matern = kernels.Matern(np.clip(start.lengths, 1e-2, 1e1), (1e-2, 1e1), nu=2.5)
    noise = kernels.WhiteKernel(np.clip(start.noise, 1e-4, 1e1), (1e-4, 1e1))
    model = process.GaussianProcessRegressor(variance * matern + noise, alpha=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a number at the edge of its range is an answer too
        model.fit(points, values)
    product, white = model.kernel_.k1, model.kernel_.k2
    lengths = np.broadcast_to(product.k2.length_scale, points.shape[1]).astype(np.float64)
    found = Kernel(float(product.k1.constant_value), lengths, float(white.noise_level))
    return found, float(model.log_marginal_likelihood_value_)


def _fit_rows(count: int) -> Any:
    """Choose what to fit on: the first, when all was tried, and the others evenly."""
    if count <= _FIT_POINTS:
        return np.arange(count)
    half = _FIT_POINTS // 2
    return np.concatenate([np.arange(half), np.linspace(half, count - 1, half).astype(np.int64)])


def _distinct(points: Floats, rewards: Floats, *, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return different points, their mean rewards and how many each had; 1,000 at most."""
    found, numbers = np.unique(points, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    counts = np.bincount(numbers).astype(np.float64)
    means = np.bincount(numbers, rewards) / counts
    if len(found) <= _STORED_POINTS:
        return found, means, counts
    drawn = uniforms(decision_seeds(seed, _FAR + 1, len(found)), 1, Stream.TRAINING)[:, 0]
    stored = np.argsort(drawn, kind="stable")[:_STORED_POINTS]
    return found[stored], means[stored], counts[stored]


def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            "Gaussian processes need scikit-learn, which is not installed. Run: "
            "pip install -e '.[lab]'"
        ) from error
