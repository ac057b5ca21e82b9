"""Every reward model, trained for a moment on a tiny history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from fakes import LITTLE, vectors_of
from plans import plan_for
from torch import Tensor

from fastbandit.features.kinds import Dense, Point
from fastbandit.interfaces import Posterior, RewardModel
from fastbandit.reward.bootstrap_model import BootstrapPosterior
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.fourier_model import FourierPosterior
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.last_layer_model import LastLayerPosterior
from fastbandit.reward.model import NetworkSettings
from fastbandit.reward.variational_model import VariationalPosterior
from fastbandit.training.fit_reward import fit_reward
from fastbandit.types import Inputs, Interactions

DEEP = NetworkSettings(embedding=4, hidden=(6, 5), weight_penalty=0.1, dropout_penalty=1.0)
PLAIN = replace(DEEP, hidden=(6,), product=False, wide=False)

MODELS: dict[str, Posterior] = {
    "dropout": DropoutPosterior(),
    "gradient, full": GradientPosterior(),
    "gradient, diagonal": GradientPosterior(full_below=1),
    "gradient, when chosen": GradientPosterior(gradients="when chosen"),
    "last layer": LastLayerPosterior(),
    "bootstrap": BootstrapPosterior(heads=4),
    "variational": VariationalPosterior(),
    "fourier": FourierPosterior(features=32),
}


def history_of(*, kind: str) -> Interactions:
    contexts, arms = vectors_of(80, 3, seed=1), vectors_of(80, 5, seed=2)
    rewards = contexts[:, 0] * arms[:, 0]
    return Interactions(
        Inputs(dense=contexts),
        Inputs(dense=arms),
        (rewards > 0).astype(np.float32) if kind == "binary" else rewards,
    )


def trained(name: str, settings: NetworkSettings, kind: str) -> RewardModel:
    arm = Point((-4.0,) * 5, (4.0,) * 5) if name == "fourier" else Dense(5)
    plan = plan_for(Dense(3), arm, settings, reward=kind)
    rng = torch.Generator().manual_seed(3)
    model = MODELS[name].build(plan, rng=rng)
    history = history_of(kind=kind)
    model.start(history, fresh=len(history))
    fit_reward(model, history, LITTLE.reward, rng=rng)
    model.fit_posterior(history)
    return model.requires_grad_(False)


def embedded(model: RewardModel) -> tuple[Tensor, Tensor]:
    contexts = model.embed_contexts(Inputs(dense=vectors_of(4, 3, seed=8)))
    return contexts, model.embed_arms(Inputs(dense=vectors_of(12, 5, seed=9)))
