"""Baselines of the research literature, most with the same select and update as the product's.

`MultiplePlayTS` plays several arms without contexts: its select and update are of whole rounds.
"""

from lab.baselines.gaussian_process import GaussianProcessTS, GaussianProcessUCB
from lab.baselines.glm import GLOC, GLOCTS, QGLOC
from lab.baselines.glm_ucb import GLMUCB
from lab.baselines.hoo import HOO
from lab.baselines.kernel import KernelUCB
from lab.baselines.on_grid import GridLinearTS
from lab.baselines.scaling_mab import MultiplePlayTS

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
    "MultiplePlayTS",
]
