"""A new policy from a policy and what happened; the old one is never touched."""

from __future__ import annotations

import copy
from dataclasses import field, replace
from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor

from fastbandit.arms.box import Box
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partition_ranges import index_in_ranges
from fastbandit.declaration import part
from fastbandit.interfaces import RewardModel
from fastbandit.policy import Arms, Policy
from fastbandit.progress import Progress, silent
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from fastbandit.training.fit_generator import GeneratorFit, fit_generator
from fastbandit.training.fit_reward import Curve, RewardFit, fit_reward, recall
from fastbandit.training.fit_surrogate import fit_surrogate
from fastbandit.training.process_group import SINGLE, GroupSpread, ProcessGroup
from fastbandit.types import Inputs, Interactions

_FEWEST = 50  # interactions that are worth holding some of them back
_HELD = 4  # one in so many is held back


@part("training")
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
    group: ProcessGroup = SINGLE,
) -> Policy:
    """Learn a history, of which the last `fresh` interactions are new, as far back as told to.

    Each member of a `team` calls this with the same arguments, and gets the same policy.
    """
    history = recall(history, training.reward)
    model = copy.deepcopy(policy.model).requires_grad_(True)
    if isinstance(policy.arms, Catalogue):
        model.observe_arms(policy.arms.features)
    if isinstance(model, HierarchicalReward) and model.is_undecided and len(history) >= _FEWEST:
        model.judge(_rehearsed(model, history, training.reward, group=group))
    model.start(history, fresh=min(fresh, len(history)))
    first, second = training.reward.iterations, training.generator.iterations
    search, is_few = policy.search, _is_few(policy)
    has_generator_fit = isinstance(search, GeneratorSearch) and not is_few
    steps = first + second * has_generator_fit
    learning = partial(_report, progress, 0, steps, "learning rewards")
    fit_reward(model, history, training.reward, rng=rng, done=learning, curve=curve, group=group)
    model.fit_posterior(history)
    model.requires_grad_(False)
    arms = embed(policy.arms, model, group=group)
    if group.size > 1 and not (is_few or isinstance(search, Exhaustive)):
        _index(arms, group)
    shared = model.current if isinstance(model, HierarchicalReward) else model
    if isinstance(shared, GradientReward) and not isinstance(search, Exhaustive):
        fit_surrogate(shared, arms, history.contexts, rng=rng)
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
            group=group,
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
    model: HierarchicalReward, history: Interactions, settings: RewardFit, *, group: ProcessGroup
) -> list[float]:
    """Teach a copy most of a history, and tell how well it predicts the rest."""
    trial = copy.deepcopy(model)
    is_held = np.arange(len(history)) % _HELD == 0
    taught = history.take(np.flatnonzero(~is_held))
    trial.start(taught, fresh=len(taught))
    rng = Generator().manual_seed(len(history))
    fit_reward(trial, taught, settings, rng=rng, group=group)
    trial.fit_posterior(taught)
    return trial.likelihoods(history.take(np.flatnonzero(is_held)))


def _index(arms: Arms, group: ProcessGroup) -> None:
    """Build the index of a catalogue, a part of it by each member."""
    if isinstance(arms, Catalogue) and arms.lookup is not None:
        index_in_ranges(arms.lookup, GroupSpread(group))


def _report(progress: Progress, before: int, steps: int, doing: str, iterations: int) -> None:
    if iterations % 20 == 0:
        progress(before + iterations, steps, doing)


def embed(arms: Arms, model: RewardModel, *, group: ProcessGroup = SINGLE) -> Arms:
    """Give the arms as this model sees them."""
    if isinstance(arms, Box):
        return arms.embedded_by(model.encode_arms, device=model.device)
    with torch.no_grad():
        return arms.embedded_by(partial(_embedded, model, group))


def _embedded(model: RewardModel, group: ProcessGroup, features: Inputs) -> Tensor:
    """Embed arms, a part of them by each member."""
    count = len(features)
    if group.size == 1 or count < group.size:
        return model.embed_arms(features)
    first, last = (count * (group.rank + more) // group.size for more in (0, 1))
    return group.gather(model.embed_arms(features.take(slice(first, last))))
