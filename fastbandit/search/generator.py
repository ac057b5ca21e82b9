"""ArmGenerator proposes the best arm in one pass; GeneratorSearch asks it and lands.

GANBandit of the paper, beside the reward network as discriminator. What differs from the
printed recipe (docs/concepts.md; measured in docs/results.md): the generator is told the draw
itself and the slope of the score in the middle of the arms, it has several outputs
("heads") of which training moves the nearest to a target, and its outputs live in the arms'
own box. `preset="paper"` is the printed recipe.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Choice, Score, Search, Seeds
from fastbandit.noise.layers import linear
from fastbandit.noise.philox import Stream, normals
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.gpu_walk import walk, walks_on_gpu
from fastbandit.search.gradient_ascent import best_points, climb, slope_of
from fastbandit.search.limits import AT_LEAST, RERANKED
from fastbandit.search.neighbours import hop
from fastbandit.search.ranking import Ranked, Tally, fill, land, rerank


class ArmGenerator(nn.Module):
    """A network from (context, draw) to `heads` points in the arms' coordinates."""

    def __init__(
        self,
        inputs: int,
        dim: int,
        *,
        heads: int,
        hidden: int,
        bounded: bool,
        rng: Generator,
    ) -> None:
        super().__init__()
        self.inputs, self.dim, self.heads, self.hidden, self.bounded = (
            inputs,
            dim,
            heads,
            hidden,
            bounded,
        )
        self.layers = nn.ModuleList(
            [
                linear(inputs, hidden, rng=rng),
                linear(hidden, hidden, rng=rng),
                linear(hidden, heads * dim, rng=rng),
            ]
        )

    def forward(self, told: Float[Tensor, "B I"], arms: ArmSpace) -> Float[Tensor, "B M D"]:
        first, second, last = self.layers
        hidden = F.leaky_relu(second(F.leaky_relu(first(told), 0.1)), 0.1)
        points = last(hidden).unflatten(-1, (self.heads, self.dim))  # (B, M, D)
        if not self.bounded:
            return points
        middle, half = (arms.high + arms.low) / 2, (arms.high - arms.low) / 2
        return middle + half * torch.tanh(points)


@part("search", name="generator")
class GeneratorSearch:
    """GANBandit: ask the generator, rank its heads by score, climb a little, look up, hop.

    Of the `lookups` best heads, climbed for `steps`, all arms in the nearest `partitions` are
    scored, and the `far` arms that lie outermost (with `neighbours`: just so many arms nearest
    to each); then, `hops` times, the neighbours of the `beam` best arms whose neighbours were
    not scored yet.
    `told` is what the generator sees beside the context: "draw" (this decision's noise and
    the slope at the centre) or "gaussian" (an unrelated z of 8 numbers, as printed).
    Up to `exhaustive_up_to` arms all are scored, which is quicker, and no generator is trained.
    """

    generator: ArmGenerator | None = None
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
    told: str = setting(default="draw", choices=("draw", "gaussian"))
    bounded: bool = True
    exhaustive_up_to: int = setting(default=0, least=0, came_later=True)

    @torch.no_grad()
    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        if self.generator is None and self.exhaustive_up_to:
            return Exhaustive().best(score, arms, count=count, seeds=seeds, eligible=eligible)
        if self.generator is None:
            raise SettingError(
                "A generator search needs a trained generator: got none. Update the bandit "
                "first; training makes one."
            )
        tally, surrogate = Tally(len(seeds), score.contexts.device), score.by_surrogate()
        points = self.generator(self.tell(surrogate, arms, tally, seeds=seeds), arms)
        if self.lookups < self.heads:
            points = best_points(surrogate, points, self.lookups, tally)
        points = climb(surrogate, points, arms, tally, steps=self.steps, step_size=self.step_size)
        ranked = self._from(surrogate, arms, points, tally, count=count, eligible=eligible)
        ranked = rerank(score, arms, ranked, tally, count=count, eligible=eligible)
        return ranked.as_choice(count, tally)

    def _from(
        self,
        score: Score,
        arms: ArmSpace,
        points: Float[Tensor, "B M D"],
        tally: Tally,
        *,
        count: int,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Ranked:
        """Land on real arms from points, and walk on from the best."""
        partitions, wanted = max(self.partitions, -(-count // AT_LEAST)), max(count, RERANKED)
        if eligible is None and not self.neighbours and walks_on_gpu(score, arms, wanted):
            return walk(
                score,
                arms,
                points,
                tally,
                partitions=partitions,
                far=self.far,
                hops=self.hops,
                beam=self.beam,
                count=wanted,
            )
        ranked = land(
            score,
            arms,
            points,
            tally,
            partitions=partitions,
            far=self.far,
            neighbours=max(self.neighbours, count) if self.neighbours else 0,
            eligible=eligible,
        )
        ranked = hop(score, arms, ranked, tally, hops=self.hops, beam=self.beam, eligible=eligible)
        return fill(score, arms, ranked, tally, count=count, eligible=eligible)

    def tell(
        self, score: Score, arms: ArmSpace, tally: Tally, *, seeds: Seeds
    ) -> Float[Tensor, "B I"]:
        """Put together what the generator sees."""
        if self.told == "gaussian":
            z = torch.from_numpy(normals(seeds, _GAUSSIANS, Stream.STARTS))
            return torch.cat([score.contexts, z.to(score.contexts.device)], dim=1)
        middle = ((arms.high + arms.low) / 2).expand(len(seeds), 1, -1)
        _, slopes = slope_of(score, middle, tally)
        return torch.cat([score.contexts, score.noise, F.normalize(slopes[:, 0], dim=-1)], dim=1)

    def inputs(self, context_dim: int, noise_dim: int, arm_dim: int) -> int:
        """Tell how many numbers `tell` puts together."""
        if self.told == "gaussian":
            return context_dim + _GAUSSIANS
        return context_dim + noise_dim + arm_dim


_GAUSSIANS = 8


def is_scan(search: Search) -> bool:
    """Tell whether a search scores all arms, and needs no index."""
    if isinstance(search, GeneratorSearch):
        return search.generator is None and search.exhaustive_up_to > 0
    return isinstance(search, Exhaustive)
