"""How far a policy's choices are from the exhaustive ones, and at what cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.interfaces import Candidates, Score, Seeds
from fastbandit.policy import Policy
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.types import Audit, Inputs

_CHUNK = 32
_ARMS = 4096


@torch.no_grad()
def audit(policy: Policy, contexts: Inputs, *, seeds: Seeds) -> Audit:
    """Compare with the best arm that can be chosen, under the same draws: see `Audit`."""
    alive = policy.arms.alive if isinstance(policy.arms, Catalogue) else None
    allowed = None
    if alive is not None and not alive.all():
        allowed = torch.from_numpy(alive).to(policy.model.device)[None]
    exact = replace(policy, search=Exhaustive())
    qualities, evaluations, lookups = [], [], []
    for first in range(0, len(seeds), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows, numbers = contexts.take(part), seeds[part]
        found = policy.select(rows, seeds=numbers, allowed=allowed)
        best = exact.select(rows, seeds=numbers, allowed=allowed)
        average = _average(policy.score(rows, seeds=numbers), policy, allowed)
        above, room = found.scores[:, 0] - average, best.scores[:, 0] - average
        # Where all arms score the same, any choice is the best one.
        quality = torch.where(room > 1e-9, above / room.clamp_min(1e-9), torch.ones_like(room))
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


def _average(score: Score, policy: Policy, allowed: Tensor | None) -> Tensor:
    """Give the mean score over the arms that can be chosen."""
    every = policy.arms.all()
    rows, points = every.rows, every.points
    if allowed is not None:
        rows, points = rows[:, allowed[0]], points[:, allowed[0]]
    count = points.shape[1]
    parts = [slice(first, first + _ARMS) for first in range(0, count, _ARMS)]
    sums = [score.of(Candidates(rows[:, part], points[:, part])).sum(1) for part in parts]
    return torch.stack(sums).sum(0) / count
