"""Six policies side by side in one synthetic environment: what each earns, what a choice costs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import Any, TypeAlias

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

Agent: TypeAlias = Bandit | LinearTS | RandomBandit


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
        """Return everything as JSON values, the curves at the end of each batch."""
        ends = [*range(self.batch, self.rounds, self.batch), self.rounds]
        at_ends = np.array(ends) - 1
        settings = ("function", "dim", "arms", "rounds", "batch", "seed", "seconds")
        return {
            **{name: getattr(self, name) for name in settings},
            "speedup_over": YARDSTICK,
            "ends": ends,
            "best_possible": self.best[at_ends].tolist(),
            "policies": [
                {
                    "policy": one.policy,
                    "share_of_best": one.share,
                    "quality": one.quality,
                    "milliseconds_per_decision": {
                        "single": one.single_milliseconds,
                        "batch": one.batch_milliseconds,
                    },
                    "speedup": {"single": one.single_speedup, "batch": one.batch_speedup},
                    "earned": one.earned[at_ends].tolist(),
                }
                for one in self.outcomes
            ],
        }


def make_agents(environment: Synthetic) -> dict[str, Agent]:
    """Return the policies that are compared, by name; all have the same seed."""
    arms, dim, seed = environment.arms, environment.dim, environment.seed
    context = environment.context
    agents: dict[str, Agent] = {
        "Random": RandomBandit(ids=range(environment.size), context=context, seed=seed),
        "LinearTS": LinearTS(arms=arms, context=dim, reward="real", intercept=False, seed=seed),
    }
    for name, (exploration, search) in _NEURAL.items():
        agents[name] = Bandit(
            arms=arms,
            context=context,
            reward="real",
            exploration=exploration,
            search=search,
            seed=seed,
            progress=False,
        )
    return agents


@dataclass
class _Run:
    """What one policy earned so far, and the seconds that its decisions took."""

    policy: str
    agent: Agent
    means: list[Floats] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    single_seconds: float = 0.0
    quality: float | None = None

    def play(self, environment: Synthetic, first: int, size: int, *, is_last: bool) -> None:
        """Decide for a batch and learn from it; the first batch, random for all, is not timed."""
        contexts = environment.contexts(first, size)
        decision, seconds = _timed_select(self.agent, contexts)
        rows = decision.rows[:, 0]
        self.means.append(environment.means(contexts, rows))
        if first > 0:
            self.seconds.append(seconds / size)
        if not is_last:
            rewards = environment.observed(first, rows)
            self.agent.update(contexts=contexts, arms=decision.arms, rewards=rewards)

    def measure(self, environment: Synthetic, first: int) -> None:
        """Time requests with one context, of which the first only warms up; audit the search."""
        contexts = environment.contexts(first, _REQUESTS + 1)
        times = [_timed_select(self.agent, context[None])[1] for context in contexts]
        self.single_seconds = median(times[1:])
        if isinstance(self.agent, Bandit):
            self.quality = self.agent.audit(environment.contexts(first, _AUDITED)).quality

    def outcome(self, best: float, yardstick: _Run) -> Outcome:
        """Compare with the best possible reward, and with the times of the yardstick."""
        earned, seconds = np.concatenate(self.means).cumsum(), median(self.seconds)
        return Outcome(
            policy=self.policy,
            earned=earned,
            share=float(earned[-1] / best),
            quality=self.quality,
            batch_milliseconds=1e3 * seconds,
            single_milliseconds=1e3 * self.single_seconds,
            batch_speedup=median(yardstick.seconds) / seconds,
            single_speedup=yardstick.single_seconds / self.single_seconds,
        )


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

    All decide for one batch before the next, so that a slow moment of the machine meets them all.
    What they earn is worked out here, from the rows they chose, never from their scores.
    """
    if batch < 1:
        raise SettingError(f"A batch needs at least one round: got {batch}. Try 500.")
    if rounds < 2 * batch:
        raise SettingError(
            f"The demo needs at least two batches, of which the first is chosen at random: got "
            f"{rounds} rounds in batches of {batch}. Use {2 * batch} rounds or more, or a smaller "
            f"batch."
        )
    started = time.perf_counter()
    environment = Synthetic(function, dim, arms, seed=seed)
    runs = {name: _Run(name, agent) for name, agent in make_agents(environment).items()}
    done, steps = count(), (len(range(0, rounds, batch)) + 1) * len(runs)
    best: list[Floats] = []
    for first in range(0, rounds, batch):
        size = min(batch, rounds - first)
        best.append(environment.best(environment.contexts(first, size))[1])
        for name, run in runs.items():
            progress(next(done), steps, name)
            run.play(environment, first, size, is_last=first + batch >= rounds)
    for name, run in runs.items():
        progress(next(done), steps, f"measuring {name}")
        run.measure(environment, rounds)
    progress(next(done), steps, "done")
    best_curve = np.concatenate(best).cumsum()
    return DemoResult(
        function=function,
        dim=dim,
        arms=arms,
        rounds=rounds,
        batch=batch,
        seed=seed,
        best=best_curve,
        outcomes=tuple(run.outcome(best_curve[-1], runs[YARDSTICK]) for run in runs.values()),
        seconds=time.perf_counter() - started,
    )


def _timed_select(agent: Agent, contexts: NDArray[np.float32]) -> tuple[Decision, float]:
    started = time.perf_counter()
    decision = agent.select(contexts)
    return decision, time.perf_counter() - started
