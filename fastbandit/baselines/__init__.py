"""Policies that are not made of the four parts, with the same select and update."""

from fastbandit.baselines.best_arm import BestArmBandit, FixedArmBandit
from fastbandit.baselines.gaussian_process import GaussianProcessTS, GaussianProcessUCB
from fastbandit.baselines.glm import GLOC, GLOCTS, QGLOC
from fastbandit.baselines.glm_ucb import GLMUCB
from fastbandit.baselines.hoo import HOO
from fastbandit.baselines.kernel import KernelUCB
from fastbandit.baselines.linear import LinearTS, LinUCB
from fastbandit.baselines.on_grid import GridLinearTS
from fastbandit.baselines.random import RandomBandit

__all__ = [
    "GLMUCB",
    "GLOC",
    "GLOCTS",
    "HOO",
    "QGLOC",
    "BestArmBandit",
    "FixedArmBandit",
    "GaussianProcessTS",
    "GaussianProcessUCB",
    "GridLinearTS",
    "KernelUCB",
    "LinUCB",
    "LinearTS",
    "RandomBandit",
]
