"""Six policies side by side in one synthetic world: what each earns, and what a choice costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.experiments.environment import Floats
from fastbandit.experiments.policies import player_for
from fastbandit.experiments.run import Player
from fastbandit.experiments.synthetic import Synthetic
from fastbandit.progress import Progress, silent
from fastbandit.types import Decision

YARDSTICK = "Exhaust TS"  # every speed-up, of UCB too, is over this policy in the same run
_NAMES = ("Random", "LinearTS", YARDSTICK, "FastBandit TS", "GANBandit TS", "GANBandit UCB")

_AUDITED = 100
_REQUESTS = 20


@dataclass(frozen=True)
class Outcome:
    """How one policy did.

    `earned` is the cumulative expected reward after each round. `quality` is that of
    `Bandit.audit` after the last update, None where no network is searched. Times are
    medians for one decision: of batches after the first, which is random for all, and of
    requests with a single context. Speed-ups are over `YARDSTICK`.
    """

    policy: str
    earned: Floats
    share: float
    quality: float | None
    batch_milliseconds: float
    single_milliseconds: float
    batch_speedup: float
    single_speedup: float


@dataclass(frozen=True)
class DemoResult:
    """How all policies did, the best possible curve, and the settings behind them."""

    function: str
    dim: int
    arms: int
    rounds: int
    batch: int
    seed: int
    best: Floats
    outcomes: tuple[Outcome, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Give everything as JSON values, the curves at the end of each batch."""
        ends = [*range(self.batch, self.rounds, self.batch), self.rounds]
        at_ends = np.array(ends) - 1
        return {
            "function": self.function,
            "dim": self.dim,
            "arms": self.arms,
            "rounds": self.rounds,
            "batch": self.batch,
            "seed": self.seed,
            "seconds": self.seconds,
            "speedup_over": YARDSTICK,
            "ends": ends,
            "best_possible": self.best[at_ends].tolist(),
            "policies": [
                {
                    "policy": outcome.policy,
                    "share_of_best": outcome.share,
                    "quality": outcome.quality,
                    "milliseconds_per_decision": {
                        "single": outcome.single_milliseconds,
                        "batch": outcome.batch_milliseconds,
                    },
                    "speedup": {
                        "single": outcome.single_speedup,
                        "batch": outcome.batch_speedup,
                    },
                    "earned": outcome.earned[at_ends].tolist(),
                }
                for outcome in self.outcomes
            ],
        }


def line_up(world: Synthetic, *, rounds: int) -> dict[str, Player]:
    """Make the policies that are compared, by name; all have the same seed."""
    return {name: player_for(name, world, seed=world.seed, rounds=rounds) for name in _NAMES}


def run_demo(
    *,
    arms: int = 10_000,
    rounds: int = 3_000,
    batch: int = 500,
    function: str = "h2",
    dim: int = 4,
    seed: int = 0,
    progress: Progress = silent,
) -> DemoResult:
    """Let all policies meet the same arms, contexts and noise.

    Policies take turns batch by batch, so that a slow moment of the machine meets them all.
    What they earn is worked out here, from the rows they chose, never from their scores.
    """
    _check_rounds(rounds, batch)
    started = time.perf_counter()
    world = Synthetic(function, dim, arms, seed=seed)
    players = line_up(world, rounds=rounds)
    firsts = range(0, rounds, batch)
    means: dict[str, list[Floats]] = {name: [] for name in players}
    times: dict[str, list[float]] = {name: [] for name in players}
    best: list[Floats] = []
    done, steps = 0, (len(firsts) + 1) * len(players)

    def report(doing: str) -> None:
        nonlocal done
        progress(done, steps, doing)
        done += 1

    for first in firsts:
        contexts = world.contexts(first, min(batch, rounds - first))
        best.append(world.best(contexts)[1])
        for name, player in players.items():
            report(name)
            decision, seconds = _timed_select(player, contexts)
            means[name].append(world.means(contexts, decision.rows[:, 0]))
            if first > 0:
                times[name].append(seconds / len(contexts))
            if first + batch < rounds:
                rewards = world.observed(first, decision.rows[:, 0])
                player.update(contexts=contexts, arms=decision.arms, rewards=rewards)

    qualities: dict[str, float | None] = {}
    single: dict[str, float] = {}
    for name, player in players.items():
        report(f"measuring {name}")
        single[name] = _time_of_one(player, world.contexts(rounds, _REQUESTS + 1))
        qualities[name] = _quality(player, world.contexts(rounds, _AUDITED))
    report("done")

    best_curve = np.concatenate(best).cumsum()
    outcomes = []
    for name in players:
        earned = np.concatenate(means[name]).cumsum()
        outcomes.append(
            Outcome(
                policy=name,
                earned=earned,
                share=float(earned[-1] / best_curve[-1]),
                quality=qualities[name],
                batch_milliseconds=1e3 * median(times[name]),
                single_milliseconds=1e3 * single[name],
                batch_speedup=median(times[YARDSTICK]) / median(times[name]),
                single_speedup=single[YARDSTICK] / single[name],
            )
        )
    return DemoResult(
        function=function,
        dim=dim,
        arms=arms,
        rounds=rounds,
        batch=batch,
        seed=seed,
        best=best_curve,
        outcomes=tuple(outcomes),
        seconds=time.perf_counter() - started,
    )


def _timed_select(player: Player, contexts: NDArray[np.float32]) -> tuple[Decision, float]:
    started = time.perf_counter()
    decision = player.select(contexts)
    return decision, time.perf_counter() - started


def _time_of_one(player: Player, contexts: NDArray[np.float32]) -> float:
    """Give the median seconds of a request with one context; the first one only warms up."""
    times = [_timed_select(player, contexts[i : i + 1])[1] for i in range(len(contexts))]
    return median(times[1:])


def _quality(player: Player, contexts: NDArray[np.float32]) -> float | None:
    return player.audit(contexts).quality if isinstance(player, Bandit) else None


def _check_rounds(rounds: int, batch: int) -> None:
    if batch < 1:
        raise SettingError(f"A batch needs at least one round: got {batch}. Try 500.")
    if rounds < 2 * batch:
        raise SettingError(
            f"The demo needs at least two batches, of which the first is chosen at random: got "
            f"{rounds} rounds in batches of {batch}. Use {2 * batch} rounds or more, or a smaller "
            f"batch."
        )
