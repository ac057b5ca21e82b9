"""A check of the estimators on synthetic logs whose true value is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbandit.evaluation.estimators import declared_estimators
from fastbandit.evaluation.report import Evaluation
from fastbandit.evaluation.rounds import Floats, LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.progress import Progress, silent

CHECKED = ("ips", "snips", "dr")
_POOL = 200


@dataclass(frozen=True, eq=False)
class LoggedEnvironment:
    """Contexts that come again and again, arms, probabilities of a reward, and two policies.

    All expectations are sums over a table of contexts and arms: the true value is exact.
    """

    contexts: NDArray[np.float32]  # (M, C)
    vectors: NDArray[np.float32]  # (N, D)
    probabilities: Floats  # (M, N)
    logging: Floats  # (M, N)
    target: Floats  # (M, N)

    @staticmethod
    def make(*, arms: int = 20, dim: int = 5, seed: int = 0) -> LoggedEnvironment:
        """Make one in which the target leans to better arms than the logging policy does."""
        rng = np.random.default_rng(seed)
        contexts, vectors = rng.normal(size=(_POOL, dim)), rng.normal(size=(arms, dim))
        worth = contexts @ rng.normal(size=(dim, dim)) @ vectors.T / dim
        probabilities = 1.0 / (1.0 + np.exp(1.0 - worth))
        tilt = 0.5 * rng.normal(size=arms)
        return LoggedEnvironment(
            contexts.astype(np.float32),
            vectors.astype(np.float32),
            probabilities,
            _softmax(0.5 * worth + tilt),
            _softmax(1.5 * worth - 0.5 * tilt),
        )

    @property
    def value(self) -> float:
        """What the target policy earns a round."""
        return float((self.target * self.probabilities).sum(axis=1).mean())

    def log(self, count: int, *, seed: int) -> tuple[LoggedRounds, SparsePolicy]:
        """Let the logging policy play; return its rounds, and the target in them."""
        rng = np.random.default_rng(seed)
        positions = rng.integers(0, len(self.contexts), count)
        ends = self.logging.cumsum(axis=1)[positions]
        chosen = (rng.random((count, 1)) * ends[:, -1:] > ends).sum(axis=1)
        rounds = LoggedRounds(
            contexts=self.contexts[positions],
            chosen=chosen,
            rewards=(rng.random(count) < self.probabilities[positions, chosen]).astype(np.float64),
            propensities=self.logging[positions, chosen],
            arms=len(self.vectors),
            vectors=self.vectors,
        )
        rows = np.broadcast_to(np.arange(rounds.arms, dtype=np.int32), (count, rounds.arms))
        return rounds, SparsePolicy(rows, self.target[positions], arms=rounds.arms)


@dataclass(frozen=True)
class Coverage:
    """How often intervals held the true value over many logs, and how far estimates were off."""

    estimator: str
    rounds: int
    logs: int
    coverage: float
    bias: float
    error: float

    @property
    def is_met(self) -> bool:
        """Whether a 95 % interval holds the truth in from 90 to 99 of a hundred logs."""
        return 0.90 <= self.coverage <= 0.99


def check_coverage(
    *,
    logs: int = 200,
    sizes: Sequence[int] = (250, 1_000, 4_000),
    interval: str = "bootstrap",
    estimators: Sequence[str] = CHECKED,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Coverage]:
    """Estimate on many logs of each size, and count how often the interval holds the truth."""
    environment, found = LoggedEnvironment.make(seed=seed), []
    for done, count in enumerate(sizes):
        made: list[Evaluation] = []
        for log in range(logs):
            progress(done * logs + log, len(sizes) * logs, f"{count} rounds")
            rounds, policy = environment.log(count, seed=1_000_003 * (log + 1) + count + seed)
            made.append(
                evaluate(rounds, policy, estimators=estimators, interval=interval, seed=log)
            )
        found += [_coverage(name, environment.value, made) for name in estimators]
    return found


def coverage_rows(found: Sequence[Coverage]) -> list[tuple[str, ...]]:
    """Return rows of a table, headings first."""
    known = declared_estimators()
    rows: list[tuple[str, ...]] = [
        ("estimator", "rounds", "logs", "coverage", "bias", "error", "within .90 to .99")
    ]
    for one in found:
        numbers = (f"{one.coverage:.3f}", f"{one.bias:+.5f}", f"{one.error:.5f}")
        met = "yes" if one.is_met else "no"
        rows.append((known[one.estimator].title, f"{one.rounds:,}", str(one.logs), *numbers, met))
    return rows


def _coverage(name: str, truth: float, made: Sequence[Evaluation]) -> Coverage:
    values = np.array([one[name].value for one in made])
    held = [one[name].low <= truth <= one[name].high for one in made]
    return Coverage(
        estimator=name,
        rounds=made[0].rounds,
        logs=len(made),
        coverage=float(np.mean(held)),
        bias=float(values.mean() - truth),
        error=float(np.sqrt(np.mean((values - truth) ** 2))),
    )


def _softmax(worth: Floats) -> Floats:
    raised = np.exp(worth - worth.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
