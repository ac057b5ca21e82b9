"""Baselines of the research literature, with the same select and update as the product's."""

from lab.baselines.gaussian_process import GaussianProcessTS, GaussianProcessUCB
from lab.baselines.glm import GLOC, GLOCTS, QGLOC
from lab.baselines.glm_ucb import GLMUCB
from lab.baselines.hoo import HOO
from lab.baselines.kernel import KernelUCB
from lab.baselines.on_grid import GridLinearTS

__all__ = [
    "GLMUCB",
    "GLOC",
    "GLOCTS",
    "HOO",
    "QGLOC",
    "GaussianProcessTS",
    "GaussianProcessUCB",
    "GridLinearTS",
    "KernelUCB",
]
