"""Decisions that another policy took and logged, and a simulator fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbandit.errors import (
    InputError,
    MissingExtraError,
    NotFiniteError,
    SettingError,
    ShapeError,
)
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.progress import Progress, silent
from fastbandit.types import Features, Inputs
from lab.experiments.environment import FAR, Floats, Rows, Tabled

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_MOST_PAIRS = 2**27


@dataclass(frozen=True, eq=False)
class LoggedData:
    """Rounds of a log: a context, the row of the arm that was taken, and its reward.

    `size` is the number of arms that could be taken. `arms` are their features, or None where
    each is known by its row alone. `propensities` are the probabilities with which the arms
    were taken; None says that every arm was equally likely. Names are those of an environment.
    """

    name: str
    context: Features
    contexts: Inputs
    size: int
    chosen: Rows
    rewards: Floats
    propensities: Floats | None = None
    arms: Any = None
    ids: Sequence[str] | None = None
    embed_ids: bool = False
    reward: RewardKind = "binary"
    seed: int = 0
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        _check_lengths(self)
        _check_values(self)

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def rounds(self) -> int:
        """The number of rounds there are."""
        return len(self)


def check_no_log(environment: object, what: str) -> None:
    """Raise where an environment is a log, which knows the rewards of what was taken alone."""
    if isinstance(environment, LoggedData):
        raise SettingError(
            f"{what} needs rewards of all arms: got a log to be replayed. Use mode=simulator, "
            f"which fits them to the log."
        )


def _check_lengths(log: LoggedData) -> None:
    lengths = {
        "contexts": len(log.contexts),
        "chosen": len(log.chosen),
        "rewards": len(log.rewards),
        "propensities": len(log.chosen if log.propensities is None else log.propensities),
    }
    if len(set(lengths.values())) > 1 or not len(log.chosen):
        raise ShapeError(
            f"A log needs one context, arm, reward and propensity for each round, and at least "
            f"one round: got {lengths}. Drop the rounds that lack one."
        )
    known = log.size if log.arms is None else int(log.arms.shape[0])
    if known != log.size:
        raise ShapeError(
            f"A log needs one row of features for each of its {log.size} arms: got {known}. "
            f"Give all arms that could be taken."
        )


def _check_values(log: LoggedData) -> None:
    if log.chosen.min() < 0 or log.chosen.max() >= log.size:
        wrong = log.chosen[(log.chosen < 0) | (log.chosen >= log.size)][0]
        raise InputError(
            f"A log needs rows of arms from 0 to {log.size - 1}: got {wrong}. Give all arms that "
            f"could be taken."
        )
    if not np.isfinite(log.rewards).all():
        row = int(np.flatnonzero(~np.isfinite(log.rewards))[0])
        raise NotFiniteError(
            f"A log needs finite rewards: got {log.rewards[row]} in row {row}. Drop the rounds "
            f"whose reward is not known."
        )
    if log.propensities is None:
        return
    wrong = np.flatnonzero(~((log.propensities > 0.0) & (log.propensities <= 1.0)))
    if len(wrong):
        raise InputError(
            f"Propensities need to be above 0 and at most 1: got {log.propensities[wrong[0]]} in "
            f"row {wrong[0]} ({len(wrong)} such rows). Drop those rounds."
        )


# -- a simulator


def fit_simulator(
    log: LoggedData,
    *,
    strengths: Sequence[float] = STRENGTHS,
    folds: int = 5,
    progress: Progress = silent,
) -> Tabled:
    """Fit a model of the reward to a log, and play on what it says of every context and arm.

    Logistic for binary rewards, ridge for others, in the context, the arm, the arm's features,
    and the products of context and features (of context and arm where there are none). The
    strength of the penalty is the one with the highest log-likelihood on folds left out. The
    rounds are those of the log; real rewards have as much noise as the model leaves unexplained.
    """
    _, distinct, visits = np.unique(
        _dense_contexts(log), axis=0, return_index=True, return_inverse=True
    )
    _check_pairs(len(distinct), log.size)
    problem = _problem(log)
    scores = []
    for number, strength in enumerate(strengths):
        progress(number, len(strengths), "fitting the simulator")
        scores.append(_left_out(problem, strength, folds=folds))
    best = int(np.argmax([model.mean() for model, _ in scores]))
    strength = strengths[best]
    coefficients = problem.fit(strength)
    table = problem.every_worth(coefficients, distinct)
    progress(len(strengths), len(strengths), "fitting the simulator")
    notes = _simulator_notes(*scores[best], strength, strengths)
    noise = 0.0 if problem.is_binary else problem.residual_std(coefficients)
    if not problem.is_binary:
        notes += (f"rewards have the log's own noise about the model: deviation {noise:.4g}",)
    return Tabled(
        name=log.name,
        context=log.context,
        instances=log.contexts.take(distinct),
        expected_rewards=table.astype(np.float32),
        arms=log.arms,
        ids=log.ids,
        embed_ids=log.embed_ids,
        reward=log.reward,
        seed=log.seed,
        visits=visits.reshape(-1).astype(np.int64),
        noise=noise,
        notes=(*log.notes, *notes),
    )


def _simulator_notes(
    model: Floats, constant: Floats, strength: float, strengths: Sequence[float]
) -> tuple[str, ...]:
    gain, error = (model - constant).sum(), (model - constant).std() * np.sqrt(len(model))
    verdict = "better" if gain > 2.0 * error else "better, within its error,"
    verdict = verdict if gain > 0.0 else "NO BETTER"
    return (
        "simulator fitted to the log: rewards are the model's, not observed",
        f"held-out log-likelihood per round {model.mean():.6f}, of the constant model "
        f"{constant.mean():.6f}: {verdict} than the constant ({gain:+.2f} ± {error:.2f} over the "
        f"whole log)",
        f"penalty {strength:g}, picked among {', '.join(f'{s:g}' for s in strengths)} by that "
        f"likelihood",
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rounds to fit: the worth of arm a to context x is (1, x) · (G W)_a, before the link.

    The rows of G, one for each arm, hold a one, the arm's own flag, and its features.
    `penalties` are 0 for the intercept and infinite for products that the model leaves out.
    """

    contexts: Floats  # (n, 1 + C)
    arms: csr_matrix  # (N, 1 + N + D)
    chosen: Rows
    rewards: Floats
    penalties: Floats  # (1 + N + D, 1 + C)
    is_binary: bool
    spread: float = 1.0  # the variance of the rewards, where they are not binary

    def take(self, rows: Any) -> _Problem:
        """Return the same problem on some of the rounds."""
        return replace(
            self,
            contexts=self.contexts[rows],
            chosen=self.chosen[rows],
            rewards=self.rewards[rows],
        )

    def fit(self, strength: float) -> Floats:
        """Find the coefficients W that make the rewards likeliest under a penalty."""
        from scipy.optimize import minimize
        from scipy.sparse import csr_matrix

        rounds, shape = np.arange(len(self.chosen)), self.penalties.shape
        places = (self.chosen, rounds)
        taken = csr_matrix((np.ones(len(rounds)), places), (self.arms.shape[0], len(rounds)))
        is_in = np.isfinite(self.penalties)
        weights = strength / self.spread * np.where(is_in, self.penalties, 0.0)

        def loss(flat: Floats) -> tuple[float, Floats]:
            coefficients = flat.reshape(shape)
            raw = self._raw(coefficients)
            value, slope = self._loss(raw)
            slopes = self.arms.T @ (taken @ (slope[:, None] * self.contexts))
            value += 0.5 * float((weights * coefficients**2).sum())
            return value, (is_in * (slopes + weights * coefficients)).reshape(-1)

        start = np.zeros(shape)
        start[0, 0] = self.flat_raw()
        found = minimize(
            loss, start.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 1_000}
        )
        return np.asarray(found.x).reshape(shape)

    def flat_raw(self) -> float:
        """Return the worth that suits all rounds alike, before the link."""
        if not self.is_binary:
            return float(self.rewards.mean())
        share = (self.rewards.sum() + 0.5) / (len(self.rewards) + 1.0)
        return float(np.log(share / (1.0 - share)))

    def worth(self, coefficients: Floats) -> Floats:
        """Return the expected reward of each round: (n,)."""
        return self._link(self._raw(coefficients))

    def residual_std(self, coefficients: Floats) -> float:
        """Return the deviation of the rewards about what is expected of them."""
        return float(np.sqrt(np.mean((self.rewards - self.worth(coefficients)) ** 2)))

    def every_worth(self, coefficients: Floats, rounds: Rows) -> Floats:
        """Return the expected rewards of all arms in some of the rounds: (rounds, N)."""
        return self._link(self.contexts[rounds] @ (self.arms @ coefficients).T)

    def log_likelihood(self, worth: Floats, *, spread: float) -> Floats:
        """Return how likely the reward of each round is; `spread` is a variance."""
        if self.is_binary:
            safe = np.clip(worth, 1e-12, 1.0 - 1e-12)
            return np.asarray(np.log(np.where(self.rewards == 1.0, safe, 1.0 - safe)))
        return -0.5 * (np.log(2.0 * np.pi * spread) + (self.rewards - worth) ** 2 / spread)

    def _loss(self, raw: Floats) -> tuple[float, Floats]:
        """Return how unlikely the rewards are, up to a constant, and the slope in each round."""
        if self.is_binary:
            value = np.logaddexp(0.0, raw) - self.rewards * raw
            return float(value.sum()), self._link(raw) - self.rewards
        away = raw - self.rewards
        return float((away**2).sum() / (2.0 * self.spread)), away / self.spread

    def _raw(self, coefficients: Floats) -> Floats:
        of_arms = np.asarray(self.arms @ coefficients)  # (N, 1 + C)
        return np.asarray(np.einsum("nc,nc->n", self.contexts, of_arms[self.chosen]))

    def _link(self, raw: Floats) -> Floats:
        return 0.5 + 0.5 * np.tanh(0.5 * raw) if self.is_binary else raw


