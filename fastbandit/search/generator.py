"""GeneratorSearch asks a generator for the best arm in one pass, and lands on real arms.

GANBandit of the paper, beside the reward network as discriminator. What differs from the printed
recipe (docs/concepts.md; measured in docs/results.md): the generator sees the draw itself and the
slope of the score in the middle of the arms, it has several outputs ("heads") of which training
moves the nearest to a target, and its outputs live in the arms' own box. The laboratory has the
printed recipe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Search, SearchFit
from fastbandit.score import Choice, Eligible, Score, Seeds
from fastbandit.search.arm_generator import ArmGenerator, generator_inputs
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.fit_generator import fit_generator
from fastbandit.search.gpu_walk import walk, walks_on_gpu
from fastbandit.search.gradient_ascent import best_points, climb
from fastbandit.search.ranking import SearchRun
from fastbandit.search.steps import CompiledSteps, walk_steps


@part("search", name="generator", dropped={"told": "draw", "bounded": True})
class GeneratorSearch:
    """GANBandit: ask the generator, rank its heads by score, climb a little, look up, hop.

    Of the `lookups` best heads, climbed for `steps`, all arms in the nearest `partitions` are
    scored, and the `far` arms that lie outermost (with `neighbours`: just so many arms nearest
    to each); then, `hops` times, the neighbours of the `beam` best arms whose neighbours were
    not scored yet.
    Up to `exhaustive_up_to` arms all are scored, which is quicker, and no generator is trained.
    """

    heads: int = 16
    hidden: int = 128
    lookups: int = 2
    partitions: int = setting(default=2, formerly="cells")
    far: int = setting(default=32, least=0)
    neighbours: int = setting(default=0, least=0)
    steps: int = setting(default=2, least=0)
    step_size: float = 0.15
    hops: int = setting(default=4, least=0)
    beam: int = 3
    exhaustive_up_to: int = setting(default=0, least=0, came_later=True)

    @property
    def is_scan(self) -> bool:
        """Whether all arms are scored until a generator is fitted."""
        return self.exhaustive_up_to > 0

    def scans(self, size: int | None) -> bool:
        return size is not None and size <= self.exhaustive_up_to

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        """Score all arms, which is what it does of a few; more need a generator."""
        self._check_scan("A generator search")
        return Exhaustive().best(score, arms, count=count, seeds=seeds, eligible=eligible)

    def compiled(self) -> CompiledSteps:
        self._check_scan("A generator search that is frozen")
        return CompiledSteps()

    def _check_scan(self, what: str) -> None:
        if not self.is_scan:
            raise SettingError(
                f"{what} needs a trained generator: got none. Update the bandit first; training "
                f"makes one."
            )

    def fit(self, task: SearchFit, *, before: Search) -> Search:
        if self.scans(task.arms.size):
            return self
        old = before.generator if isinstance(before, FittedGenerator) else None
        network = fit_generator(task, old, heads=self.heads, hidden=self.hidden)
        return FittedGenerator(self, network.requires_grad_(False))

    def restored(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> Search:
        size, rng = (int(notes["inputs"]), int(notes["dim"])), Generator()
        wanted = {size[0] * self.hidden, self.hidden**2, self.hidden * self.heads * size[1]}
        if wanted - {tensor.numel() for tensor in tensors.values()}:  # before there is room for it
            raise ValueError(f"a generator of {size} inputs and columns, and tensors of others")
        generator = ArmGenerator(*size, heads=self.heads, hidden=self.hidden, rng=rng)
        generator.load_state_dict(tensors)
        device = next(iter(tensors.values())).device
        return FittedGenerator(self, generator.requires_grad_(False).to(device))


@dataclass(frozen=True)
class FittedGenerator:
    """A generator search with its generator, as an update leaves it."""

    declared: GeneratorSearch
    generator: ArmGenerator

    @torch.no_grad()
    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        mine, run = self.declared, SearchRun(score, arms, count=count, eligible=eligible)
        tally, surrogate = run.tally, run.surrogate
        points = self.generator(generator_inputs(surrogate, arms, tally), arms)
        if mine.lookups < mine.heads:
            points = best_points(surrogate, points, mine.lookups, tally)
        points = climb(surrogate, points, arms, tally, steps=mine.steps, step_size=mine.step_size)
        if not mine.neighbours and walks_on_gpu(run):
            return run.choice(walk(run, points, mine))
        ranked = run.land(
            points, partitions=mine.partitions, far=mine.far, neighbours=mine.neighbours
        )
        return run.choice(run.fill(run.hop(ranked, hops=mine.hops, beam=mine.beam)))

    def compiled(self) -> CompiledSteps:
        steps = walk_steps(self.declared, self.declared.heads)
        return replace(steps, kind="generator", generator=self.generator)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        notes = {"inputs": self.generator.inputs, "dim": self.generator.dim}
        return self.generator.state_dict(), notes
