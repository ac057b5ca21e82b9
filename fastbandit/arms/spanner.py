"""A few arms that span all others: the greedy subset of the largest volume.

In the spirit of Hazan and Karnin, "Volumetric spanners: an efficient exploration basis for
learning" (2016), who draw such a subset at random so that every arm lies in its ellipsoid. Here
each next arm is the one that multiplies the determinant of the subset's second moments most:
deterministic, one pass over the arms for each, and the first few of many are those of few.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

SPANNING = 64
"""So many are worked out once, and remembered."""
_RIDGE = 1e-3


@torch.no_grad()
def spanning_positions(points: Float[Tensor, "N D"], count: int) -> Int[Tensor, " K"]:
    """Return the positions of up to `count` points, the one that adds most first: O(N D K)."""
    lifted = torch.cat([points, torch.ones_like(points[:, :1])], dim=1).double()
    inverse = torch.eye(lifted.shape[1], dtype=torch.float64, device=points.device) / _RIDGE
    gains = lifted.square().sum(1) / _RIDGE
    picked: list[Tensor] = []
    for _ in range(min(count, len(points))):
        best = gains.argmax()
        picked.append(best)
        pull = inverse @ lifted[best]
        share = 1 + lifted[best] @ pull
        inverse = inverse - torch.outer(pull, pull) / share
        gains = gains - (lifted @ pull).square() / share
        gains[best] = -torch.inf
    return torch.stack(picked)
