"""The contract of reward models: their means, draws and bounds."""

from __future__ import annotations

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
    everybody = _scores_of(model, contexts, uniforms)
    alone = _scores_of(model, contexts[1:2], uniforms[1:2])
    for name, score in everybody.items():
        _check_score(name, score, contexts, arms)
        _check_affine(name, score, arms, rng=rng)
        found, wanted = alone[name](arms[None])[0], score(arms[None])[1]
        need_close(found, wanted, f"{name} of one context alone")
    _check_posterior(model, contexts, uniforms, arms[None])


def _scores_of(model: RewardModel, contexts: Tensor, uniforms: Tensor) -> dict[str, Score]:
    return {
        "mean": model.mean(contexts),
        "draw": model.draw(contexts, uniforms, scale=1.0),
        "upper": model.upper(contexts, width=1.5),
    }


def _check_score(name: str, score: Score, contexts: Tensor, arms: Tensor) -> None:
    """A score scores every arm, for the contexts it was fixed to.

    That of an arm depends neither on the call nor on the arms beside it; arms shared by all
    contexts score as the same arms repeated for each.
    """
    first, wanted = score(arms[None]), (len(contexts), len(arms))
    need(first.shape == wanted, f"{name} returns {tuple(first.shape)} scores, not {wanted}")
    need(bool(first.isfinite().all()), f"{name} returns scores that are not finite")
    need(len(score.noise) == len(contexts), f"{name} has {len(score.noise)} rows of noise")
    need_close(score.contexts, contexts, f"the contexts that {name} was fixed to")
    need_close(score(arms[None]), first, f"{name}, called twice")
    need_close(score(arms.flip(0)[None]).flip(1), first, f"{name}, in another order")
    need_close(score(arms[None, :1]), first[:, :1], f"{name} of one arm alone")
    repeated = arms.expand(len(contexts), -1, -1)
    need_close(score(repeated), first, f"{name} of shared arms")
    _check_slope(name, score, repeated)


def _check_affine(name: str, score: Score, arms: Tensor, *, rng: Generator) -> None:
    """A score through an affine map is the score of the mapped points."""
    dim = max(1, arms.shape[1] - 1)
    axes = torch.randn(dim, arms.shape[1], generator=rng).to(arms)
    affine = Affine(arms.mean(0), axes)
    points = torch.randn(1, 7, dim, generator=rng).to(arms)
    through = score.through(affine)
    need_close(through(points), score(affine(points)), f"{name} through a map")
    _check_slope(f"{name} through a map", through, points.expand(len(score.contexts), -1, -1))


def _check_posterior(
    model: RewardModel, contexts: Tensor, uniforms: Tensor, points: Tensor
) -> None:
    """A draw of scale 0 and a bound of width 0 are the mean; both spread as these grow."""
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
