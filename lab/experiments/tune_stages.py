"""The four stages of tuning, and how each is judged.

The order is the one of the FastBandit paper ("Fine Tune Parameters"): the reward network, its
uncertainty, the search for the best arm, and the look-up of the arms near a point. Split 0 of
anything measured is for the trials; other splits are other seeds and, where the stage has them,
other rounds: a winner is judged on what it was not chosen by.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from fastbandit.arms.box_space import BoxSpace
from fastbandit.audit import audit
from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.interfaces import FittedSearch, LearnsToSearch, Search, SearchFit
from fastbandit.noise.philox import decision_seeds
from fastbandit.policy import Policy
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.files import Settings
from fastbandit.types import Audit, Decision, Inputs
from lab.experiments.environment import Environment, Floats
from lab.experiments.logged import check_no_log
from lab.experiments.policies import NEURAL, agent_for
from lab.experiments.recipe import Recipe
from lab.experiments.run import run

STAGES = {1: "reward network", 2: "uncertainty", 3: "search", 4: "index"}
WORST = -1e9
PRICE = 0.001
"""The q that one look-up must be worth in stage 4."""

_AUDITED = 100
_CHUNK = 1024
_FAR = 2**40  # decisions that no run with the same seed reaches


@dataclass(frozen=True)
class Measured:
    """What settings came to: `value` is to be as high as possible, the rest is to be read."""

    value: float
    what: str
    shown: float
    evaluations: float | None = None
    lookups: float | None = None

    @property
    def text(self) -> str:
        text = f"{self.what} {self.shown:.4f}"
        if self.evaluations is None or self.lookups is None:
            return text
        return f"{text}, {self.evaluations:.0f} evaluations, {self.lookups:.1f} look-ups"


class Bench:
    """An environment and a policy, and the measures of all stages on them."""

    def __init__(
        self,
        environment: Environment,
        policy: str,
        *,
        rounds: int,
        batch: int,
        evaluations: int | None,
        seed: int,
        device: str,
    ) -> None:
        check_no_log(environment, "Tuning")
        self.environment, self.policy, self.evaluations = environment, policy, evaluations
        self.rounds, self.batch, self.seed, self.device = rounds, batch, seed, device
        exploration, _, posterior = NEURAL[policy]
        kin = (
            name
            for name, parts in NEURAL.items()
            if parts == (exploration, "exhaustive", posterior)
        )
        self.exhaustive = next(kin, policy)
        self._stored: dict[str, Any] = {}

    def bandit(self, recipe: Recipe, *, split: int = 0, policy: str | None = None) -> Bandit:
        """Make a bandit that knows nothing yet."""
        agent = agent_for(
            policy or self.policy,
            self.environment,
            preset=recipe,
            seed=self.seed + split,
            rounds=self.rounds,
            device=self.device,
        )
        assert isinstance(agent, Bandit)
        return agent

    def plan(self, recipe: Recipe) -> Blueprint:
        """Return the parts that settings stand for."""
        return self.bandit(recipe).blueprint

    # -- stage 1

    def explained(self, recipe: Recipe, split: int) -> Measured:
        """Learn from arms chosen at random, and predict the rewards of later rounds."""
        learned = 3 * self.rounds // 5
        judged = (self.rounds - learned) // 2
        first = learned if split == 0 else learned + judged
        bandit, random = self.bandit(recipe, split=split, policy=self.exhaustive), self._random
        bandit.update(
            contexts=self.environment.contexts(0, learned),
            arms=random.arms[:learned],
            rewards=self.environment.observed(0, self._chosen(random)[:learned]),
        )
        chosen = self._chosen(random)[first : first + judged]
        predicted = predictions(bandit, self.environment.contexts(first, judged), chosen)
        expected = self.environment.expected(first, chosen)
        if self.environment.reward == "binary":
            value = log_likelihood(predicted, expected)
            return Measured(value, "log-likelihood", value)
        value = explained_share(predicted, expected)
        return Measured(value, "explained share", value)

    @cached_property
    def _random(self) -> Decision:
        """Decisions of a bandit that knows nothing: every arm equally likely."""
        contexts = self.environment.contexts(0, self.rounds)
        return self.bandit(Recipe(), policy=self.exhaustive).select(contexts)

    def _chosen(self, decision: Decision) -> Any:
        return decision.arms if self.environment.size is None else decision.rows[:, 0]

    # -- stage 2, and the whole

    def shared(self, recipe: Recipe, split: int) -> Measured:
        """Play with an exhaustive search."""
        return self.played(recipe, split, policy=self.exhaustive)

    def played(self, recipe: Recipe, split: int, *, policy: str | None = None) -> Measured:
        """Play, and return the share of the best possible reward that was earned."""
        agent = self.bandit(recipe, split=split, policy=policy)
        done = run(self.environment, agent, rounds=self.rounds, batch=self.batch, audits=0)
        if done.best.sum() > 0:
            return Measured(done.share, "share of best", done.share)
        mean = float(done.rewards.mean())
        return Measured(mean, "mean reward", mean)

    # -- stages 3 and 4

    def searched(self, recipe: Recipe, split: int) -> Measured:
        """Audit the search; more evaluations than the budget are worse than any q."""
        found = self._audited(recipe, split)
        return _measured(self._within(found), found)

    def landed(self, recipe: Recipe, split: int) -> Measured:
        """Audit the search, and subtract the price of its look-ups."""
        found = self._audited(recipe, split)
        return _measured(self._within(found) - PRICE * found.lookups, found)

    def allow(self, recipe: Recipe, base: Recipe) -> None:
        """Fix the budget, where none was given: what the base's search spends, 128 at least."""
        if self.evaluations is None:
            mine = {k: v for k, v in recipe.sections.items() if not _is_of_search(k)}
            its = {k: v for k, v in base.sections.items() if _is_of_search(k)}
            spent = self._audited(Recipe(base.base, Settings({**mine, **its})), 0).evaluations
            self.evaluations = max(128, math.ceil(spent))

    def _within(self, found: Audit) -> float:
        budget = self.evaluations or math.inf
        over = found.evaluations / budget
        return found.quality if over <= 1 else found.quality - 1 - over

    def _audited(self, recipe: Recipe, split: int) -> Audit:
        plan, policy = self.plan(recipe), self._trained(recipe)
        search = self._fitted(plan, policy, split)
        half = (self.rounds - self._learned) // 2
        first = self._learned + (half if split else 0)
        inputs = self._inputs(first, min(max(1, half), _AUDITED))
        seeds = decision_seeds(self.seed + split, _FAR, len(inputs))
        return audit(replace(policy, search=search), inputs, seeds=seeds)

    @property
    def _learned(self) -> int:
        """The rounds that a played policy has learned from: all but those of the last batch."""
        return (self.rounds - 1) // self.batch * self.batch

    def _trained(self, recipe: Recipe) -> Policy:
        """Play once with an exhaustive search: the policy that all searches are tried on."""
        parts = {k: v for k, v in recipe.sections.items() if not _is_of_search(k)}
        key = json.dumps([recipe.base, parts], sort_keys=True)
        if key not in self._stored:
            bandit = self.bandit(recipe, policy=self.exhaustive)
            run(self.environment, bandit, rounds=self.rounds, batch=self.batch, audits=0)
            self._stored = {key: bandit.policy}
        trained: Policy = self._stored[key]
        return trained

    def _fitted(self, plan: Blueprint, policy: Policy, split: int) -> Search:
        """Fit a search once for all that only differ in what follows their generators."""
        search = plan.search
        if not isinstance(search, LearnsToSearch):
            return search
        shape = [getattr(search, name, None) for name in ("heads", "hidden")]
        key = f"{id(policy)} {split} {shape} {asdict(plan.training.generator)}"
        if key not in self._stored:
            task = SearchFit(
                policy.model,
                policy.exploration,
                policy.arms,
                self._inputs(0, self._learned),
                plan.training.generator,
                rng=torch.Generator().manual_seed((self.seed + split) % 2**63),
            )
            self._stored[key] = search.fit(task, before=search)
        fitted: Search = self._stored[key]
        return search.restored(*fitted.state()) if isinstance(fitted, FittedSearch) else search

    def _inputs(self, first: int, count: int) -> Inputs:
        raw = self.environment.contexts(first, count)
        return self.environment.context.read(raw, what="contexts")


