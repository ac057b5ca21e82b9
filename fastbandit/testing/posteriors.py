"""The contract of reward models: their means, draws and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.interfaces import RewardModel
from fastbandit.score import Affine, Score
from fastbandit.testing.laws import need, need_close


@torch.no_grad()
def check_model(
    model: RewardModel,
    contexts: Float[Tensor, "B E"],
    arms: Float[Tensor, "N A"],
    *,
    rng: Generator,
) -> None:
    """A model's scores are pure functions of contexts and arms, and its posterior has its mean."""
    uniforms = torch.rand(len(contexts), model.noise_size, generator=rng).clamp(1e-6, 1 - 1e-6)
    laws = _Laws(model, contexts, uniforms, arms)
    for name, score in laws.scores():
        laws.check_shape(name, score)
        laws.check_pure(name, score)
        laws.check_shared_arms(name, score)
        laws.check_affine(name, score, rng=rng)
        _check_slope(name, score, arms.expand(len(contexts), -1, -1))
    laws.check_contexts_alone()
    laws.check_posterior()


@dataclass(frozen=True)
class _Laws:
    model: RewardModel
    contexts: Tensor
    uniforms: Tensor
    arms: Tensor

    def scores(self, rows: slice = slice(None)) -> Iterator[tuple[str, Score]]:
        """Yield each kind of score, for some of the contexts."""
        contexts, uniforms = self.contexts[rows], self.uniforms[rows]
        yield "mean", self.model.mean(contexts)
        yield "draw", self.model.draw(contexts, uniforms, scale=1.0)
        yield "upper", self.model.upper(contexts, width=1.5)

    def check_shape(self, name: str, score: Score) -> None:
        """A score holds what it was fixed to, one row for each context, and scores every arm."""
        scores, wanted = score(self.arms[None]), (len(self.contexts), len(self.arms))
        need(scores.shape == wanted, f"{name} returns {tuple(scores.shape)} scores, not {wanted}")
        need(bool(scores.isfinite().all()), f"{name} returns scores that are not finite")
        rows = len(score.noise)
        need(rows == len(self.contexts), f"{name} has {rows} rows of noise")
        need_close(score.contexts, self.contexts, f"the contexts that {name} was fixed to")

    def check_pure(self, name: str, score: Score) -> None:
        """A score of an arm depends neither on the call nor on the arms beside it."""
        first = score(self.arms[None])
        need_close(score(self.arms[None]), first, f"{name}, called twice")
        need_close(score(self.arms.flip(0)[None]).flip(1), first, f"{name}, in another order")
        need_close(score(self.arms[None, :1]), first[:, :1], f"{name} of one arm alone")

    def check_shared_arms(self, name: str, score: Score) -> None:
        """Arms shared by all contexts score as the same arms repeated for each."""
        repeated = self.arms.expand(len(self.contexts), -1, -1)
        need_close(score(repeated), score(self.arms[None]), f"{name} of shared arms")

    def check_affine(self, name: str, score: Score, *, rng: Generator) -> None:
        """A score through an affine map is the score of the mapped points."""
        dim = max(1, self.arms.shape[1] - 1)
        axes = torch.randn(dim, self.arms.shape[1], generator=rng).to(self.arms)
        affine = Affine(self.arms.mean(0), axes)
        points = torch.randn(1, 7, dim, generator=rng).to(self.arms)
        through = score.through(affine)
        need_close(through(points), score(affine(points)), f"{name} through a map")
        _check_slope(f"{name} through a map", through, points.expand(len(self.contexts), -1, -1))

    def check_contexts_alone(self) -> None:
        """A context alone scores as the same context within a batch."""
        for (name, score), (_, alone) in zip(self.scores(), self.scores(slice(1, 2)), strict=True):
            found, wanted = alone(self.arms[None])[0], score(self.arms[None])[1]
            need_close(found, wanted, f"{name} of one context alone")

    def check_posterior(self) -> None:
        """A draw of scale 0 and a bound of width 0 are the mean; both spread as these grow."""
        model, contexts, uniforms = self.model, self.contexts, self.uniforms
        points = self.arms[None]
        mean = model.mean(contexts)(points)
        need_close(model.draw(contexts, uniforms, scale=0.0)(points), mean, "a draw of scale 0")
        draws = (uniforms, uniforms, uniforms.flip(1))
        one, again, two = (model.draw(contexts, draw, scale=1.0)(points) for draw in draws)
        need_close(again, one, "the same draw again")
        need(not torch.allclose(one, two), "two draws return the same scores")
        none, some, much = (model.upper(contexts, width=w)(points) for w in (0.0, 1.0, 2.0))
        need_close(none, mean, "a bound of width 0")
        need(bool((some >= none - 1e-5).all()), "a bound is lower than the mean")
        need_close(much - some, some - none, "the growth of a bound with its width")


def _check_slope(name: str, score: Score, points: Tensor) -> None:
    """A score's own slope is the one of automatic differentiation."""
    scores, slopes = score.slope(points)
    with torch.enable_grad():
        leaves = points.detach().clone().requires_grad_()
        (wanted,) = torch.autograd.grad(score(leaves).sum(), leaves)
    need_close(scores, score(points), f"{name} beside its slope")
    need_close(slopes, wanted, f"the slope of {name}")
