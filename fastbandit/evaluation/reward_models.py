"""Models of the reward for the direct method and those that build on it.

The worth of arm a in context x is (1, x)ᵀ W (1, a) + b_a, before a link: every product of a
feature of the context and one of the arm, and an offset for each arm. W is fitted by ridge or
logistic regression; the offsets are means of what is left, shrunk by what their spread says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, NotFiniteError, ShapeError
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows

MODELS = ("ridge", "logistic")
Singles = NDArray[np.float32]
RewardFunction = Callable[[Singles, Rows], Any]
"""Given contexts (m, C) and the row of an arm for each, it returns expected rewards (m,)."""
RewardsOfArms: TypeAlias = "FunctionRewards | FittedRewards"

_CHUNK = 2**15
_AT_ONCE = 2**20
_MOST_PRODUCTS = 1_024
_FEW_ARMS = 512
_DRAWN_ARMS = 32
_NEWTON_STEPS = 8


# -- a model that is a function


@dataclass(frozen=True)
class FunctionRewards:
    """A function of contexts and rows as a model of the reward."""

    function: RewardFunction
    arms: int

    def of(self, contexts: Singles, rows: NDArray[Any]) -> Floats:
        """Return the rewards of arms (m, K) in contexts (m, C)."""
        tried = np.repeat(contexts, rows.shape[1], axis=0), rows.reshape(-1).astype(np.int64)
        found = np.asarray(self.function(*tried), dtype=np.float64)
        if found.shape != tried[1].shape:
            raise ShapeError(
                f"A model of the reward needs to give one number for each context and row, of "
                f"shape {tried[1].shape}: got {found.shape}. It is called with contexts (m, d) "
                f"and rows (m,)."
            )
        if not np.isfinite(found).all():
            raise NotFiniteError(
                f"A model of the reward needs to give finite numbers: got "
                f"{found[~np.isfinite(found)][0]}. Mend the model."
            )
        return found.reshape(rows.shape)

    def mean(self, contexts: Singles, *, rng: np.random.Generator) -> Floats:
        """Return the mean reward over all arms, in each context; drawn where they are many."""
        return _mean_over_arms(self, contexts, self.arms, rng=rng)


def _mean_over_arms(
    model: RewardsOfArms, contexts: Singles, arms: int, *, rng: np.random.Generator
) -> Floats:
    """Average over all arms where they are few, else over some drawn for each context.

    Those drawn leave a doubly robust estimate unbiased: they know nothing of the rewards.
    """
    found, width = np.empty(len(contexts)), min(arms, _FEW_ARMS)
    step = max(1, _AT_ONCE // width)
    for start in range(0, len(contexts), step):
        part = contexts[start : start + step]
        if arms <= _FEW_ARMS:
            rows = np.broadcast_to(np.arange(arms), (len(part), arms))
        else:
            rows = rng.integers(0, arms, size=(len(part), _DRAWN_ARMS))
        found[start : start + step] = model.of(part, rows).mean(axis=1)
    return found


# -- a model that is fitted


@dataclass(frozen=True, eq=False)
class Columns:
    """Features brought to mean 0 and deviation 1, on fewer axes where they are many."""

    middle: Singles
    axes: Singles  # (d, d')

    @staticmethod
    def of(values: Singles, *, most: int, seed: int) -> Columns:
        """Learn means and deviations; more than `most` features go to random axes."""
        width = values.std(axis=0, dtype=np.float64)
        scale = np.where(width > 1e-6, 1.0 / np.maximum(width, 1e-6), 0.0)
        axes = np.diag(scale)
        if values.shape[1] > most:
            drawn = np.random.default_rng(seed).normal(size=(values.shape[1], most))
            axes = axes @ np.linalg.qr(drawn)[0]
        middle = values.mean(axis=0, dtype=np.float64)
        return Columns(middle.astype(np.float32), axes.astype(np.float32))

    def with_one(self, values: Singles) -> Singles:
        """Return (1, features) for each row."""
        made = np.empty((len(values), 1 + self.axes.shape[1]), dtype=np.float32)
        made[:, 0] = 1.0
        np.matmul(values - self.middle, self.axes, out=made[:, 1:])
        return made


@dataclass(frozen=True, eq=False)
class FittedRewards:
    """W and the offsets, once fitted; `of_arms` holds (1, a) of every arm."""

    columns: Columns
    of_arms: Singles  # (N, 1 + D)
    weights: Floats  # (1 + C, 1 + D)
    offsets: Floats  # (N,)
    is_logistic: bool

    def of(self, contexts: Singles, rows: NDArray[Any]) -> Floats:
        """Return the rewards of arms (m, K) in contexts (m, C)."""
        raw = np.empty(rows.shape)
        step = max(1, _AT_ONCE // max(1, rows.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            towards = self.columns.with_one(contexts[part]) @ self.weights.astype(np.float32)
            raw[part] = np.einsum("md,mkd->mk", towards, self.of_arms[rows[part]])
        raw += self.offsets[rows]
        return 0.5 + 0.5 * np.tanh(0.5 * raw) if self.is_logistic else raw

    def mean(self, contexts: Singles, *, rng: np.random.Generator) -> Floats:
        """Return the mean reward over all arms: exact, unless the link is bent and arms many."""
        if self.is_logistic:
            return _mean_over_arms(self, contexts, len(self.offsets), rng=rng)
        middle = self.weights @ self.of_arms.mean(axis=0, dtype=np.float64)
        return np.asarray(self.columns.with_one(contexts) @ middle + self.offsets.mean())


@dataclass(frozen=True, eq=False)
class RewardFit:
    """Fits W and the offsets to rounds; `strength` is the penalty on W, None for the best."""

    columns: Columns
    of_arms: Singles
    strength: float | None
    is_logistic: bool

    @staticmethod
    def to(rounds: LoggedRounds, kind: str, *, strength: float | None, seed: int) -> RewardFit:
        """Make ready to fit; a logistic model needs rewards of 0 and 1."""
        if kind == "logistic" and not np.isin(rounds.rewards, (0.0, 1.0)).all():
            wrong = rounds.rewards[~np.isin(rounds.rewards, (0.0, 1.0))][0]
            raise InputError(
                f"A logistic model needs rewards of 0 and 1: got {wrong:g}. Use model='ridge'."
            )
        vectors = rounds.vectors
        if vectors is None:
            vectors = np.zeros((rounds.arms, 0), dtype=np.float32)
        most = int(np.sqrt(_MOST_PRODUCTS)) - 1 if vectors.shape[1] else _MOST_PRODUCTS
        columns = Columns.of(rounds.contexts, most=most, seed=seed)
        of_arms = Columns.of(vectors, most=most, seed=seed + 1).with_one(vectors)
        return RewardFit(columns, of_arms, strength, kind == "logistic")

    def fit(self, rounds: LoggedRounds, part: Rows) -> FittedRewards:
        """Fit to some of the rounds: ridge, and from there by Newton's steps where logistic."""
        shape = (1 + self.columns.axes.shape[1], self.of_arms.shape[1])
        none = np.zeros(len(self.of_arms))
        flat = FittedRewards(self.columns, self.of_arms, np.zeros(shape), none, False)
        slopes, curves = self._slopes(flat, rounds, part)
        rewards = rounds.rewards[part]
        strength = self.strength
        if strength is None:
            strength = best_strength(curves, slopes, squares=float(rewards @ rewards))
        if self.is_logistic:
            model = self._newton(replace(flat, is_logistic=True), rounds, part, strength=strength)
        else:
            model = replace(flat, weights=_solved(curves, slopes, strength).reshape(shape))
        return replace(model, offsets=_offsets(model, rounds, part))

    def _newton(
        self, model: FittedRewards, rounds: LoggedRounds, part: Rows, *, strength: float
    ) -> FittedRewards:
        share = (rounds.rewards[part].sum() + 0.5) / (len(part) + 1.0)
        strength *= share * (1.0 - share)  # the curvature of the link, beside ridge's 1
        model.weights[0, 0] = np.log(share / (1.0 - share))
        for _ in range(_NEWTON_STEPS):
            slopes, curves = self._slopes(model, rounds, part)
            pull = strength * model.weights.reshape(-1)
            pull[0] = 0.0
            step = _solved(curves, slopes - pull, strength).reshape(model.weights.shape)
            model = replace(model, weights=model.weights + step)
            if np.abs(step).max() < 1e-6:
                break
        return model

    def _slopes(
        self, model: FittedRewards, rounds: LoggedRounds, part: Rows
    ) -> tuple[Floats, Floats]:
        """Return the slope and the curvature of the log-likelihood in W, summed over rounds."""
        size = model.weights.size
        slopes, curves = np.zeros(size), np.zeros((size, size))
        for start in range(0, len(part), _CHUNK):
            some = part[start : start + _CHUNK]
            contexts, rows = rounds.contexts[some], rounds.chosen[some]
            ours, theirs = self.columns.with_one(contexts), self.of_arms[rows]
            products = (ours[:, :, None] * theirs[:, None, :]).reshape(len(some), size)
            found = model.of(contexts, rows[:, None])[:, 0]
            slopes += products.T @ (rounds.rewards[some] - found).astype(np.float32)
            if model.is_logistic:
                products *= np.sqrt(found * (1.0 - found))[:, None].astype(np.float32)
            curves += products.T @ products
        return slopes, curves