def _problem(log: LoggedData) -> _Problem:
    try:
        from scipy.sparse import csr_matrix, hstack, identity
    except ImportError as error:
        raise MissingExtraError(
            "A simulator needs SciPy: it is not installed. Run pip install -e '.[lab]'."
        ) from error
    ones = np.ones((len(log), 1))
    contexts = np.concatenate([ones, _scaled(_dense_contexts(log))], axis=1)
    parts = [csr_matrix(np.ones((log.size, 1))), identity(log.size, format="csr")]
    if log.arms is not None:
        parts.append(csr_matrix(_scaled(np.asarray(log.arms, dtype=np.float64))))
    arms = hstack(parts, format="csr")
    penalties = np.ones((arms.shape[1], contexts.shape[1]))
    penalties[0, 0] = 0.0
    if log.arms is not None:
        penalties[1 : 1 + log.size, 1:] = np.inf
    is_binary = log.reward == "binary"
    spread = 1.0 if is_binary else max(float(log.rewards.var()), 1e-12)
    return _Problem(contexts, arms, log.chosen, log.rewards, penalties, is_binary, spread)


def _scaled(columns: Floats) -> Floats:
    """Bring numbers to mean 0 and deviation 1; columns of zeros and ones stay."""
    is_flag = np.all((columns == 0.0) | (columns == 1.0), axis=0)
    middle = np.where(is_flag, 0.0, columns.mean(axis=0))
    width = np.where(is_flag, 1.0, columns.std(axis=0))
    return np.asarray((columns - middle) / np.where(width > 0.0, width, 1.0))


