"""Six policies side by side in one synthetic world: what each earns, and what a choice costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.baselines import LinearTS, RandomBandit
from fastbandit.demo.synthetic import Floats, Synthetic
from fastbandit.errors import SettingError
from fastbandit.progress import Progress, silent
from fastbandit.types import Decision

YARDSTICK = "Exhaust TS"  # every speed-up, of UCB too, is over this policy in the same run
_NEURAL = {
    YARDSTICK: ("ts", "exhaustive"),
    "FastBandit TS": ("ts", "ascent"),
    "GANBandit TS": ("ts", "generator"),
    "GANBandit UCB": ("ucb", "generator"),
}
"""Exploration and search of each neural policy."""

_AUDITED = 100
_REQUESTS = 20


class Agent(Protocol):
    """Anything that selects and learns: a bandit or a baseline."""

    def select(self, contexts: Any, /) -> Decision: ...

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None: ...


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


def line_up(world: Synthetic) -> dict[str, Agent]:
    """Make the policies that are compared, by name; all have the same seed."""
    arms, dim, seed = world.arms, world.dim, world.seed
    agents: dict[str, Agent] = {
        "Random": RandomBandit(ids=range(world.size), context=world.context, seed=seed),
        "LinearTS": LinearTS(arms=arms, context=dim, reward="real", intercept=False, seed=seed),
    }
    for name, (exploration, search) in _NEURAL.items():
        agents[name] = Bandit(
            arms=arms,
            context=world.context,
            reward="real",
            exploration=exploration,
            search=search,
            seed=seed,
            progress=False,
        )
    return agents


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
    agents = line_up(world)
    firsts = range(0, rounds, batch)
    means: dict[str, list[Floats]] = {name: [] for name in agents}
    times: dict[str, list[float]] = {name: [] for name in agents}
    best: list[Floats] = []
    done, steps = 0, (len(firsts) + 1) * len(agents)

    def report(doing: str) -> None:
        nonlocal done
        progress(done, steps, doing)
        done += 1

    for first in firsts:
        contexts = world.contexts(first, min(batch, rounds - first))
        best.append(world.best(contexts)[1])
        for name, agent in agents.items():
            report(name)
            decision, seconds = _timed_select(agent, contexts)
            means[name].append(world.means(contexts, decision.rows[:, 0]))
            if first > 0:
                times[name].append(seconds / len(contexts))
            if first + batch < rounds:
                rewards = world.observed(first, decision.rows[:, 0])
                agent.update(contexts=contexts, arms=decision.arms, rewards=rewards)

    qualities: dict[str, float | None] = {}
    single: dict[str, float] = {}
    for name, agent in agents.items():
        report(f"measuring {name}")
        single[name] = _time_of_one(agent, world.contexts(rounds, _REQUESTS + 1))
        qualities[name] = _quality(agent, world.contexts(rounds, _AUDITED))
    report("done")

    best_curve = np.concatenate(best).cumsum()
    outcomes = []
    for name in agents:
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


def _timed_select(agent: Agent, contexts: NDArray[np.float32]) -> tuple[Decision, float]:
    started = time.perf_counter()
    decision = agent.select(contexts)
    return decision, time.perf_counter() - started


def _time_of_one(agent: Agent, contexts: NDArray[np.float32]) -> float:
    """Give the median seconds of a request with one context; the first one only warms up."""
    times = [_timed_select(agent, contexts[i : i + 1])[1] for i in range(len(contexts))]
    return median(times[1:])


def _quality(agent: Agent, contexts: NDArray[np.float32]) -> float | None:
    return agent.audit(contexts).quality if isinstance(agent, Bandit) else None


def _check_rounds(rounds: int, batch: int) -> None:
    if batch < 1:
        raise SettingError(f"A batch needs at least one round: got {batch}. Try 500.")
    if rounds < 2 * batch:
        raise SettingError(
            f"The demo needs at least two batches, of which the first is chosen at random: got "
            f"{rounds} rounds in batches of {batch}. Use {2 * batch} rounds or more, or a smaller "
            f"batch."
        )