Measure = Callable[[Recipe, int], Measured]


def measure_of(bench: Bench, stage: int) -> Measure:
    """Return the measure of a stage."""
    return {1: bench.explained, 2: bench.shared, 3: bench.searched, 4: bench.landed}[stage]


def check_policy(name: str) -> None:
    """Raise unless a policy has anything to tune."""
    if name not in NEURAL:
        raise SettingError(
            f"Only neural policies have settings to tune: got {name!r}. Use one of "
            f"{', '.join(NEURAL)}."
        )


def check_numbers(stages: Sequence[int], *, trials: int, rounds: int, batch: int) -> None:
    """Raise unless there is enough to play and to compare."""
    wrong = [stage for stage in stages if stage not in STAGES]
    if wrong or not stages:
        raise SettingError(
            f"Stages need to be some of 1, 2, 3 and 4: got {list(stages)}. Leave them out for all."
        )
    if trials < 2:
        raise SettingError(
            f"A stage needs at least two trials, of which the first is where it stands: got "
            f"{trials}. Try 20."
        )
    if batch < 2 or rounds < 2 * batch:
        raise SettingError(
            f"Tuning needs at least two batches of two rounds or more: got {rounds} rounds in "
            f"batches of {batch}. Raise the rounds, or use a smaller batch."
        )


