"""Score every arm, in chunks: slow, exact, the yardstick."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fastbandit.declaration import part
from fastbandit.interfaces import ArmSpace
from fastbandit.score import Candidates, Choice, Eligible, Score, Seeds
from fastbandit.search.ranking import NOTHING, Ranked, Tally
from fastbandit.search.steps import CompiledSteps

_SCORED = 2**13  # contexts x arms at a time: so few stay in the cache
_SCORED_ON_GPU = 2**22


@part("search", name="exhaustive")
class Exhaustive:
    """Scores every arm (of a box: a fine cover), `chunk` at a time (None: what is fast)."""

    chunk: int | None = None
    is_scan: ClassVar[bool] = True

    def scans(self, size: int | None) -> bool:
        return True

    def compiled(self) -> CompiledSteps:
        return CompiledSteps()

    @torch.no_grad()
    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        everything = arms.all()
        total = everything.rows.shape[1]
        tally = Tally(len(score.contexts), score.contexts.device)
        scores: Float[Tensor, "B K"] = score.contexts.new_empty(tally.contexts, 0)
        rows: Int[Tensor, "B K"] = everything.rows.new_empty(tally.contexts, 0)
        scored = _SCORED if score.contexts.device.type == "cpu" else _SCORED_ON_GPU
        step = self.chunk or max(1, scored // max(1, tally.contexts))
        for first in range(0, total, step):
            part = slice(first, first + step)
            fresh = score.of(Candidates(everything.rows[:, part], everything.points[:, part]))
            tally.evaluations += fresh.shape[1]
            if eligible is not None:
                fresh = fresh.masked_fill(~eligible[:, part], NOTHING)
            scores = torch.cat([scores, fresh], dim=1)
            rows = torch.cat([rows, everything.rows[:, part].expand(tally.contexts, -1)], dim=1)
            scores, order = scores.topk(min(count, scores.shape[1]), dim=1)
            rows = rows.gather(1, order)
        return Ranked(rows, everything.points[0][rows], scores).as_choice(count, tally)
