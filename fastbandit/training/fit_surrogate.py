"""Teach a small network to guess the doubt of a model whose doubt is dear to work out."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.interfaces import ArmSpace
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.training.fit_generator import contexts_near, embed_all
from fastbandit.training.fit_reward import cooled, set_rate
from fastbandit.types import Inputs

_PAIRS, _CHUNK = 16_384, 2048
_ITERATIONS, _BATCH, _RATE = 800, 256, 5e-3
_JITTER = 0.5


def fit_surrogate(
    model: GradientReward, arms: ArmSpace, contexts: Inputs, *, rng: Generator
) -> None:
    """Learn the standard deviations of random arms for contexts near those of the history."""
    if model.bonus is None:
        return
    pairs, deviations = _lessons(model, arms, contexts, rng=rng)
    shift, scale = deviations.mean(), deviations.std().clamp_min(1e-9)
    targets = (deviations - shift) / scale
    parameters = list(model.bonus.parameters())
    optimiser = torch.optim.Adam(parameters, lr=_RATE, fused=True)
    model.bonus.requires_grad_(True)
    for iteration in range(_ITERATIONS):
        set_rate(optimiser, _RATE * cooled(iteration / _ITERATIONS))
        rows = torch.randint(len(targets), (_BATCH,), generator=rng).to(targets.device)
        guesses = model.bonus(pairs[0][rows], pairs[1][rows])
        loss = (guesses - targets[rows]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.bonus.requires_grad_(False)
    model.bonus_shift.copy_(shift)
    model.bonus_scale.copy_(scale)


@torch.no_grad()
def _lessons(
    model: GradientReward, arms: ArmSpace, contexts: Inputs, *, rng: Generator
) -> tuple[tuple[Tensor, Tensor], Float[Tensor, " P"]]:
    """Give pairs of embedded contexts and arms, and the standard deviation of each."""
    near = contexts_near(embed_all(model, contexts), _PAIRS, _JITTER, rng=rng)
    some = arms.place(arms.sample(_PAIRS, rng=rng).points)[0]
    parts = zip(near.split(_CHUNK), some.split(_CHUNK), strict=True)
    return (near, some), torch.cat([model.doubts(*part) for part in parts])
