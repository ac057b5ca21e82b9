"""How close decisions that were served came to the best arm under the same seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray

from fastbandit.arms.catalogue import Catalogue
from fastbandit.audit import argmax_quality
from fastbandit.bandit import Bandit
from fastbandit.learning.joining import to_numbers
from fastbandit.runtime.propensity import is_uniform
from fastbandit.score import Candidates
from fastbandit.settings.service import Config
from fastbandit.storage.events import ArmId, DecisionMade
from fastbandit.storage.snapshot_version import Snapshot

_AT_ONCE = 16
_CHUNK = 16
_ARMS = 4096


class Audits:
    """The qualities q of decisions that one version served, up to so many."""

    def __init__(self, version: int, bandit: Bandit, *, most: int) -> None:
        self.version, self._bandit, self._most = version, bandit, most
        self._qualities: list[float] = []

    @staticmethod
    def of(snapshot: Snapshot, config: Config) -> Audits:
        bandit = Bandit.load(snapshot.bandit, part_modules=config.select.part_modules)
        return Audits(snapshot.version, bandit, most=config.learn.audited)

    def add(self, decisions: Sequence[DecisionMade], *, touched: Collection[ArmId]) -> bool:
        """Judge a few of some decisions, spread evenly; return whether there were any."""
        wanted = min(_AT_ONCE, self._most - len(self._qualities))
        some = decisions[:: max(1, len(decisions) // max(1, wanted))][:wanted]
        found = served_qualities(self._bandit, some, touched=touched)
        self._qualities += found.tolist()
        return len(found) > 0

    def notes(self) -> dict[str, Any]:
        each = np.array(self._qualities)
        return {
            "version": self.version,
            "quality": round(float(each.mean()), 6),
            "count": len(each),
            "lowest": round(float(each.min()), 6),
        }


def own_choice(made: DecisionMade) -> DecisionMade:
    """Return a decision as the policy would have made it, where a baseline decided."""
    if made.decided_by == "bandit" or made.other is None:
        return made
    return structs.replace(made, arms=[made.other], decided_by="bandit", other=made.arms[0])


def is_plain(made: DecisionMade) -> bool:
    """Return whether a decision was the policy's own choice among all arms."""
    is_own = made.decided_by == "bandit" and made.version > 0 and not made.degraded
    is_any = made.explored and made.eligible is None and made.context != []
    return is_own and is_any and not is_uniform(made.seed, made.epsilon)


@torch.no_grad()
def served_qualities(
    bandit: Bandit, decisions: Sequence[DecisionMade], *, touched: Collection[ArmId]
) -> NDArray[np.float64]:
    """Return (chosen - mean) / (best - mean) of each decision whose arm can be judged.

    Arms that were `touched` since the bandit was made count neither way.
    """
    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    judged = [made for made in decisions if made.arms and made.arms[0] not in touched]
    judged = [made for made in judged if arms.is_live(made.arms[0])]
    eligible = arms.live.copy()
    eligible[arms.table.rows([id for id in touched if id in arms.table])] = False
    rows = torch.from_numpy(np.flatnonzero(eligible))
    parts = [judged[n : n + _CHUNK] for n in range(0, len(judged), _CHUNK)]
    return np.concatenate([np.empty(0), *(_qualities(bandit, part, rows) for part in parts)])


def _qualities(
    bandit: Bandit, made: Sequence[DecisionMade], rows: torch.Tensor
) -> NDArray[np.float64]:
    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    kind = bandit.blueprint.context
    contexts = to_numbers([one.context for one in made], kind)
    inputs = kind.read(contexts, what="contexts")
    seeds = np.array([one.seed for one in made], dtype=np.uint64)
    score = bandit.policy.score(inputs, seeds=seeds)
    chosen = torch.from_numpy(arms.table.rows([one.arms[0] for one in made]))[:, None]
    got = score.of(Candidates(chosen, arms.at(chosen)))[:, 0]
    total, best = torch.zeros_like(got), got
    for part in rows.split(_ARMS):
        scores = score.of(Candidates(part[None], arms.at(part[None])))
        total, best = total + scores.sum(1), torch.maximum(best, scores.amax(1))
    quality = argmax_quality(got, best=best, average=total / len(rows))
    return quality.double().cpu().numpy()
