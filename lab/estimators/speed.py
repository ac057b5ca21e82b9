"""A check of how long an evaluation over many arms takes, on a log whose true value is known."""

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
from fastbandit.errors import SettingError
from fastbandit.evaluation.drawn_policies import Draws
from fastbandit.evaluation.report import Evaluation
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.features.kinds import Dense
from fastbandit.noise.philox import decision_seeds
from fastbandit.progress import Progress, silent
from fastbandit.runtime.frozen import FrozenBandit
from lab.estimators.coverage import CHECKED

_FEW, _DRAWS = 32, 16_384  # contexts of a log of a frozen bandit, and its decisions in each
_DIM = 16


@dataclass(frozen=True)
class Speed:
    """How long an evaluation took, and the most memory that the process ever held."""

    rounds: int
    arms: int
    candidates: int
    is_drawn: bool
    made_s: float
    evaluated_s: float
    peak_gib: float
    truth: float
    evaluation: Evaluation

    def to_json(self) -> dict[str, Any]:
        """Return all of it as values that JSON knows."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**values, "evaluation": self.evaluation.to_json()}


def check_speed(
    *,
    rounds: int = 1_000_000,
    arms: int = 1_000_000,
    candidates: int = 8,
    frozen: FrozenBandit | None = None,
    draws: int | None = None,
    estimators: Sequence[str] = CHECKED,
    seed: int = 0,
    progress: Progress = silent,
) -> Speed:
    """Evaluate a policy on a synthetic log; return time, memory and the true value.

    The policy is a sparse one, of some candidates a round, or the frozen bandit, of so many draws.
    """
    started = perf_counter()
    policy: SparsePolicy | FrozenBandit
    if frozen is None:
        log, policy, truth = large_log(rounds, arms, candidates=candidates, seed=seed)
    else:
        log, truth = frozen_log(frozen, rounds, seed=seed, progress=progress)
        policy, arms, candidates = frozen, log.arms, Draws(draws).a_round(rounds)
    made = perf_counter()
    found = evaluate(log, policy, estimators=estimators, draws=draws, progress=progress)
    ended = perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Speed(
        rounds=rounds,
        arms=arms,
        candidates=candidates,
        is_drawn=frozen is not None,
        made_s=round(made - started, 2),
        evaluated_s=round(ended - made, 2),
        peak_gib=round(peak * (1 if sys.platform == "darwin" else 1024) / 2**30, 2),
        truth=truth,
        evaluation=found,
    )


def speed_sentences(found: Speed) -> str:
    """Say how long it took, how much memory, and how near the estimates came."""
    estimates = ", ".join(
        f"{one.title} {one.value:.4f} [{one.low:.4f}, {one.high:.4f}]"
        for one in found.evaluation.estimates
    )
    few = f"{found.candidates} candidates a round"
    if found.is_drawn:
        times = "time" if found.candidates == 1 else "times"
        few = f"a frozen bandit asked {found.candidates} {times} a round"
    return (
        f"{found.rounds:,} rounds over {found.arms:,} arms, {few}: "
        f"{found.evaluated_s:.1f} s, bootstrap included, and at most {found.peak_gib:.2f} GiB in "
        f"memory, on {cores()} cores. The true value is {found.truth:.4f}: {estimates}; the log's "
        f"own policy earned {found.evaluation.logged.value:.4f}."
    )


def large_log(
    rounds: int, arms: int, *, candidates: int, dim: int = _DIM, seed: int = 0
) -> tuple[LoggedRounds, SparsePolicy, float]:
    """Make a log and a policy over many arms; return what the policy earns in these contexts.

    Both policies have the same candidates in a round, and some uniform mixing; the logging policy
    leans to the worst of them, the other to the best. The reward is 1 with a probability that is
    linear in products of context and arm.
    """
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1.0, 1.0, size=(rounds, dim)).astype(np.float32)
    vectors = rng.uniform(-1.0, 1.0, size=(arms, dim)).astype(np.float32)
    rows, worth = _ranked(contexts, vectors, rng.integers(0, arms, size=(rounds, candidates)))
    ours = np.arange(1.0, candidates + 1.0)
    logging, target = 0.9 * ours[::-1] / ours.sum(), 0.95 * ours / ours.sum()
    positions = rng.choice(candidates, size=rounds, p=logging / logging.sum())
    chosen = rows[np.arange(rounds), positions].astype(np.int64)
    is_any = rng.random(rounds) < 0.1
    chosen[is_any] = rng.integers(0, arms, size=int(is_any.sum()))
    shares = np.broadcast_to(target, rows.shape)
    behind = SparsePolicy(rows, np.broadcast_to(logging, rows.shape), arms=arms, epsilon=0.1)
    probabilities = 0.5 + 0.4 / dim * np.einsum("nd,nd->n", contexts, vectors[chosen])
    log = LoggedRounds(
        contexts,
        chosen,
        rng.random(rounds) < probabilities,
        behind.probability_of(chosen),
        arms=arms,
        vectors=vectors,
    )
    policy = SparsePolicy(rows, shares, arms=arms, epsilon=0.05)
    anywhere = float((contexts @ vectors.mean(axis=0)).mean())
    return log, policy, 0.5 + 0.4 / dim * float(worth.mean(axis=0) @ target + 0.05 * anywhere)


def frozen_log(
    frozen: FrozenBandit, rounds: int, *, seed: int = 0, progress: Progress = silent
) -> tuple[LoggedRounds, float]:
    """Make a log of what a frozen bandit would do, and any arm in a tenth of the rounds.

    Contexts come again: so many draws in each show nearly all arms that the bandit takes there,
    and how likely. The reward is 1 with a probability linear in products of context and arm.
    """
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(_FEW, _columns_of(frozen))).astype(np.float32)
    vectors = rng.uniform(-1.0, 1.0, size=(len(frozen), _DIM)).astype(np.float32)
    drawn = _draws_in(frozen, contexts, seed=seed, progress=progress)  # (_FEW, _DRAWS)
    positions = rng.integers(0, _FEW, rounds)
    chosen = drawn[positions, rng.integers(0, _DRAWS, rounds)]
    is_any = rng.random(rounds) < 0.1
    chosen[is_any] = rng.integers(0, len(frozen), size=int(is_any.sum()))
    axes = rng.normal(size=(contexts.shape[1], _DIM)).astype(np.float32)
    towards = np.tanh(contexts @ axes)
    probabilities = 0.5 + 0.4 / _DIM * np.einsum("nd,nd->n", towards[positions], vectors[chosen])
    log = LoggedRounds(
        contexts[positions],
        chosen,
        rng.random(rounds) < probabilities,
        0.9 * _shares_of(drawn, positions, chosen) + 0.1 / len(frozen),
        vectors=vectors,
    )
    worth = np.stack([vectors[rows].mean(axis=0) for rows in drawn])
    return log, 0.5 + 0.4 / _DIM * float((towards * worth).sum(axis=1)[positions].mean())


def _columns_of(frozen: FrozenBandit) -> int:
    kind = frozen.parts[2].context.kind
    if isinstance(kind, Dense) and frozen.parts[1].ids.is_numbered:
        return kind.dim
    raise SettingError(
        f"A check of the speed needs a frozen bandit with dense contexts and numbered arms: got "
        f"one with {kind}. Freeze Bandit(arms=features, context=number)."
    )


def _draws_in(
    frozen: FrozenBandit, contexts: NDArray[np.float32], *, seed: int, progress: Progress
) -> Rows:
    """Let the bandit decide many times in each context: rows (contexts, draws)."""
    drawn = np.empty((len(contexts), _DRAWS), dtype=np.int64)
    for position, context in enumerate(contexts):
        progress(position, len(contexts), "making a log")
        seeds = decision_seeds(seed, position * _DRAWS, _DRAWS)
        drawn[position] = frozen.select(np.tile(context, (_DRAWS, 1)), seeds=seeds).rows[:, 0]
    return drawn


def _shares_of(drawn: Rows, positions: Rows, chosen: Rows) -> Floats:
    """Return the share of each round's arm among the draws of its context."""
    size = 1 + int(max(drawn.max(), chosen.max()))
    keys, counts = np.unique(drawn + size * np.arange(len(drawn))[:, None], return_counts=True)
    wanted = chosen + size * positions
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[found] == wanted, counts[found] / drawn.shape[1], 0.0)


def _ranked(
    contexts: NDArray[np.float32], vectors: NDArray[np.float32], rows: Rows
) -> tuple[NDArray[np.int32], Floats]:
    """Put the candidates of each round in the order of their worth, the best last."""
    positions = range(rows.shape[1])
    worth = np.stack(
        [np.einsum("nd,nd->n", contexts, vectors[rows[:, p]]) for p in positions], axis=1
    )
    order = np.argsort(worth, axis=1)
    ranked = np.take_along_axis(rows, order, axis=1).astype(np.int32)
    return ranked, np.take_along_axis(worth, order, axis=1).astype(np.float64)
