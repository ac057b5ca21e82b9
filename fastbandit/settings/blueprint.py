"""Blueprint: everything a bandit is made of, as a value that can be written down and read back."""

from __future__ import annotations

import torch

from fastbandit.arms.catalogue import Catalogue
from fastbandit.declaration import part, setting
from fastbandit.features.rewards import RewardKind
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

    def model(self, *, device: str) -> RewardModel:
        """Build the untrained reward model, always the same from the same seed."""
        rng = torch.Generator().manual_seed(self.seed % 2**63)
        model = self.posterior.build(self, rng=rng)
        return model.requires_grad_(False).to(device)

    def policy(self, arms: Arms, *, device: str) -> Policy:
        """Build the policy of a bandit that has learned nothing yet."""
        model = self.model(device=device)
        if isinstance(arms, Catalogue):
            model.observe_arms(arms.features)
        return Policy(model, self.exploration, self.search, arms)
