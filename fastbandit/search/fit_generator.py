"""Train a generator to propose what scores high."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import SearchFit
from fastbandit.optim.nearby import contexts_near, embed_all
from fastbandit.optim.process_group import Loop, share_of
from fastbandit.optim.schedule import cosine_factor, set_rate
from fastbandit.score import Score, Seeds
from fastbandit.search.arm_generator import ArmGenerator, generator_inputs
from fastbandit.search.ranking import SearchRun

_AT_ONCE = 64  # so few targets at a time keep their scores in the processor's cache


@part("training", name="generator", dropped={"target": "best of sample"})
class GeneratorFit:
    """How long a generator learns in one update, and from what.

    For each of so many `targets` (a context and a draw), the best of `sample` random arms, improved
    by `hops` on the neighbour graph, is what the nearest head should say.
    """

    iterations: int = setting(default=1000, least=0)
    batch: int = 192
    rate: float = setting(default=2e-3, above=0)
    targets: int = setting(default=4096, formerly="pairs")
    sample: int = 512
    hops: int = setting(default=2, least=0)
    beam: int = 2
    jitter: float = 0.5
    pull: float = 0.01

    def __post_init__(self) -> None:
        if self.beam > self.sample:
            raise SettingError(
                f"The beam needs to be no wider than the sample that it is the best of: got "
                f"beam={self.beam} and sample={self.sample}. Lower the beam, or raise the sample."
            )


def fit_generator(
    task: SearchFit, before: ArmGenerator | None, *, heads: int, hidden: int
) -> ArmGenerator:
    """Return a generator that knows the score of a task, going on from the one of before."""
    settings, group = task.settings, task.group
    embedded = embed_all(task.model.embed_contexts, task.contexts)
    seeds, dim = np.zeros(1, dtype=np.uint64), task.arms.dim
    example = task.exploration.score(task.model, embedded[:1], seeds=seeds)
    size = embedded.shape[1] + example.noise.shape[1] + dim
    generator = ArmGenerator(size, dim, heads=heads, hidden=hidden, rng=task.rng)
    if before is not None and (before.inputs, before.dim, before.heads) == (size, dim, heads):
        generator.load_state_dict(before.state_dict())
    generator = generator.to(embedded.device)
    parameters = list(generator.parameters())
    optimiser = torch.optim.Adam(parameters, lr=settings.rate, fused=True)
    inputs, targets = best_of_samples(task, embedded, rng=group.noise(task.rng))
    loop = Loop(generator, optimiser, task.rng)
    for iteration in group.iterations(loop, settings.iterations):
        set_rate(optimiser, settings.rate * cosine_factor(iteration / settings.iterations))
        drawn = torch.randint(len(inputs), (settings.batch,), generator=task.rng)
        rows, weight = share_of(drawn.to(inputs.device), group)
        loss = winner_takes_all(generator(inputs[rows], task.arms), targets[rows], settings.pull)
        optimiser.zero_grad()
        (loss * weight).backward()
        group.average(parameters)
        optimiser.step()
        task.done(iteration + 1)
    group.check(parameters)
    return generator


def winner_takes_all(
    points: Float[Tensor, "B M D"], targets: Float[Tensor, "B D"], pull: float
) -> Float[Tensor, ""]:
    """Return the squared distance of the nearest head, and a little of all, so that none dies."""
    distances = (points - targets[:, None]).square().sum(-1)  # (B, M)
    return distances.amin(1).mean() + pull * distances.mean()


@torch.no_grad()
def best_of_samples(
    task: SearchFit, embedded: Float[Tensor, "n E"], *, rng: Generator
) -> tuple[Float[Tensor, "P I"], Float[Tensor, "P D"]]:
    """Return what the generator will see, and the best arm that a costly search finds for it.

    Each rank of a process group works out a part of them.
    """
    arms, settings, group = task.arms, task.settings, task.group
    inputs, targets = [], []
    count = len(range(group.rank * _AT_ONCE, settings.targets, group.size * _AT_ONCE))
    for _ in range(max(1, count)):
        score, _seeds = draw_score(task, embedded, _AT_ONCE, rng=rng)
        run = SearchRun(score, arms)
        sample = arms.sample(settings.sample, rng=rng)
        best = score(sample.points).topk(settings.beam, dim=1).indices  # (B, beam)
        start = replace(sample, rows=sample.rows[0][best], points=sample.points[0][best])
        ranked = run.hop(run.rank(start), hops=settings.hops, beam=settings.beam)
        inputs.append(generator_inputs(score, arms, run.tally))
        targets.append(ranked.best(1).points[:, 0])
    return group.gather(torch.cat(inputs)), group.gather(torch.cat(targets))


def draw_score(
    task: SearchFit, embedded: Float[Tensor, "n E"], count: int, *, rng: Generator
) -> tuple[Score, Seeds]:
    """Draw contexts near those of the history, and a posterior draw for each."""
    contexts = contexts_near(embedded, count, task.settings.jitter, rng=rng)
    seeds = torch.randint(2**62, (count,), generator=rng).numpy().astype(np.uint64)
    score = task.exploration.score(task.model, contexts, seeds=seeds).by_surrogate()
    return score.through(task.arms.to_embedding), seeds
