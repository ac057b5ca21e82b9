"""The contract of explorations: from a posterior to a score."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from fastbandit.interfaces import Exploration, RewardModel
from fastbandit.score import Seeds
from fastbandit.testing.laws import need, need_close


@torch.no_grad()
def check_exploration(
    exploration: Exploration,
    model: RewardModel,
    contexts: Float[Tensor, "B E"],
    arms: Float[Tensor, "N A"],
    *,
    seeds: Seeds,
) -> None:
    """An exploration's score is fixed by a decision's seed; without exploring, it is the mean."""
    points = arms[None]
    score = exploration.score(model, contexts, seeds=seeds)
    again = exploration.score(model, contexts, seeds=seeds)
    need_close(again(points), score(points), "the score of the same seeds")
    need_close(again.noise, score.noise, "the noise of the same seeds")
    alone = exploration.score(model, contexts[1:2], seeds=seeds[1:2])
    need_close(alone(points)[0], score(points)[1], "the score of one decision alone")
    quiet = exploration.quiet().score(model, contexts, seeds=seeds)
    need_close(quiet(points), model.mean(contexts)(points), "the score without exploring")
    need(
        quiet.noise.shape == score.noise.shape,
        f"a quiet score has noise of shape {tuple(quiet.noise.shape)}, an exploring one "
        f"{tuple(score.noise.shape)}: a generator must understand both",
    )
