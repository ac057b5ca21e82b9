"""Sparse policies from whatever decides: a bandit by repeated draws, a function by one call."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError, ShapeError, UnknownArmError
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.sparse_policy import CHUNK, SparsePolicy
from fastbandit.features.kinds import is_size
from fastbandit.features.schema import Schema
from fastbandit.noise.philox import decision_seeds
from fastbandit.progress import Progress, silent
from fastbandit.runtime.propensity import check_epsilon
from fastbandit.types import Decision

_FAR = 2**61  # the draws of an evaluation are none of a bandit's own decisions
_MOST_DRAWS = 16
_DECISIONS = 2**20  # which a frozen bandit makes within seconds


@dataclass(frozen=True)
class Draws:
    """How a bandit is asked for its choices: `count` times in each context.

    By default that is 16 times or fewer, so that many rounds make about a million decisions in
    all; without `explore` it is once, greedily. With probability `epsilon` any arm is taken.
    """

    count: int | None = None
    explore: bool = True
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.count is not None and not is_size(self.count):
            raise SettingError(
                f"The number of draws needs to be at least 1: got {self.count!r}. Use 16, more for "
                f"a policy that explores widely, or None for as many as the rounds allow."
            )

    def a_round(self, rounds: int) -> int:
        """Return the draws of each of so many rounds."""
        return self.count or min(_MOST_DRAWS, max(1, _DECISIONS // rounds))


def policy_of(
    rounds: LoggedRounds,
    policy: Any,
    *,
    draws: Draws | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[LoggedRounds, SparsePolicy]:
    """Make a sparse policy of what is called one; return the rounds too, with arms it added.

    A bandit chooses by seeds of its own; what it draws how often is an unbiased estimate of how
    likely it is. A function takes contexts (m, d) and returns rows (m,) or (m, k), or those and
    probabilities.
    """
    draws = draws or Draws()
    if isinstance(policy, SparsePolicy):
        if len(policy) != len(rounds) or policy.arms != rounds.arms:
            raise ShapeError(
                f"A policy needs the rounds and arms of the log, {len(rounds)} and {rounds.arms}: "
                f"got {len(policy)} rounds and {policy.arms} arms. Make it for this log."
            )
        return rounds, policy
    if isinstance(policy, str) and policy == "uniform":
        return rounds, SparsePolicy.uniform(rounds)
    if hasattr(policy, "select") and not isinstance(policy, type):
        return _drawn(rounds, policy, draws, seed=seed, progress=progress)
    if callable(policy) and not isinstance(policy, type):
        return rounds, _called(rounds, policy, epsilon=draws.epsilon)
    raise InputError(
        f"A policy needs to be a bandit, a SparsePolicy, a function or 'uniform': got "
        f"{policy!r}. Load a saved one with FrozenBandit.load or Bandit.load."
    )


# -- bandits


def schema_of(policy: Any) -> Schema | None:
    """Return the schema by which a bandit reads contexts, None where it has none."""
    parts = getattr(policy, "parts", None)
    kind = policy if parts is None else parts[2]
    plan = getattr(policy, "blueprint", None)
    return getattr(kind if plan is None else plan.context, "schema", None)


def _drawn(
    rounds: LoggedRounds, policy: Any, draws: Draws, *, seed: int, progress: Progress
) -> tuple[LoggedRounds, SparsePolicy]:
    is_drawn = draws.explore
    if is_drawn and hasattr(policy, "propensities"):  # which say whether one arm is always taken
        is_drawn = not policy.propensities(rounds.contexts[0], draws=1, epsilon=0.0).is_exact
    count = draws.a_round(len(rounds)) if is_drawn else 1
    if hasattr(policy, "__len__"):
        rounds = _with_arms_of(rounds, len(policy))
    names = _Names(rounds)
    rows = np.empty((len(rounds), count), dtype=np.int32)
    takes_seeds = "seeds" in inspect.signature(policy.select).parameters
    for draw in range(count):
        for start in range(0, len(rounds), CHUNK):
            progress(draw * len(rounds) + start, count * len(rounds), "drawing arms")
            part = rows[start : start + CHUNK, draw]
            contexts = rounds.contexts[start : start + CHUNK]
            first = _FAR + draw * len(rounds) + start
            seeds = {"seeds": decision_seeds(seed, first, len(part))} if takes_seeds else {}
            decision = policy.select(contexts, explore=draws.explore, **seeds)
            if getattr(decision, "uniform", False):
                return rounds, SparsePolicy.uniform(rounds)
            part[:] = names.rows_of(decision)
    rounds = names.rounds()
    shares = np.broadcast_to(np.float32((1.0 - draws.epsilon) / count), rows.shape)
    return rounds, SparsePolicy(
        rows, shares, arms=rounds.arms, epsilon=draws.epsilon, draws=count if is_drawn else None
    )


def _with_arms_of(rounds: LoggedRounds, count: int) -> LoggedRounds:
    """Return the rounds among all arms of a policy; where rows are names, both have as many."""
    if rounds.ids is None and count != rounds.arms:
        raise UnknownArmError(
            f"A log whose arms have no ids needs a policy with as many arms: the log has "
            f"{rounds.arms}, the policy {count}. Give the log arms=, the number of all arms that "
            f"could be taken, or ids= of them."
        )
    is_fixed = rounds.ids is None or rounds.vectors is not None
    return rounds if is_fixed else rounds.with_more_arms([], arms=count)


class _Names:
    """Finds the log's rows of arms that a policy chose, by their ids where it has some."""

    def __init__(self, rounds: LoggedRounds) -> None:
        self._rounds = rounds
        ids = rounds.ids if rounds.ids is not None else ()
        self._known = {id: row for row, id in enumerate(ids)}
        self._kinds = {type(id) for id in ids}

    def rounds(self) -> LoggedRounds:
        """Return the rounds among all arms that were met."""
        is_same = len(self._known) == len(self._rounds.ids or ())
        return self._rounds if is_same else self._rounds.with_more_arms(list(self._known))

    def rows_of(self, decision: Decision) -> NDArray[Any]:
        """Return the rows of the arms chosen; one that the log does not know gets the next row."""
        arms: Any = decision.arms
        if self._rounds.ids is None:
            rows = np.asarray(arms)
            if rows.ndim == 1 and rows.dtype.kind in "iu":
                return rows
            raise UnknownArmError(
                f"A log whose arms have no ids needs a policy without ids too: it chose "
                f"{arms[0]!r}. Give the log ids=, the names of its rows."
            )
        if self._kinds and type(arms[0]) not in self._kinds:  # "7" and 7 are two arms
            kinds = " or ".join(sorted(kind.__name__ for kind in self._kinds))
            raise UnknownArmError(
                f"The policy's arms need ids of the log's kind, {kinds}: it chose {arms[0]!r}. "
                f"Turn one into the other before you build the policy or the log."
            )
        known, has_all = self._known, self._rounds.vectors is not None
        missing = next((arm for arm in arms if has_all and arm not in known), None)
        if missing is not None:
            raise UnknownArmError(
                f"The policy needs arms that the log knows: it chose {missing!r}, which is none of "
                f"the log's {self._rounds.arms}. Read the log with a table of all arms, or remove "
                f"that arm."
            )
        return np.array([known.setdefault(arm, len(known)) for arm in arms], dtype=np.int32)


# -- functions


def _called(rounds: LoggedRounds, policy: Any, *, epsilon: float) -> SparsePolicy:
    answer = policy(rounds.contexts)
    rows, shares = answer if isinstance(answer, tuple) else (answer, None)
    rows = np.asarray(rows)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != len(rounds):
        raise ShapeError(
            f"A policy that is a function needs to return rows of shape ({len(rounds)},) or "
            f"({len(rounds)}, k): got {rows.shape}. It is called once with all contexts."
        )
    if shares is None:
        shares = np.full(rows.shape, (1.0 - epsilon) / rows.shape[1])
    elif epsilon:
        shares = np.asarray(shares) * (1.0 - epsilon)
    return SparsePolicy(rows, shares, arms=rounds.arms, epsilon=epsilon)
