"""Arms indexed by many workers, each of which works out ranges of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partition_ranges import RangeWork, Rows, index_in_ranges
from fastbandit.bandit import Bandit
from fastbandit.cluster.engine import Engine
from fastbandit.errors import FastbanditError
from fastbandit.interfaces import is_scan


def index_arms(bandit: Bandit, engine: Engine) -> None:
    """Build what finds the arms of a bandit, where its search needs that, on workers."""
    arms = bandit.policy.arms
    lookup = arms.lookup if isinstance(arms, Catalogue) else None
    if lookup is not None and not is_scan(bandit.policy.search):
        index_in_ranges(lookup, EngineSpread(engine))


@dataclass(frozen=True)
class EngineSpread:
    """Works out ranges on the workers of an engine, one for each."""

    engine: Engine

    @property
    def parts(self) -> int:
        return self.engine.workers

    def __call__(self, work: RangeWork, count: int) -> Rows:
        """Do work on ranges that make up range(count), and put the results together."""
        ends = np.linspace(0, count, min(self.parts, count) + 1).astype(int).tolist()
        ranges = list(pairwise(ends))
        found: dict[int, Rows] = {}
        for news in self.engine.run(partial(_work_out, work), ranges):
            if news.error is not None:
                raise FastbanditError(f"Arms cannot be indexed on workers: {news.error}")
            if news.is_over:
                found[news.job] = news.result
        return np.concatenate([found[job] for job in range(len(ranges))])


def _work_out(work: RangeWork, job: tuple[int, int], *, report: Any) -> Rows:
    return work(*job)
