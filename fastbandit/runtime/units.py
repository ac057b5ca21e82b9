"""Words: what a frozen bandit is given, in coordinates, and what it says, in units of reward."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fastbandit.arms.partitions import Floats
from fastbandit.features.rewards import RewardKind
from fastbandit.runtime.encodings import Encoding, LinearEncoding
from fastbandit.types import Inputs


@dataclass(frozen=True)
class Units:
    """How a frozen bandit understands what it is given, and how it words what it says."""

    context: Encoding | LinearEncoding
    arm: Encoding
    inverse: Floats
    centre: Floats
    reward: RewardKind
    reward_shift: float
    reward_scale: float
    seed: int
    version: int

    def points(self, inputs: Inputs) -> Floats:
        """Give the coordinates of new arms."""
        return np.asarray((self.arm.embed(inputs) - self.centre) @ self.inverse, np.float32)

    def in_reward(self, score: float) -> float:
        """Turn one score into units of reward."""
        if self.reward == "binary":
            return 1 / (1 + math.exp(-score)) if score > -500 else 0.0
        return score * self.reward_scale + self.reward_shift

    def in_rewards(self, scores: Floats) -> Floats:
        """Turn scores into units of reward."""
        with np.errstate(over="ignore"):
            worded = scores * np.float32(self.reward_scale) + np.float32(self.reward_shift)
            if self.reward == "binary":
                worded = 1 / (1 + np.exp(-scores))
        return np.where(np.isneginf(scores), -np.inf, worded).astype(np.float32)
