"""A new policy from a policy and what happened; the old one is never touched."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor

from fastbandit.arms.box import Box
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.cell_ranges import index_in_ranges
from fastbandit.interfaces import RewardModel
from fastbandit.policy import Arms, Policy
from fastbandit.progress import Progress, silent
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from fastbandit.training.fit_generator import GeneratorFit, fit_generator
from fastbandit.training.fit_guess import fit_guess
from fastbandit.training.fit_reward import Curve, RewardFit, fit_reward, recall
from fastbandit.training.team import ALONE, Team, TeamSpread
from fastbandit.types import Inputs, Interactions

_FEWEST = 50  # interactions that are worth holding some of them back
_HELD = 4  # one in so many is held back


@dataclass(frozen=True)
class Training:
    """How an update trains the reward model and the generator."""

    reward: RewardFit = field(default_factory=RewardFit)
    generator: GeneratorFit = field(default_factory=GeneratorFit)


def update(
    policy: Policy,
    history: Interactions,
    *,
    fresh: int,
    training: Training,
    rng: Generator,
    progress: Progress = silent,
    curve: Curve | None = None,
    team: Team = ALONE,
) -> Policy:
    """Learn a history, of which the last `fresh` interactions are new, as far back as told to.

    Each member of a `team` calls this with the same arguments, and gets the same policy.
    """
    history = recall(history, training.reward)
    model = copy.deepcopy(policy.model).requires_grad_(True)
    if isinstance(policy.arms, Catalogue):
        model.meet(policy.arms.features)
    if isinstance(model, HierarchicalReward) and model.is_undecided and len(history) >= _FEWEST:
        model.judge(_rehearsed(model, history, training.reward, team=team))
    model.start(history, fresh=min(fresh, len(history)))
    first, second = training.reward.iterations, training.generator.iterations
    search, is_few = policy.search, _is_few(policy)
    is_taught = isinstance(search, GeneratorSearch) and not is_few
    steps = first + second * is_taught
    learning = partial(_report, progress, 0, steps, "learning rewards")
    fit_reward(model, history, training.reward, rng=rng, done=learning, curve=curve, team=team)
    model.settle(history)
    model.requires_grad_(False)
    arms = embed(policy.arms, model, team=team)
    if team.size > 1 and not (is_few or isinstance(search, Exhaustive)):
        _index(arms, team)
    shared = model.current if isinstance(model, HierarchicalReward) else model
    if isinstance(shared, GradientReward) and not isinstance(search, Exhaustive):
        fit_guess(shared, arms, history.contexts, rng=rng)
    if isinstance(search, GeneratorSearch) and is_few:
        search = replace(search, generator=None)
    elif isinstance(search, GeneratorSearch):
        search = fit_generator(
            search,
            model,
            policy.exploration,
            arms,
            history.contexts,
            training.generator,
            rng=rng,
            done=partial(_report, progress, first, steps, "teaching the generator"),
            team=team,
        )
        assert search.generator is not None
        search.generator.requires_grad_(False)
    return replace(policy, model=model, arms=arms, search=search)


def _is_few(policy: Policy) -> bool:
    """Tell whether there are so few arms that a search by a generator scores them all."""
    search, arms = policy.search, policy.arms
    if not isinstance(search, GeneratorSearch) or isinstance(arms, Box):
        return False
    return len(arms) <= search.exhaustive_up_to


def _rehearsed(
    model: HierarchicalReward, history: Interactions, settings: RewardFit, *, team: Team
) -> list[float]:
    """Teach a copy most of a history, and tell how well it predicts the rest."""
    trial = copy.deepcopy(model)
    is_held = np.arange(len(history)) % _HELD == 0
    taught = history.take(np.flatnonzero(~is_held))
    trial.start(taught, fresh=len(taught))
    rng = Generator().manual_seed(len(history))
    fit_reward(trial, taught, settings, rng=rng, team=team)
    trial.settle(taught)
    return trial.likelihoods(history.take(np.flatnonzero(is_held)))


def _index(arms: Arms, team: Team) -> None:
    """Build the index of a catalogue, a part of it by each member."""
    if isinstance(arms, Catalogue) and arms.lookup is not None:
        index_in_ranges(arms.lookup, TeamSpread(team))


def _report(progress: Progress, before: int, steps: int, doing: str, iterations: int) -> None:
    if iterations % 20 == 0:
        progress(before + iterations, steps, doing)


def embed(arms: Arms, model: RewardModel, *, team: Team = ALONE) -> Arms:
    """Give the arms as this model sees them."""
    if isinstance(arms, Box):
        return arms.embedded_by(model.encode_arms, device=model.device)
    with torch.no_grad():
        return arms.embedded_by(partial(_embedded, model, team))


def _embedded(model: RewardModel, team: Team, features: Inputs) -> Tensor:
    """Embed arms, a part of them by each member."""
    count = len(features)
    if team.size == 1 or count < team.size:
        return model.embed_arms(features)
    first, last = (count * (team.rank + more) // team.size for more in (0, 1))
    return team.gather(model.embed_arms(features.take(slice(first, last))))
