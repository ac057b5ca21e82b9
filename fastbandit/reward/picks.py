"""What the decisions of a batch would pick one by one, and what their rewards would tell.

Desautels, Krause and Burdick, "Parallelizing exploration-exploitation tradeoffs in Gaussian
process bandit optimization" (2014), pick as if each pick had earned its mean; Snoek, Larochelle and
Adams, "Practical Bayesian optimization of machine learning algorithms" (2012), imagine rewards.
We differ in that decisions share nothing: the picks of a typical batch are worked out from the
posterior alone, and each decision draws its place among them, and their rewards.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_COVER = 512
_TOPS = 8
_NEAR = 32  # points around each top
_RADII = (0.2, 0.07, 0.025)  # of the looks around the tops, in sides of the box
_WIDTH = 1.0
_TINY = 1e-12

Halves = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points of the unit cube (n, D) to means and halves for each and T contexts.

Both have n T rows, those of a point together. The inner product of two halves is the covariance.
"""


def look(halves: Halves, dim: int) -> tuple[Float[Tensor, " n"], Float[Tensor, "n W"]]:
    """Return means and halves of points that cover the cube, ever closer around the best."""
    points = torch.quasirandom.SobolEngine(dim).draw(_COVER)
    steps = 2 * torch.quasirandom.SobolEngine(dim).draw(_NEAR + 1)[1:] - 1
    means, found = halves(points)
    for radius in _RADII:
        bounds = means + _WIDTH * found.square().sum(1).sqrt()
        best = bounds.view(len(points), -1).amax(1).topk(_TOPS).indices.cpu()
        near = (points[best][:, None] + radius * steps).clamp(0.0, 1.0).flatten(0, 1)
        more_means, more = halves(near)
        points, means = torch.cat([points, near]), torch.cat([means, more_means])
        found = torch.cat([found, more])
    return means, found


def pick(
    means: Float[Tensor, " n"], halves: Float[Tensor, "n W"], *, count: int, noise: float
) -> Float[Tensor, "W J"]:
    """Pick `count` points in turn; return what each would tell, a column of halves each.

    After j picks the variance of a point is that of its half, less the squared products with the
    first j columns; its mean moves by these products times standard normal surprises. `noise` is
    the variance of the reward of a pick.
    """
    variances, columns = halves.square().sum(1), halves.new_zeros(halves.shape[1], count)
    for place in range(count):
        best = (means + _WIDTH * variances.clamp_min(0.0).sqrt()).argmax()
        half, before = halves[best], columns[:, :place]
        left = half - before @ (before.T @ half)
        column = left / torch.sqrt((half @ left).clamp_min(0.0) + noise + _TINY)
        variances = variances - (halves @ column).square()
        columns[:, place] = column
    return columns