def _solved(curves: Floats, slopes: Floats, strength: float) -> Floats:
    penalty = np.full(len(slopes), strength + 1e-9)
    penalty[0] = 1e-9  # the intercept is free
    return np.asarray(np.linalg.solve(curves + np.diag(penalty), slopes), dtype=np.float64)


def best_strength(curves: Floats, slopes: Floats, *, squares: float) -> float:
    """Return the ridge penalty of the least generalised cross-validation error.

    Golub, Heath and Wahba (1979): n RSS / (n - trace)², with the intercept left free. It
    needs sums over rounds alone: of products, of products and rewards, and of squared rewards.
    """
    count = float(curves[0, 0])
    middle = curves[0, 1:] / count
    rest = curves[1:, 1:] - np.outer(curves[0, 1:], middle)
    widths, axes = np.linalg.eigh(rest)
    widths, along = np.maximum(widths, 0.0), (axes.T @ (slopes[1:] - middle * slopes[0])) ** 2
    total = squares - slopes[0] ** 2 / count
    strengths = np.logspace(-1.0, 7.0, 33)[:, None]
    left = total - (along * (widths + 2 * strengths) / (widths + strengths) ** 2).sum(axis=1)
    free = count - 1.0 - (widths / (widths + strengths)).sum(axis=1)
    errors = np.where(free > 1.0, np.maximum(left, 0.0) / np.maximum(free, 1.0) ** 2, np.inf)
    return float(strengths[int(np.argmin(errors)), 0])


def _offsets(model: FittedRewards, rounds: LoggedRounds, part: Rows) -> Floats:
    """Return what each arm earns beyond the model, shrunk towards 0.

    The shrinkage is the one of a random effect whose variance the method of moments gives;
    it is whole where arms differ no more than noise does.
    """
    rows = rounds.chosen[part]
    found = np.concatenate(
        [
            model.of(rounds.contexts[some], rounds.chosen[some, None])[:, 0]
            for some in np.array_split(part, max(1, len(part) // _CHUNK))
        ]
    )
    left = rounds.rewards[part] - found
    arms = len(model.offsets)
    sums, counts = np.bincount(rows, left, arms), np.bincount(rows, minlength=arms)
    noise, met = float(left.var()), int(np.count_nonzero(counts))
    spread = float((sums**2 / np.maximum(counts, 1)).sum() - met * noise) / len(left)
    if spread <= 0.0:
        return np.zeros(arms)
    curves = found * (1.0 - found) if model.is_logistic else np.ones(len(found))
    bent = np.bincount(rows, curves, arms)
    return np.asarray(sums / (bent + float(curves.mean()) * noise / spread))
