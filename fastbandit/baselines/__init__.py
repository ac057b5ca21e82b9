"""Policies that are not made of the four parts, with the same select and update."""

from fastbandit.baselines.best_arm import BestArmBandit, FixedArmBandit, RandomBandit
from fastbandit.baselines.linear import LinearTS, LinUCB

__all__ = [
    "BestArmBandit",
    "FixedArmBandit",
    "LinUCB",
    "LinearTS",
    "RandomBandit",
]
