"""Blueprint: everything a bandit is made of, as a value that can be written down and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from fastbandit.arms.catalogue import Catalogue
from fastbandit.declaration import part, setting
from fastbandit.features.kinds import grown
from fastbandit.features.rewards import RewardKind, Weights, reweighted
from fastbandit.interfaces import Exploration, Posterior, RewardModel, Search
from fastbandit.policy import Arms, Policy
from fastbandit.reward.model import NetworkSettings
from fastbandit.training.update import Training
from fastbandit.types import Features


@part("blueprint")
class Blueprint:
    """How to build a bandit's parts anew."""

    context: Features
    arm: Features
    reward: RewardKind
    network: NetworkSettings
    posterior: Posterior = setting(formerly="doubt")
    exploration: Exploration
    search: Search
    training: Training
    seed: int = setting(least=-(2**63))
    weights: Weights = setting(default=(), came_later=True)
    """Of outcomes, where a reward is a combination of them."""

    def model(self, *, device: str) -> RewardModel:
        """Build the untrained reward model, always the same from the same seed."""
        rng = torch.Generator().manual_seed(self.seed % 2**63)
        model = self.posterior.build(self, rng=rng)
        return model.requires_grad_(False).to(device)

    def reweighted(self, weights: Mapping[str, float]) -> Blueprint:
        """Return the same with other weights of outcomes; those that are not named stay."""
        return replace(self, weights=reweighted(self.weights, weights))

    def grown(self, *, contexts: Any = None, arms: Any = None) -> Blueprint:
        """Return the same with open schemas that read new names; itself where nothing is new.

        Slots that are in use stay what they are, so whatever was built after this one fits on.
        """
        context, arm = self.context, self.arm
        if contexts is not None:
            context = grown(context, contexts, what="contexts")
        if arms is not None:
            arm = grown(arm, arms, what="arms")
        is_same = context is self.context and arm is self.arm
        return self if is_same else replace(self, context=context, arm=arm)

    def policy(self, arms: Arms, *, device: str) -> Policy:
        """Build the policy of a bandit that has learned nothing yet."""
        model = self.model(device=device)
        if isinstance(arms, Catalogue):
            model.observe_arms(arms.features)
        return Policy(model, self.exploration, self.search, arms)
