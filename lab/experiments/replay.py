"""Play a policy on a log without a model: only rounds where it agrees with the log count.

Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms" (WSDM 2011). Where the log was not uniform, rounds are first accepted
with a probability of smallest propensity / propensity, which leaves a uniform log behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.progress import Progress, silent
from lab.experiments.environment import FAR, Floats, Rows, as_raw
from lab.experiments.logged import LoggedData
from lab.experiments.run import Agent

_NORMAL = 1.959964
_FEWEST_MATCHES = 10.0


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a policy earned in the rounds where it chose what the log chose.

    `rewards` are those of the matches in their order; `batch_matches` counts them by batch;
    `offered` is the number of rounds it was asked about, `accepted` how many of these were left
    after the log was made uniform.
    """

    rewards: Floats
    batch_matches: Rows
    offered: int
    accepted: int
    reward: RewardKind

    @property
    def matches(self) -> int:
        """The number of rounds that counted."""
        return len(self.rewards)

    @property
    def mean(self) -> float | None:
        """The mean reward of the matches; None without any."""
        return float(self.rewards.mean()) if self.matches else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the expected reward lies with 95 % confidence; None where nothing is known."""
        if self.reward == "binary":
            return wilson(float(self.rewards.sum()), self.matches)
        if self.matches < 2:
            return None
        middle = float(self.rewards.mean())
        half = _NORMAL * float(self.rewards.std(ddof=1)) / sqrt(self.matches)
        return middle - half, middle + half

    @property
    def curve(self) -> list[float | None]:
        """The mean reward of all matches so far, after each batch; None before the first."""
        ends = np.cumsum(self.batch_matches)
        return [float(self.rewards[:end].mean()) if end else None for end in ends]


def replay(
    log: LoggedData,
    agent: Agent,
    *,
    batch: int,
    passes: int = 1,
    progress: Progress = silent,
) -> Replayed:
    """Let an agent choose for the logged contexts, and learn where it agrees with the log.

    With several `passes` the same log is played again and again: more matches, but what was
    learned from a round is then judged on it too.
    """
    if batch < 1 or passes < 1:
        raise SettingError(
            f"A replay needs a batch and passes of at least 1: got batch={batch} and "
            f"passes={passes}. Raise them."
        )
    order = _accepted_rounds(log, passes)
    rewards, matches = [], []
    for first in range(0, len(order), batch):
        rounds = order[first : first + batch]
        decision = agent.select(as_raw(log.contexts.take(rounds)))
        agreed = np.flatnonzero(decision.rows[:, 0] == log.chosen[rounds])
        earned = log.rewards[rounds[agreed]]
        if len(agreed):
            agent.update(
                contexts=as_raw(log.contexts.take(rounds[agreed])),
                arms=[decision.arms[row] for row in agreed],
                rewards=earned,
            )
        rewards.append(earned)
        matches.append(len(agreed))
        progress(first + len(rounds), len(order), f"pass {first * passes // len(order) + 1}")
    return Replayed(
        rewards=np.concatenate(rewards),
        batch_matches=np.array(matches, dtype=np.int64),
        offered=len(log) * passes,
        accepted=len(order),
        reward=log.reward,
    )


def wilson(wins: float, rounds: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share; (0, 1) without any rounds."""
    if rounds == 0:
        return 0.0, 1.0
    share, square = wins / rounds, _NORMAL**2
    middle = (share + square / (2 * rounds)) / (1 + square / rounds)
    half = sqrt(share * (1 - share) / rounds + square / (4 * rounds**2)) * _NORMAL
    half /= 1 + square / rounds
    return max(0.0, middle - half), min(1.0, middle + half)


def _accepted_rounds(log: LoggedData, passes: int) -> Rows:
    """Return the rounds of a uniform log, in the order of the log, once for each pass."""
    if log.propensities is None:
        _check_uniform(log)
        return np.tile(np.arange(len(log)), passes)
    probabilities = log.propensities.min() / log.propensities
    _check_enough(probabilities, log.size, passes=passes)
    root = int(decision_seeds(log.seed, FAR + 5, 1)[0])
    draws = uniforms(decision_seeds(root, 0, passes * len(log)), 1, Stream.TRAINING)[:, 0]
    accepted: NDArray[np.bool_] = draws < np.tile(probabilities, passes)
    return np.flatnonzero(accepted) % len(log)


def _check_uniform(log: LoggedData) -> None:
    """Raise where the arms were taken far too unevenly for a log said to be uniform."""
    counts = np.bincount(log.chosen, minlength=log.size)
    fair, freedom = len(log) / log.size, log.size - 1
    if ((counts - fair) ** 2 / fair).sum() > freedom + 8.0 * sqrt(2.0 * freedom) + 30.0:
        most = int(counts.argmax())
        raise InputError(
            f"A replay needs a log in which every arm was equally likely, or its propensities: "
            f"the arm in row {most} was taken {counts[most]} times in {len(log)} rounds, where "
            f"about {fair:.0f} were due. Give the propensities, or fit a simulator instead."
        )


def _check_enough(probabilities: Floats, arms: int, *, passes: int) -> None:
    due = passes * float(probabilities.sum()) / arms
    if due < _FEWEST_MATCHES and probabilities.min() < 1.0 - 1e-6:
        raise InputError(
            f"A replay of a log that was not uniform needs about {_FEWEST_MATCHES:.0f} matches or "
            f"more to say anything: this one would give {due:.2g}, because its propensities "
            f"differ by a factor of {1.0 / probabilities.min():,.0f}. Fit a simulator instead."
        )