def _left_out(problem: _Problem, strength: float, *, folds: int) -> tuple[Floats, Floats]:
    """Return the log-likelihood of each round left out, under the model and under a constant.

    The folds are the same for every seed: the simulator is a function of the log alone.
    """
    count = len(problem.chosen)
    draws = uniforms(decision_seeds(0, FAR + 4, count), 1, Stream.TRAINING)[:, 0]
    fold = np.argsort(np.argsort(draws, kind="stable")) % folds
    model, constant = np.empty(count), np.empty(count)
    for number in range(folds):
        seen, out = problem.take(fold != number), problem.take(fold == number)
        coefficients = seen.fit(strength)
        flat = np.zeros_like(coefficients)
        flat[0, 0] = seen.flat_raw()
        model[fold == number] = _likelihood(seen, out, coefficients)
        constant[fold == number] = _likelihood(seen, out, flat)
    return model, constant


def _likelihood(seen: _Problem, out: _Problem, coefficients: Floats) -> Floats:
    spread = max(seen.residual_std(coefficients) ** 2, 1e-12)
    return out.log_likelihood(out.worth(coefficients), spread=spread)


def _dense_contexts(log: LoggedData) -> Floats:
    dense = log.contexts.dense
    if dense is None or dense.ndim != 2 or log.contexts.ids is not None:
        raise InputError(
            f"A simulator needs contexts that are rows of numbers: got {log.context}. Replay the "
            f"log instead."
        )
    return dense.astype(np.float64)


def _check_pairs(contexts: int, arms: int) -> None:
    if contexts * arms > _MOST_PAIRS:
        raise InputError(
            f"A simulator holds at most {_MOST_PAIRS:,} pairs of a context and an arm: got "
            f"{contexts:,} distinct contexts and {arms:,} arms. Use fewer rounds, or replay the "
            f"log instead."
        )
