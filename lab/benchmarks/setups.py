"""What is timed: a bandit that learned in a synthetic environment, and a yardstick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.demo.synthetic import Synthetic
from fastbandit.interfaces import Search
from fastbandit.noise.philox import decision_seeds
from fastbandit.policy import Policy
from fastbandit.runtime.freezing import freeze
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.settings.files import Settings
from fastbandit.types import Inputs
from lab.benchmarks.reporting import Tick
from lab.experiments.timing import Task

Floats = NDArray[np.float32]
Seeds = NDArray[np.uint64]

ROUNDS = 2_500
UPDATES = 2
_SAMPLE = 1_000  # arms whose mean score stands for that of all
_TINY = 1e-9


def silently(doing: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Setup:
    """The size of an environment and of the network; `hidden` None is the preset's."""

    arms: int
    dim: int = 8
    hidden: int | None = None
    exploration: str = "ts"
    rounds: int = ROUNDS
    device: str = "cpu"
    dtype: str = "float32"

    @property
    def settings(self) -> Settings:
        """The default preset, with this many hidden units."""
        return Settings(sections={"network": {"hidden": (self.hidden,)}} if self.hidden else {})


@dataclass(frozen=True)
class Contest:
    """A bandit that learned, and contexts it has not seen."""

    setup: Setup
    bandit: Bandit
    contexts: Floats

    @property
    def policy(self) -> Policy:
        return self.bandit.policy

    @property
    def exhaustive(self) -> Policy:
        """The same policy with the exhaustive search."""
        return replace(self.policy, search=Exhaustive())

    @property
    def hidden(self) -> int:
        return self.bandit.blueprint.network.hidden[0]

    def frozen(self, search: Search | None = None) -> FrozenBandit:
        """Freeze the policy, with another search where one is given."""
        policy = self.policy if search is None else replace(self.policy, search=search)
        plan, dtype = self.bandit.blueprint, self.setup.dtype if search is None else "float32"
        return freeze(plan, policy, self.bandit.version, 0, dtype=dtype)

    @torch.no_grad()
    def earnest(self, ruler: Yardstick, rows: NDArray[np.int64]) -> Floats:
        """Score rows by the policy itself, one for each context: (contexts,).

        What a frozen bandit says of its choice is rounded where its vectors are.
        """
        score = self.policy.score(Inputs(dense=ruler.contexts), seeds=ruler.seeds)
        points = self.policy.arms.all().points[0][torch.from_numpy(rows)][:, None]
        rewards: Floats = self.policy.model.in_rewards(score(points)[:, 0]).numpy()
        return rewards

    def inputs(self, count: int) -> tuple[Inputs, Seeds]:
        """Return some contexts, over and over where they are few, and a seed for each."""
        rows = np.arange(count) % len(self.contexts)
        return Inputs(dense=self.contexts[rows]), decision_seeds(0, 0, count)


def contest_of(setup: Setup, *, contexts: int, tick: Tick = silently) -> Contest:
    """Let a default bandit learn twice: from random choices, then from its own."""
    tick("drawing arms")
    environment = Synthetic("h3", setup.dim, setup.arms)
    bandit = Bandit(
        arms=environment.arms,
        context=setup.dim,
        reward="real",
        exploration=setup.exploration,
        search="generator",
        posterior="neural",
        preset=setup.settings,
        device=setup.device,
        progress=False,
    )
    for number in range(UPDATES):
        tick(f"learning ({number + 1} of {UPDATES})")
        first = number * setup.rounds
        asked = environment.contexts(first, setup.rounds)
        decision = bandit.select(asked)
        rewards = environment.observed(first, decision.rows[:, 0])
        bandit.update(contexts=asked, arms=decision.arms, rewards=rewards)
    return Contest(setup, bandit, environment.contexts(UPDATES * setup.rounds, contexts))


def searching(policy: Policy, inputs: Inputs, seeds: Seeds) -> Task:
    """Make the task of deciding for a batch in torch."""
    return lambda number: policy.select(inputs, seeds=seeds)


# -- quality


@dataclass(frozen=True, eq=False)
class Yardstick:
    """For some contexts and draws: the score of the best arm, and that of an average one."""

    contexts: Floats
    seeds: Seeds
    best: Floats
    mean: Floats

    def quality(self, scores: Any) -> float:
        """Return q of choices with these scores: 1 for the best arm, 0 for any."""
        above, room = np.asarray(scores) - self.mean, self.best - self.mean
        # Where all arms score the same, any choice is the best one.
        each = np.where(room > _TINY, above / np.maximum(room, _TINY), 1.0)
        return float(each.mean())


def yardstick_of(contest: Contest, count: int) -> Yardstick:
    """Score all arms for some contexts: compiled, or in torch where that cannot be frozen."""
    if contest.setup.exploration == "ucb":
        return _torch_yardstick(contest, count)
    exact, contexts = contest.frozen(Exhaustive()), contest.contexts[:count]
    seeds, size = decision_seeds(0, 0, count), min(_SAMPLE, len(exact))
    sample = np.random.default_rng(0).choice(len(exact), size, replace=False).tolist()
    best = exact.select(contexts, seeds=seeds).scores[:, 0]
    some = exact.select(contexts, seeds=seeds, k=size, eligible=sample).scores
    return Yardstick(contexts, seeds, best, some.mean(1))


@torch.no_grad()
def _torch_yardstick(contest: Contest, count: int) -> Yardstick:
    policy, (inputs, seeds) = contest.exhaustive, contest.inputs(count)
    best = policy.select(inputs, seeds=seeds).scores[:, 0]
    sample = policy.arms.sample(_SAMPLE, rng=torch.Generator().manual_seed(0))
    mean = policy.score(inputs, seeds=seeds)(sample.points).mean(1)
    numbers = (policy.model.in_rewards(part).numpy() for part in (best, mean))
    return Yardstick(contest.contexts[:count], seeds, *numbers)
