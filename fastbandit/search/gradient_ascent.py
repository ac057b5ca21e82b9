"""Climb the score from many starts, then land on real arms: algorithm 1 of the paper.

All starts climb in one batched pass. A climb follows the direction of the slope in the arms' own
coordinates, so that a step means the same everywhere, and never leaves their box. (The paper
follows the raw slope with step s / (s + i); the laboratory has that rule.)
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace
from fastbandit.noise.device import uniforms_on
from fastbandit.noise.philox import Stream
from fastbandit.score import Choice, Eligible, Score, Seeds
from fastbandit.search.ranking import SearchRun, Tally
from fastbandit.search.steps import CompiledSteps, walk_steps

_SCANNED = 8  # seed of the points that every decision scans


@part("search", name="ascent", dropped={"rule": "direction"})
class GradientAscent:
    """FastBandit: `starts` (R) climbs of `steps` (I), then the arms in partitions around each end.

    Steps shrink from `step_size` (see `climb`) to nothing. A climb that has reached a score above
    `enough` (τ, in the model's own units) stands still. With `scan` climbs start from the best of
    so many points, the same for all decisions. Of the end points the `lookups` best by score are
    looked up (all of them when None), each by its nearest `partitions` (and once the `far`
    outermost arms) or by just so many `neighbours` (K); `hops` x `beam` then walk the neighbour
    graph.
    """

    starts: int = 10
    steps: int = setting(default=30, least=0)
    step_size: float = 0.25
    enough: float | None = setting(default=None, least=-math.inf)
    partitions: int = setting(default=1, formerly="cells")
    far: int = setting(default=32, least=0)
    neighbours: int = setting(default=0, least=0)
    lookups: int | None = None
    hops: int = setting(default=4, least=0)
    beam: int = 4
    scan: int = setting(default=0, least=0)

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        run = SearchRun(score, arms, count=count, eligible=eligible)
        points = climb(
            run.surrogate,
            self._starts(run, seeds),
            arms,
            run.tally,
            steps=self.steps,
            step_size=self.step_size,
            enough=self.enough,
        )
        with torch.no_grad():
            if self.lookups is not None and self.lookups < self.starts:
                points = best_points(run.surrogate, points, self.lookups, run.tally)
            ranked = run.land(
                points, partitions=self.partitions, far=self.far, neighbours=self.neighbours
            )
            return run.choice(run.fill(run.hop(ranked, hops=self.hops, beam=self.beam)))

    @torch.no_grad()
    def _starts(self, run: SearchRun, seeds: Seeds) -> Float[Tensor, "B M D"]:
        """Draw points from each decision's seed, or take the best of those that all scan."""
        if self.scan <= self.starts:
            return start_points(run.arms, self.starts, seeds)
        points = run.arms.sample(self.scan, rng=torch.Generator().manual_seed(_SCANNED)).points
        run.tally.evaluations += points.shape[1]
        order = run.surrogate(points).topk(min(self.starts, points.shape[1]), dim=1).indices
        return points[0][order]  # (B, M, D)

    def compiled(self) -> CompiledSteps:
        if self.scan:
            raise SettingError(
                f"An ascent from the best of many points cannot be frozen: got scan={self.scan}. "
                f"Use scan=0, or select with the Bandit."
            )
        enough = math.inf if self.enough is None else self.enough
        return replace(walk_steps(self, self.starts), kind="ascent", enough=enough)


def climb(
    score: Score,
    points: Float[Tensor, "B M D"],
    arms: ArmSpace,
    tally: Tally,
    *,
    steps: int,
    step_size: float,
    enough: float | None = None,
) -> Float[Tensor, "B M D"]:
    """Follow the score's direction uphill with shrinking steps, never leaving the arms' box.

    The first step is `step_size` long, in units of the arms' spread: √D in D coordinates of
    deviation 1.
    """
    length = step_size * math.sqrt(points.shape[-1])
    for number in range(steps):
        scores, slopes = slope_of(score, points, tally)
        step = length * (1 - number / steps) * normalize(slopes, dim=-1)
        if enough is not None:  # a climb that has reached it stands still
            step = torch.where((scores > enough)[..., None], 0.0, step)
        points = torch.clamp(points + step, arms.low, arms.high)
    return points


def slope_of(
    score: Score, points: Float[Tensor, "B M D"], tally: Tally
) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M D"]]:
    """Return scores and their slopes at points; a slope costs as much as a second evaluation."""
    tally.evaluations += 2 * points.shape[1]
    return score.slope(points)


def start_points(arms: ArmSpace, count: int, seeds: Seeds) -> Float[Tensor, "B M D"]:
    """Draw points evenly from the arms' box, from each decision's seed."""
    numbers = uniforms_on(arms.low.device, seeds, count * arms.dim, Stream.STARTS)
    numbers = numbers.view(len(seeds), count, arms.dim)
    return arms.low + (arms.high - arms.low) * numbers


def best_points(
    score: Score, points: Float[Tensor, "B M D"], count: int, tally: Tally
) -> Float[Tensor, "B m D"]:
    tally.evaluations += points.shape[1]
    order = score(points).topk(count, dim=1).indices
    return points.gather(1, order[..., None].expand(-1, -1, points.shape[-1]))
