"""Teach a generator to propose what scores high."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Exploration, RewardModel, Score, Seeds
from fastbandit.search.generator import ArmGenerator, GeneratorSearch
from fastbandit.search.neighbours import hop
from fastbandit.search.ranking import Tally, rank
from fastbandit.training.fit_reward import cooled, set_rate
from fastbandit.training.process_group import SINGLE, ProcessGroup, share_of
from fastbandit.types import Inputs

_LESSON = 64  # so few pairs at a time keep their scores in the processor's cache


@part("training", name="generator")
class GeneratorFit:
    """How long a generator learns in one update, and from what.

    `target="best of sample"`: for each of `pairs` (context, draw), the best of `sample`
    random arms, improved by `hops` on the neighbour graph, is what the nearest head should
    say. `target="ascent"`: heads climb log D themselves, as printed.
    """

    iterations: int = setting(default=1000, least=0)
    batch: int = 192
    rate: float = setting(default=2e-3, above=0)
    pairs: int = 4096
    sample: int = 512
    hops: int = setting(default=2, least=0)
    beam: int = 2
    jitter: float = 0.5
    pull: float = 0.01
    target: str = setting(default="best of sample", choices=("best of sample", "ascent"))

    def __post_init__(self) -> None:
        if self.beam > self.sample:
            raise SettingError(
                f"The beam needs to be no wider than the sample that it is the best of: got "
                f"beam={self.beam} and sample={self.sample}. Lower the beam, or raise the sample."
            )


def fit_generator(
    search: GeneratorSearch,
    model: RewardModel,
    exploration: Exploration,
    arms: ArmSpace,
    contexts: Inputs,
    settings: GeneratorFit,
    *,
    rng: Generator,
    done: Callable[[int], None] = lambda iterations: None,
    group: ProcessGroup = SINGLE,
) -> GeneratorSearch:
    """Give the search with a generator that knows this model, going on from the one it has."""
    embedded = embed_all(model, contexts)
    generator = _generator_for(search, model, exploration, arms, embedded, rng=rng)
    parameters = list(generator.parameters())
    optimiser = torch.optim.Adam(parameters, lr=settings.rate, fused=True)
    noise = group.noise(rng)
    if settings.target == "best of sample":
        told, targets = lessons(
            search, model, exploration, arms, embedded, settings, rng=noise, group=group
        )
    for iteration in range(settings.iterations):
        set_rate(optimiser, settings.rate * cooled(iteration / settings.iterations))
        if settings.target == "best of sample":
            drawn = torch.randint(len(told), (settings.batch,), generator=rng).to(told.device)
            rows, weight = share_of(drawn, group)
            loss = winner_takes_all(generator(told[rows], arms), targets[rows], settings.pull)
        else:
            batch, weight = share_of(torch.arange(settings.batch), group)
            loss = _ascent_loss(
                search,
                generator,
                model,
                exploration,
                arms,
                embedded,
                replace(settings, batch=len(batch)),
                rng=noise,
            )
        optimiser.zero_grad()
        (loss * weight).backward()
        group.average(parameters)
        optimiser.step()
        done(iteration + 1)
    group.check(parameters)
    return replace(search, generator=generator)


def winner_takes_all(
    points: Float[Tensor, "B M D"], targets: Float[Tensor, "B D"], pull: float
) -> Float[Tensor, ""]:
    """Give the squared distance of the nearest head, and a little of all, so that none dies."""
    distances = (points - targets[:, None]).square().sum(-1)  # (B, M)
    return distances.amin(1).mean() + pull * distances.mean()


@torch.no_grad()
def lessons(
    search: GeneratorSearch,
    model: RewardModel,
    exploration: Exploration,
    arms: ArmSpace,
    embedded: Float[Tensor, "n E"],
    settings: GeneratorFit,
    *,
    rng: Generator,
    group: ProcessGroup = SINGLE,
) -> tuple[Float[Tensor, "P I"], Float[Tensor, "P D"]]:
    """Give what the generator will see, and the best arm that a costly search finds for it.

    Each member of a team works out a part of them.
    """
    told, targets = [], []
    count = len(range(group.rank * _LESSON, settings.pairs, group.size * _LESSON))
    for _ in range(max(1, count)):
        score, seeds = draw_score(model, exploration, arms, embedded, settings, _LESSON, rng=rng)
        tally = Tally(_LESSON, score.contexts.device)
        sample = arms.sample(settings.sample, rng=rng)
        scores = score(sample.points)
        best = scores.topk(settings.beam, dim=1).indices  # (B, beam)
        start = replace(sample, rows=sample.rows[0][best], points=sample.points[0][best])
        ranked = rank(score, start, tally, eligible=None)
        ranked = hop(
            score, arms, ranked, tally, hops=settings.hops, beam=settings.beam, eligible=None
        )
        told.append(search.tell(score, arms, tally, seeds=seeds))
        targets.append(ranked.best(1).points[:, 0])
    return group.gather(torch.cat(told)), group.gather(torch.cat(targets))


def draw_score(
    model: RewardModel,
    exploration: Exploration,
    arms: ArmSpace,
    embedded: Float[Tensor, "n E"],
    settings: GeneratorFit,
    count: int,
    *,
    rng: Generator,
) -> tuple[Score, Seeds]:
    """Draw contexts near those of the history, and a posterior draw for each."""
    contexts = contexts_near(embedded, count, settings.jitter, rng=rng)
    words = torch.randint(2**62, (count,), generator=rng)
    seeds = words.numpy().astype(np.uint64)
    score = exploration.score(model, contexts, seeds=seeds).by_surrogate()
    return score.through(arms.place), seeds


def contexts_near(
    embedded: Float[Tensor, "n E"], count: int, jitter: float, *, rng: Generator
) -> Float[Tensor, "B E"]:
    """Draw contexts near some: one of them, and a share of the way between two others."""
    rows = torch.randint(len(embedded), (3, count), generator=rng)
    share = jitter * torch.rand(count, 1, generator=rng)
    one, two, three = embedded[rows.to(embedded.device)]
    return one + share.to(embedded.device) * (two - three)


@torch.no_grad()
def embed_all(model: RewardModel, contexts: Inputs, chunk: int = 8192) -> Float[Tensor, "n E"]:
    """Embed many contexts, a chunk at a time."""
    parts = [
        model.embed_contexts(contexts.take(slice(first, first + chunk)))
        for first in range(0, len(contexts), chunk)
    ]
    return torch.cat(parts)


def _ascent_loss(
    search: GeneratorSearch,
    generator: ArmGenerator,
    model: RewardModel,
    exploration: Exploration,
    arms: ArmSpace,
    embedded: Float[Tensor, "n E"],
    settings: GeneratorFit,
    *,
    rng: Generator,
) -> Float[Tensor, ""]:
    """Give minus log D of the generator's arms: the printed, non-saturating objective."""
    score, seeds = draw_score(model, exploration, arms, embedded, settings, settings.batch, rng=rng)
    tally = Tally(len(seeds), score.contexts.device)
    points = generator(search.tell(score, arms, tally, seeds=seeds), arms)
    return -F.logsigmoid(score(points)).mean()


def _generator_for(
    search: GeneratorSearch,
    model: RewardModel,
    exploration: Exploration,
    arms: ArmSpace,
    embedded: Float[Tensor, "n E"],
    *,
    rng: Generator,
) -> ArmGenerator:
    """Copy the generator that the search has, or make one where none fits."""
    example = exploration.score(model, embedded[:1], seeds=np.zeros(1, dtype=np.uint64))
    inputs = search.inputs(embedded.shape[1], example.noise.shape[1], arms.dim)
    generator = ArmGenerator(
        inputs,
        arms.dim,
        heads=search.heads,
        hidden=search.hidden,
        bounded=search.bounded,
        rng=rng,
    ).to(embedded.device)
    old = search.generator
    if old is not None and (old.inputs, old.dim, old.heads) == (inputs, arms.dim, search.heads):
        generator.load_state_dict(old.state_dict())
    return generator
