"""Checks of the estimators on made-up logs whose true value is known, and of their speed."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.cores import cores
from fastbandit.evaluation.report import NAMES, Evaluation
from fastbandit.evaluation.rounds import Floats, LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.progress import Progress, silent

CHECKED = ("ips", "snips", "dr")
_POOL = 200


@dataclass(frozen=True, eq=False)
class World:
    """Contexts that come again and again, arms, chances of a reward, and two policies.

    All expectations are sums over a table of contexts and arms: the true value is exact.
    """

    contexts: NDArray[np.float32]  # (M, C)
    vectors: NDArray[np.float32]  # (N, D)
    chances: Floats  # (M, N)
    logging: Floats  # (M, N)
    target: Floats  # (M, N)

    @staticmethod
    def make(*, arms: int = 20, dim: int = 5, seed: int = 0) -> World:
        """Make a world in which the target leans to better arms than the logging policy does."""
        rng = np.random.default_rng(seed)
        contexts, vectors = rng.normal(size=(_POOL, dim)), rng.normal(size=(arms, dim))
        worth = contexts @ rng.normal(size=(dim, dim)) @ vectors.T / dim
        chances = 1.0 / (1.0 + np.exp(1.0 - worth))
        tilt = 0.5 * rng.normal(size=arms)
        return World(
            contexts.astype(np.float32),
            vectors.astype(np.float32),
            chances,
            _softmax(0.5 * worth + tilt),
            _softmax(1.5 * worth - 0.5 * tilt),
        )

    @property
    def value(self) -> float:
        """What the target policy earns a round."""
        return float((self.target * self.chances).sum(axis=1).mean())

    def log(self, count: int, *, seed: int) -> tuple[LoggedRounds, SparsePolicy]:
        """Let the logging policy play; give its rounds, and the target in them."""
        rng = np.random.default_rng(seed)
        places = rng.integers(0, len(self.contexts), count)
        ends = self.logging.cumsum(axis=1)[places]
        chosen = (rng.random((count, 1)) * ends[:, -1:] > ends).sum(axis=1)
        rounds = LoggedRounds(
            contexts=self.contexts[places],
            chosen=chosen,
            rewards=(rng.random(count) < self.chances[places, chosen]).astype(np.float64),
            propensities=self.logging[places, chosen],
            arms=len(self.vectors),
            vectors=self.vectors,
        )
        rows = np.broadcast_to(np.arange(rounds.arms, dtype=np.int32), (count, rounds.arms))
        return rounds, SparsePolicy(rows, self.target[places], arms=rounds.arms)


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
    world, found = World.make(seed=seed), []
    for place, count in enumerate(sizes):
        made: list[Evaluation] = []
        for log in range(logs):
            progress(place * logs + log, len(sizes) * logs, f"{count} rounds")
            rounds, policy = world.log(count, seed=1_000_003 * (log + 1) + count + seed)
            made.append(
                evaluate(rounds, policy, estimators=estimators, interval=interval, seed=log)
            )
        found += [_coverage(name, count, world.value, made) for name in estimators]
    return found


def coverage_rows(found: Sequence[Coverage]) -> list[tuple[str, ...]]:
    """Give rows of a table, headings first."""
    rows: list[tuple[str, ...]] = [
        ("estimator", "rounds", "logs", "coverage", "bias", "error", "within .90 to .99")
    ]
    for one in found:
        numbers = (f"{one.coverage:.3f}", f"{one.bias:+.5f}", f"{one.error:.5f}")
        met = "yes" if one.is_met else "no"
        rows.append((NAMES[one.estimator], f"{one.rounds:,}", str(one.logs), *numbers, met))
    return rows


def _coverage(name: str, count: int, truth: float, made: Sequence[Evaluation]) -> Coverage:
    values = np.array([one[name].value for one in made])
    held = [one[name].low <= truth <= one[name].high for one in made]
    return Coverage(
        estimator=name,
        rounds=count,
        logs=len(made),
        coverage=float(np.mean(held)),
        bias=float(values.mean() - truth),
        error=float(np.sqrt(np.mean((values - truth) ** 2))),
    )


def _softmax(worth: Floats) -> Floats:
    raised = np.exp(worth - worth.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


# -- speed


@dataclass(frozen=True)
class Speed:
    """How long an evaluation took, and the most memory that the process ever held."""

    rounds: int
    arms: int
    candidates: int
    made_s: float
    evaluated_s: float
    peak_gib: float
    truth: float
    evaluation: Evaluation

    def to_json(self) -> dict[str, Any]:
        """Give all of it as values that JSON knows."""
        told = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**told, "evaluation": self.evaluation.to_json()}


def check_speed(
    *,
    rounds: int = 1_000_000,
    arms: int = 1_000_000,
    candidates: int = 8,
    estimators: Sequence[str] = CHECKED,
    seed: int = 0,
    progress: Progress = silent,
) -> Speed:
    """Evaluate a sparse policy on a made-up log, and tell time, memory and the true value."""
    started = perf_counter()
    log, policy, truth = large_log(rounds, arms, candidates=candidates, seed=seed)
    made = perf_counter()
    found = evaluate(log, policy, estimators=estimators, progress=progress)
    ended = perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Speed(
        rounds=rounds,
        arms=arms,
        candidates=candidates,
        made_s=round(made - started, 2),
        evaluated_s=round(ended - made, 2),
        peak_gib=round(peak * (1 if sys.platform == "darwin" else 1024) / 2**30, 2),
        truth=truth,
        evaluation=found,
    )


def speed_words(found: Speed) -> str:
    """Say how long it took, how much memory, and how near the estimates came."""
    named = ", ".join(
        f"{NAMES[one.name]} {one.value:.4f} [{one.low:.4f}, {one.high:.4f}]"
        for one in found.evaluation.estimates
    )
    return (
        f"{found.rounds:,} rounds over {found.arms:,} arms, {found.candidates} candidates a round: "
        f"{found.evaluated_s:.1f} s, bootstrap included, and at most {found.peak_gib:.2f} GiB in "
        f"memory, on {cores()} cores. The true value is {found.truth:.4f}: {named}; the log's own "
        f"policy earned {found.evaluation.logged.value:.4f}."
    )


def large_log(
    rounds: int, arms: int, *, candidates: int, dim: int = 16, seed: int = 0
) -> tuple[LoggedRounds, SparsePolicy, float]:
    """Make up a log and a policy over many arms; give what the policy earns in these contexts.

    Both policies have the same candidates in a round, and a floor under them; the logging policy
    leans to the worst of them, the other to the best. The reward is 1 with a chance that is
    linear in products of context and arm.
    """
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1.0, 1.0, size=(rounds, dim)).astype(np.float32)
    vectors = rng.uniform(-1.0, 1.0, size=(arms, dim)).astype(np.float32)
    rows, worth = _ranked(contexts, vectors, rng.integers(0, arms, size=(rounds, candidates)))
    ours = np.arange(1.0, candidates + 1.0)
    logging, target = 0.9 * ours[::-1] / ours.sum(), 0.95 * ours / ours.sum()
    places = rng.choice(candidates, size=rounds, p=logging / logging.sum())
    chosen = rows[np.arange(rounds), places].astype(np.int64)
    is_any = rng.random(rounds) < 0.1
    chosen[is_any] = rng.integers(0, arms, size=int(is_any.sum()))
    shares = np.broadcast_to(target, rows.shape)
    behind = SparsePolicy(rows, np.broadcast_to(logging, rows.shape), arms=arms, floor=0.1)
    chances = 0.5 + 0.4 / dim * np.einsum("nd,nd->n", contexts, vectors[chosen])
    log = LoggedRounds(
        contexts,
        chosen,
        rng.random(rounds) < chances,
        behind.probability_of(chosen),
        arms=arms,
        vectors=vectors,
    )
    policy = SparsePolicy(rows, shares, arms=arms, floor=0.05)
    anywhere = float((contexts @ vectors.mean(axis=0)).mean())
    return log, policy, 0.5 + 0.4 / dim * float(worth.mean(axis=0) @ target + 0.05 * anywhere)


def _ranked(
    contexts: NDArray[np.float32], vectors: NDArray[np.float32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Floats]:
    """Put the candidates of each round in the order of their worth, the best last."""
    places = range(rows.shape[1])
    worth = np.stack([np.einsum("nd,nd->n", contexts, vectors[rows[:, p]]) for p in places], axis=1)
    order = np.argsort(worth, axis=1)
    ranked = np.take_along_axis(rows, order, axis=1).astype(np.int32)
    return ranked, np.take_along_axis(worth, order, axis=1).astype(np.float64)
