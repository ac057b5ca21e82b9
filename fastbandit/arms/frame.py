"""Coordinates in which the arms fill a box.

Embeddings of 8 columns may hold arms on a sheet of 4 dimensions, and a unit may mean much
in one direction and nothing in another. A frame measures along the principal axes of the
arms, in units of their spread, and drops axes along which they do not differ: a search that
moves in these coordinates never leaves the sheet.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fastbandit.score import Affine

_FLAT = 1e-5
_THIN = 1e-2  # no axis of a whole frame is thinner, beside the longest
_AT_MOST = 20_000


@dataclass(frozen=True)
class Frame:
    """An affine map from coordinates to embeddings, and the way back."""

    to_embedding: Affine
    inverse: Float[Tensor, "E D"]

    def coordinates(self, embeddings: Float[Tensor, "*s E"]) -> Float[Tensor, "*s D"]:
        """Turn embeddings into coordinates; what lies off the sheet is projected onto it."""
        return (embeddings - self.to_embedding.centre) @ self.inverse


def frame_of(embeddings: Float[Tensor, "N E"], *, is_whole: bool = False) -> Frame:
    """Fit a frame to arms: principal axes, each scaled by its standard deviation.

    One that `is_whole` drops no axis: arms that come later may differ along any.
    """
    step = max(1, len(embeddings) // _AT_MOST)
    sample = embeddings[::step].double()
    centre = sample.mean(0)
    covariance = (sample - centre).T @ (sample - centre) / max(1, len(sample) - 1)
    variances, axes = torch.linalg.eigh(covariance)
    is_axis = variances > _FLAT**2 * variances.max().clamp_min(1e-30)
    is_axis[-1] = True  # one axis remains even if all arms are alike
    if is_whole:
        is_axis[:] = True
        variances = variances.clamp_min(max(_THIN**2 * float(variances.max()), _THIN**2))
    deviations = variances[is_axis].clamp_min(1e-20).sqrt()
    axes = axes[:, is_axis]
    # The largest entry of each axis is positive, so that a frame does not depend on luck.
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    # Laid out row by row, as a snapshot gives them back: another layout rounds differently.
    rows = (deviations[:, None] * axes.T).contiguous()
    return Frame(
        to_embedding=Affine(centre.to(embeddings), rows.to(embeddings)),
        inverse=(axes / deviations).contiguous().to(embeddings),
    )


def aligned(frame: Frame, embeddings: Float[Tensor, "N E"], points: Float[Tensor, "N D"]) -> Frame:
    """Rotate a frame so that arms stay where they were, as far as they can (Procrustes).

    What a generator learned about the old coordinates then still holds in the new ones.
    """
    if len(frame.to_embedding.axes) != points.shape[1]:
        return frame
    step = max(1, len(embeddings) // _AT_MOST)
    new = frame.coordinates(embeddings[::step]).double()
    left, _, right = torch.linalg.svd(new.T @ points[::step].double())
    rotation = (left @ right).to(frame.inverse)
    return Frame(
        Affine(frame.to_embedding.centre, rotation.T @ frame.to_embedding.axes),
        frame.inverse @ rotation,
    )
