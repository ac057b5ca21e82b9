"""How far a policy's choices are from the exhaustive ones, and at what cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.policy import Policy
from fastbandit.score import Candidates, Score, Seeds
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.types import Audit, Inputs

_CHUNK = 32
_ARMS = 4096


@torch.no_grad()
def audit(policy: Policy, contexts: Inputs, *, seeds: Seeds) -> Audit:
    """Compare with the best arm that can be chosen, under the same draws: see `Audit`."""
    live = policy.arms.live if isinstance(policy.arms, Catalogue) else None
    eligible = None
    if live is not None and not live.all():
        eligible = torch.from_numpy(live).to(policy.model.device)[None]
    exact = replace(policy, search=Exhaustive())
    qualities, evaluations, lookups = [], [], []
    for first in range(0, len(seeds), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows, numbers = contexts.take(part), seeds[part]
        found = policy.select(rows, seeds=numbers, eligible=eligible)
        best = exact.select(rows, seeds=numbers, eligible=eligible)
        average = _average(policy.score(rows, seeds=numbers), policy, eligible)
        quality = argmax_quality(found.scores[:, 0], best=best.scores[:, 0], average=average)
        qualities.append(quality.cpu().numpy())
        evaluations.append(found.evaluations.cpu().numpy())
        lookups.append(found.lookups.cpu().numpy())
    each = np.concatenate(qualities)
    return Audit(
        quality=float(each.mean()),
        qualities=each,
        evaluations=float(np.concatenate(evaluations).mean()),
        lookups=float(np.concatenate(lookups).mean()),
        contexts=len(each),
    )


def argmax_quality(
    chosen: Float[Tensor, " B"], *, best: Float[Tensor, " B"], average: Float[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Return q = (chosen - average) / (best - average) of scores: the one definition of it."""
    room = best - average
    # Where all arms score the same, any choice is the best one.
    quality = (chosen - average) / room.clamp_min(1e-9)
    return torch.where(room > 1e-9, quality, torch.ones_like(room))


def _average(score: Score, policy: Policy, eligible: Tensor | None) -> Tensor:
    """Return the mean score over the arms that can be chosen."""
    every = policy.arms.all()
    rows, points = every.rows, every.points
    if eligible is not None:
        rows, points = rows[:, eligible[0]], points[:, eligible[0]]
    count = points.shape[1]
    parts = [slice(first, first + _ARMS) for first in range(0, count, _ARMS)]
    sums = [score.of(Candidates(rows[:, part], points[:, part])).sum(1) for part in parts]
    return torch.stack(sums).sum(0) / count
