"""Tiny networks with a posterior over their linear end, and the history they learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fakes import vectors_of
from plans import plan_for

from fastbandit.features.kinds import Dense
from fastbandit.features.rewards import RewardKind
from fastbandit.interfaces import Posterior
from fastbandit.reward.model import NetworkSettings
from fastbandit.training.fit_reward import RewardFit, fit_reward
from fastbandit.types import Inputs, Interactions

NETWORK = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.1, dropout_penalty=1.0)
CONTEXTS, ARMS = vectors_of(60, 3, seed=1), vectors_of(60, 2, seed=2)


def history(kind: str = "real", repeats: int = 1) -> Interactions:
    rewards = CONTEXTS[:, 0] * ARMS[:, 0]
    rewards = (rewards > 0).astype(np.float32) if kind == "binary" else rewards
    three = [np.tile(part, (repeats, 1)) for part in (CONTEXTS, ARMS, rewards[:, None])]
    return Interactions(Inputs(dense=three[0]), Inputs(dense=three[1]), three[2][:, 0])


def made(posterior: Posterior, kind: RewardKind = "real", repeats: int = 1) -> Any:
    rng = torch.Generator().manual_seed(3)
    model = posterior.build(plan_for(Dense(3), Dense(2), NETWORK, reward=kind), rng=rng)
    seen = history(kind, repeats)
    model.start(seen, fresh=len(seen))
    fit_reward(model, seen, RewardFit(iterations=400, batch=64), rng=rng)
    model.fit_posterior(seen)
    return model.requires_grad_(False)
