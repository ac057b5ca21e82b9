"""SparsePolicy: which arms a policy would take in each round, and how likely each.

A policy over N arms gives most of its probability to a few of them. Only these are stored, so
that nothing here is as large as rounds x arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, ShapeError, UnknownArmError
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows

CHUNK = 2**16
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class SparsePolicy:
    """Candidates with probabilities for each round, mixed with a uniform choice among all arms.

    With probability `epsilon` any of the `arms` arms is taken, each as likely as another; else
    candidate j of round i, with `probabilities[i, j]`. These and epsilon sum to 1. A row may
    stand there twice, its probabilities then add up; -1 fills up rounds with fewer candidates.
    `draws` says that the probabilities are shares of so many draws of the policy in each round.
    """

    rows: Any  # (n, K) int32 once made
    probabilities: Any  # (n, K) float32 or float64
    arms: int
    epsilon: Any = 0.0  # () or (n,)
    draws: int | None = None

    def __post_init__(self) -> None:
        rows, shares = np.asarray(self.rows), np.asarray(self.probabilities)
        rows = rows[:, None] if rows.ndim == 1 else rows
        shares = shares[:, None] if shares.ndim == 1 else shares
        _check_rows(rows, shares, self.arms)
        shares = shares if shares.dtype == np.float32 else shares.astype(np.float64)
        epsilon = np.broadcast_to(np.asarray(self.epsilon, dtype=np.float64), (len(rows),))
        _check_sums(shares, epsilon)
        object.__setattr__(self, "rows", rows.astype(np.int32, copy=False))
        object.__setattr__(self, "probabilities", shares)
        object.__setattr__(self, "epsilon", epsilon)

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def with_rest(rows: Any, probabilities: Any, *, arms: int, rest: Any) -> SparsePolicy:
        """Make one of whole probabilities of candidates, each there once, and of any other arm."""
        others = np.asarray(rest, dtype=np.float64)
        is_there = np.asarray(rows) >= 0
        above = np.where(is_there, np.asarray(probabilities) - others[..., None], 0.0)
        return SparsePolicy(rows, above, arms=arms, epsilon=others * arms)

    @staticmethod
    def uniform(rounds: LoggedRounds) -> SparsePolicy:
        """Take any arm, each as likely as another."""
        none = np.empty((len(rounds), 0))
        return SparsePolicy(none.astype(np.int32), none, arms=rounds.arms, epsilon=1.0)

    @staticmethod
    def fixed(rounds: LoggedRounds, arm: Any) -> SparsePolicy:
        """Take the same arm, named by its id, in every round."""
        row = rounds.rows_of([arm], what="A fixed arm")
        rows = np.broadcast_to(row.astype(np.int32)[None], (len(rounds), 1))
        return SparsePolicy(rows, np.ones((len(rounds), 1), dtype=np.float32), arms=rounds.arms)

    def probability_of(self, chosen: Rows) -> Floats:
        """Return how likely the policy takes one arm in each round."""
        alone = np.broadcast_to(np.int64(1), self.arms)  # each arm is a cluster of its own
        return self.probability_within(np.arange(self.arms), chosen, alone)

    def probability_within(self, clusters: Rows, chosen: Rows, sizes: Rows) -> Floats:
        """Return how likely the policy takes some arm of the chosen arm's cluster."""
        wanted = clusters[chosen]
        found = self.epsilon * sizes[wanted] / self.arms
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            rows = self.rows[part]
            is_in = (clusters[rows] == wanted[part, None]) & (rows >= 0)
            found[part] += np.where(is_in, self.probabilities[part], 0.0).sum(axis=1)
        return np.asarray(found)


def _check_rows(rows: NDArray[Any], shares: NDArray[Any], arms: int) -> None:
    if rows.ndim != 2 or rows.shape != shares.shape:
        raise ShapeError(
            f"A policy needs candidates and probabilities of one shape (n, k): got rows of "
            f"{rows.shape} and probabilities of {shares.shape}. Fill up shorter rounds with the "
            f"row -1 and the probability 0."
        )
    if rows.dtype.kind not in "iu":
        raise InputError(
            f"A policy's candidates need to be rows, whole numbers: got {rows.dtype}. The order "
            f"is SparsePolicy(rows, probabilities, arms)."
        )
    if rows.size and (rows.min() < -1 or rows.max() >= arms):
        wrong = rows[(rows < -1) | (rows >= arms)][0]
        raise UnknownArmError(
            f"A policy's candidates need to be rows from 0 to {arms - 1}: got {wrong}. Give the "
            f"log all arms that the policy can take, as arms=."
        )


def _check_sums(shares: NDArray[Any], epsilon: Floats) -> None:
    sums = shares.sum(axis=1, dtype=np.float64) + epsilon
    is_wrong = ~(np.abs(sums - 1.0) <= 1e-4)
    lowest = shares.min(initial=0.0)
    if lowest < -_SLACK or epsilon.min(initial=0.0) < -_SLACK or np.isnan(lowest):
        raise InputError(
            f"A policy's probabilities need to be at least 0: got {min(lowest, epsilon.min()):g}. "
            f"Give probabilities, not scores."
        )
    if is_wrong.any():
        first = int(np.flatnonzero(is_wrong)[0])
        raise InputError(
            f"A policy's probabilities, epsilon among them, need to sum to 1 in each round: got "
            f"{sums[first]:g} in round {first} ({is_wrong.sum()} such rounds). Divide them by "
            f"their sum, or give the epsilon that is missing."
        )
