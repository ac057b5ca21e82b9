"""Arms' own constants as a score has them: drawn or bounded, with the best of them listed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.own_lists import BANK, own_lists, own_parts
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.score import Seeds


@dataclass(frozen=True, eq=False)
class ConstantsPosterior:
    """The posterior of constants as arrays, and lists of the best for a bank of draws."""

    constants: ArmConstants

    @cached_property
    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Means and deviations by row."""
        means, deviations = self.constants.posterior()
        return means.astype(np.float32), deviations.astype(np.float32)

    def renew(self, rows: NDArray[np.int64]) -> None:
        """Work the posterior of some rows out anew, where it stands."""
        self._lists.clear()
        if len(self.arrays[0]) < len(self.constants):
            del self.__dict__["arrays"]
            return
        for array, part in zip(self.arrays, self.constants.posterior(rows), strict=True):
            array[rows] = part

    @cached_property
    def _lists(self) -> dict[tuple[float, bool], tuple[Any, Any]]:
        return {}

    def lists(self, scale: float, is_drawn: bool) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return rows and own parts of the best arms under each draw of the bank."""
        key = (scale, is_drawn)
        if key not in self._lists:
            stamp = self.constants.stamp
            self._lists[key] = own_lists(*self.arrays, scale=scale, is_drawn=is_drawn, stamp=stamp)
        return self._lists[key]


@dataclass(frozen=True, eq=False)
class OwnConstants:
    """Arms' own constants under a decision's draw or bound (see `fastbandit.arms.own_lists`)."""

    posterior: ConstantsPosterior
    seeds: Seeds
    scale: float
    is_drawn: bool

    def __call__(self, rows: Int[Tensor, "b K"]) -> Float[Tensor, "B K"]:
        parts = np.empty((len(self.seeds), rows.shape[1]), dtype=np.float32)
        scale, stamp = np.float32(self.scale), self.posterior.constants.stamp
        among = (*self.posterior.arrays, rows.cpu().numpy(), self.seeds)
        own_parts(*among, scale, self.is_drawn, stamp, parts)
        return torch.from_numpy(parts).to(rows.device)

    def best(self) -> tuple[Int[Tensor, "B L"], Float[Tensor, "B L"]]:
        """Return the rows of the best arms by this part alone, best first, and their parts."""
        rows, parts = self.posterior.lists(self.scale, self.is_drawn)
        draws = (self.seeds % np.uint64(BANK)).astype(np.int64) % len(rows)
        return torch.from_numpy(rows[draws].astype(np.int64)), torch.from_numpy(parts[draws])