@torch.no_grad()
def predictions(bandit: Bandit, contexts: Any, chosen: Any) -> Floats:
    """Return the rewards that a bandit expects of arms, one for each context."""
    model, space = bandit.policy.model, bandit.policy.arms
    inputs = bandit.blueprint.context.read(contexts, what="contexts")
    if isinstance(space, BoxSpace):
        arms = bandit.blueprint.arm.read(chosen, what="arms")
    else:
        arms = space.features.take(np.asarray(chosen))
    found = []
    for first in range(0, len(inputs), _CHUNK):
        part = slice(first, first + _CHUNK)
        score = model.mean(model.embed_contexts(inputs.take(part)))
        scores = score(model.embed_arms(arms.take(part))[:, None])[:, 0]
        found.append(model.in_rewards(scores).cpu().numpy())
    return np.concatenate(found).astype(np.float64)


def log_likelihood(predicted: Floats, expected: Floats) -> float:
    """Return the mean log-likelihood of rewards 0 and 1 with the probabilities `expected`."""
    sure = np.clip(predicted, 1e-6, 1 - 1e-6)
    return float((expected * np.log(sure) + (1 - expected) * np.log(1 - sure)).mean())


def explained_share(predicted: Floats, expected: Floats) -> float:
    """Return the share of the variance of the expected rewards that predictions explain."""
    error, spread = np.square(predicted - expected).mean(), expected.var()
    return float(1 - error / spread) if spread > 0 else -float(error)


def mean_of(measured: Sequence[Measured]) -> Measured:
    """Return the mean of several splits."""
    numbers = [(one.value, one.shown, one.evaluations or 0, one.lookups or 0) for one in measured]
    value, shown, evaluations, lookups = np.mean(numbers, axis=0).tolist()
    first = measured[0]
    if first.evaluations is None:
        return Measured(value, first.what, shown)
    return Measured(value, first.what, shown, evaluations, lookups)


def _is_of_search(section: str) -> bool:
    return section.startswith("search.") or section == "training.generator"


def _measured(value: float, found: Audit) -> Measured:
    return Measured(value, "q", found.quality, found.evaluations, found.lookups)
