"""Scaling bandits: several arms a round, and as many as pay for themselves.

Fouché, Komiyama and Böhm, "Scaling multi-armed bandit algorithms" (2019). A play costs `cost`, and
rewards are in [0, 1]. The best number of plays is the largest L for which the L best arms earn more
than their cost: their *mean* expected reward is above it, so the last of them may earn less.

MP-TS      Thompson sampling with a Beta posterior an arm plays the L highest draws
S-TS       MP-TS, and L moves by at most one a round: down where the means of the arms just played
           are not above the cost, up where one more arm would still pay, judged by its KL-UCB
S-TS-ADWIN S-TS that forgets: where ADWIN finds that the rewards of an arm changed, all arms
           forget the rounds before that

We differ in two things. Which arms pass a level is asked of KL-UCB without working out the bounds:
the same answer, for one divergence an arm. The rounds to forget are those before the oldest
reward that ADWIN kept of the arm, not as many rounds as it dropped rewards.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import check_number
from fastbandit.errors import SettingError
from lab.baselines.adwin import Adwin

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_TINY = 1e-12


# -- how many plays


def best_plays(means: Floats, cost: float) -> int:
    """Return how many of the best arms earn more than they cost together, at least 1."""
    ranked = np.sort(means)[::-1]
    pays = np.flatnonzero(np.cumsum(ranked) > cost * np.arange(1, len(ranked) + 1))
    return int(pays[-1]) + 1 if len(pays) else 1


def is_plausible(level: float, means: Floats, counts: Floats, *, rounds: int) -> NDArray[np.bool_]:
    """Return whether the KL-UCB of each arm is above a level, after so many rounds.

    The bound is the highest q with counts x KL(mean, q) <= log(rounds); an arm without rewards
    has 1.
    """
    if level >= 1.0:
        return np.zeros(len(means), dtype=np.bool_)
    p, q = np.clip(means, _TINY, 1.0 - _TINY), max(level, _TINY)
    divergences = p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))
    known = counts * divergences < math.log(max(1, rounds))
    return np.asarray((means > level) | known | (counts == 0))


class Tally:
    """How often each arm was played, and what it earned."""

    def __init__(self, arms: int) -> None:
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def add(self, rows: Rows, rewards: Floats) -> None:
        """Count the rewards of one round; each arm stands there once."""
        self.counts[rows] += 1.0
        self.sums[rows] += rewards

    def remove(self, rows: Rows, rewards: Floats) -> None:
        """Forget the rewards of one round."""
        self.counts[rows] -= 1.0
        self.sums[rows] -= rewards

    @property
    def means(self) -> Floats:
        """Mean rewards, 0 for arms without any."""
        return np.asarray(self.sums / np.maximum(self.counts, 1.0))


class Scaling(Protocol):
    """Says how many arms are played next."""

    def first(self, arms: int) -> int: ...

    def following(self, tally: Tally, played: Rows, *, rounds: int) -> int: ...


@dataclass(frozen=True)
class FixedPlays:
    """The same number of plays in every round."""

    plays: int

    def first(self, arms: int) -> int:
        """Return the number of plays, if there are so many arms."""
        if not 1 <= self.plays <= arms:
            raise SettingError(
                f"A round needs between 1 and {arms} plays, one an arm: got {self.plays}. "
                f"Choose a number between them."
            )
        return self.plays

    def following(self, tally: Tally, played: Rows, *, rounds: int) -> int:
        """Return the number of plays."""
        return self.plays


@dataclass(frozen=True)
class KLScaling:
    """One play more while another arm may pay, one less where those played do not."""

    cost: float

    def __post_init__(self) -> None:
        check_number("cost", self.cost)

    def first(self, arms: int) -> int:
        """Return the number of arms: all are played at first."""
        return arms

    def following(self, tally: Tally, played: Rows, *, rounds: int) -> int:
        """Return the number of plays after a round."""
        plays, means = len(played), tally.means
        earned = float(means[played].sum())
        if earned <= self.cost * plays:
            return max(1, plays - 1)
        missing = self.cost * (plays + 1) - earned  # what one more arm has to earn
        promising = is_plausible(missing, means, tally.counts, rounds=rounds)
        return plays + 1 if int(promising.sum()) > plays else plays


# -- what is forgotten


class SharedWindow:
    """An ADWIN for each arm; the shortest window is that of all arms."""

    def __init__(self, arms: int, *, delta: float = 0.1) -> None:
        self._windows = [Adwin(delta=delta) for _ in range(arms)]
        self._rounds: deque[tuple[Rows, Floats]] = deque()

    def __len__(self) -> int:
        """Return how many rounds are remembered."""
        return len(self._rounds)

    def add(self, rows: Rows, rewards: Floats) -> list[tuple[Rows, Floats]]:
        """Take a round in; return the rounds that are forgotten."""
        self._rounds.append((rows, rewards))
        kept = len(self._rounds)
        for row, reward in zip(rows.tolist(), rewards.tolist(), strict=True):
            if self._windows[row].add(reward):
                kept = min(kept, self._since(row))
        return [self._rounds.popleft() for _ in range(len(self._rounds) - kept)]

    def _since(self, row: int) -> int:
        """Return how many rounds ago the oldest reward came that the arm's window holds."""
        left = len(self._windows[row])
        for ago, (rows, _) in enumerate(reversed(self._rounds), start=1):
            left -= int((rows == row).any())
            if left == 0:
                return ago
        return len(self._rounds)


# -- the bandit


class MultiplePlayTS:
    """Thompson sampling that plays several arms a round: MP-TS, S-TS or S-TS-ADWIN.

    `scaling` says how many, `window` what is forgotten (None: nothing).
    """

    def __init__(
        self,
        arms: int,
        *,
        scaling: Scaling,
        rng: np.random.Generator,
        window: SharedWindow | None = None,
    ) -> None:
        self._tally = Tally(arms)
        self._scaling, self._window, self._rng = scaling, window, rng
        self._plays = scaling.first(arms)
        self._rounds = 0

    def select(self) -> Rows:
        """Return the arms of the highest draws, in no order."""
        counts, sums = self._tally.counts, self._tally.sums
        if self._plays == len(counts):
            return np.arange(len(counts))
        losses = np.maximum(counts - sums, 0.0)  # rounding may leave less than none
        draws = self._rng.beta(1.0 + np.maximum(sums, 0.0), 1.0 + losses)
        return np.argpartition(-draws, self._plays - 1)[: self._plays]

    def update(self, rows: Rows, rewards: Floats) -> None:
        """Learn the rewards, in [0, 1], of the arms of one round."""
        self._tally.add(rows, rewards)
        self._rounds += 1
        self._plays = self._scaling.following(self._tally, rows, rounds=self._rounds)
        if self._window is not None:
            for round_ in self._window.add(rows, rewards):
                self._tally.remove(*round_)
            self._rounds = len(self._window)
