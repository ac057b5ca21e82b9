"""A new policy from a policy and what happened; the old one is never touched."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor, nn

from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partition_ranges import RangeWork, Rows, index_in_ranges
from fastbandit.cores import threads_for
from fastbandit.declaration import part
from fastbandit.interfaces import LearnsToSearch, RewardModel, SearchFit, declared, scans
from fastbandit.noise.philox import Stream, philox
from fastbandit.optim.process_group import SINGLE, ProcessGroup
from fastbandit.policy import Arms, Policy
from fastbandit.progress import Progress, silent
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import Curve, RewardFit, fit_reward, recall
from fastbandit.types import Inputs, Interactions

_POINTS = 1024  # of a picture, each of which a kernel is multiplied with


@part("training")
class Training:
    """How an update trains the reward model, and a search that learns."""

    reward: RewardFit = field(default_factory=RewardFit)
    generator: GeneratorFit = field(default_factory=GeneratorFit)


def training_rng(seed: int, version: int) -> Generator:
    """Return the random source of one update: a function of the seed and the version alone."""
    root = np.array([seed % 2**64], dtype=np.uint64)
    block = philox(root, np.array([version], dtype=np.uint64), int(Stream.TRAINING))[0, 0]
    return Generator().manual_seed(int(block[0]))


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
    """Learn a history, of which the last `fresh` interactions are new, as far back as settings say.

    Each rank of a process group calls this with the same arguments, and gets the same policy.
    Small networks are trained by one thread, whatever torch is set to.
    """
    history, search = recall(history, training.reward), policy.search
    model, first = copy.deepcopy(policy.model), training.reward.iterations
    plan, will_scan = declared(search), scans(search, policy.arms.size)
    learns = isinstance(plan, LearnsToSearch) and not will_scan
    steps = first + training.generator.iterations * learns
    report = partial(_report, progress, 0, steps, "learning rewards")
    with threads_for(multiplications_of(model, batch=training.reward.batch)):
        model.requires_grad_(True)
        if isinstance(policy.arms, Catalogue):
            model.observe_arms(policy.arms.features)
        learn = partial(_learn, settings=training.reward, seed=len(history), group=group)
        model.rehearse(history, learn)
        model.start(history, fresh=min(fresh, len(history)))
        fit_reward(model, history, training.reward, rng=rng, done=report, curve=curve, group=group)
        model.fit_posterior(history)
        model.requires_grad_(False)
        arms = embed(policy.arms, model, group=group)
        if group.size > 1 and not will_scan and isinstance(arms, Catalogue) and arms.lookup:
            index_in_ranges(arms.lookup, _GroupRanges(group))
        if not will_scan:
            model.fit_surrogate(arms, history.contexts, rng=rng)
        if isinstance(plan, LearnsToSearch):
            done = partial(_report, progress, first, steps, "training the generator")
            parts = (model, policy.exploration, arms, history.contexts)
            task = SearchFit(*parts, training.generator, rng, done, group)
            search = plan.fit(task, before=search)
    return replace(policy, model=model, arms=arms, search=search)


def multiplications_of(model: nn.Module, *, batch: int) -> int:
    """Return how many multiplications the largest product of a training step takes, about.

    Embeddings are looked up, not multiplied; a kernel of a picture is used at many of its points.
    """
    tables = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding)}
    sizes = [
        p.numel() * (_POINTS if p.dim() > 2 else 1)
        for p in model.parameters()
        if id(p) not in tables
    ]
    return batch * max(sizes, default=0)


def _learn(
    model: RewardModel,
    history: Interactions,
    *,
    settings: RewardFit,
    seed: int,
    group: ProcessGroup,
) -> None:
    """Let a model learn a history from start to posterior, always alike."""
    model.start(history, fresh=len(history))
    rng = Generator().manual_seed(seed)
    fit_reward(model, history, settings, rng=rng, group=group)
    model.fit_posterior(history)


@dataclass(frozen=True)
class _GroupRanges:
    """Works out ranges, one for each rank; all ranks get all of it."""

    group: ProcessGroup

    @property
    def parts(self) -> int:
        return self.group.size

    def __call__(self, work: RangeWork, count: int) -> Rows:
        """Do work on this rank's range of range(count), and return those of all together."""
        first, last = (count * (self.group.rank + more) // self.group.size for more in (0, 1))
        return self.group.gather(torch.from_numpy(work(first, last))).numpy()


def _report(progress: Progress, before: int, steps: int, doing: str, iterations: int) -> None:
    if iterations % 20 == 0:
        progress(before + iterations, steps, doing)


def embed(arms: Arms, model: RewardModel, *, group: ProcessGroup = SINGLE) -> Arms:
    """Return the arms as this model sees them."""
    if isinstance(arms, BoxSpace):
        return arms.embedded_by(model.encode_arms, device=model.device)
    with torch.no_grad():
        return arms.embedded_by(partial(_embedded, model, group))


def _embedded(model: RewardModel, group: ProcessGroup, features: Inputs) -> Tensor:
    """Embed arms, a part of them by each rank."""
    count = len(features)
    if group.size == 1 or count < group.size:
        return model.embed_arms(features)
    first, last = (count * (group.rank + more) // group.size for more in (0, 1))
    return group.gather(model.embed_arms(features.take(slice(first, last))))
