"""Arms embedded and indexed by many workers, each of which works out ranges of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.cell_ranges import RangeWork, Rows, index_in_ranges
from fastbandit.bandit import Bandit
from fastbandit.cluster.engine import Engine
from fastbandit.errors import FastbanditError
from fastbandit.interfaces import RewardModel
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.types import Inputs


def index_arms(bandit: Bandit, engine: Engine) -> None:
    """Build what finds the arms of a bandit, where its search needs that, on workers."""
    arms = bandit.policy.arms
    lookup = arms.lookup if isinstance(arms, Catalogue) else None
    if lookup is not None and not isinstance(bandit.policy.search, Exhaustive):
        index_in_ranges(lookup, EngineSpread(engine))


def embed_and_index(catalogue: Catalogue, model: RewardModel, engine: Engine) -> Catalogue:
    """Give what `catalogue.embedded_by(model.embed_arms)` does, cells and neighbours in it.

    Cells and neighbours of the same vectors are the same to the last bit. Embeddings may differ
    in it: products of matrices are summed in another order where there are fewer rows.
    """
    spread = EngineSpread(engine)
    embedded = catalogue.embedded_by(partial(embed_arms, model, spread=spread))
    assert embedded.lookup is not None
    index_in_ranges(embedded.lookup, spread)
    return embedded


def embed_arms(model: RewardModel, features: Inputs, *, spread: EngineSpread) -> Tensor:
    """Embed arms in ranges of rows."""
    return torch.from_numpy(spread(_Embedding(model, features), len(features)))


@dataclass(frozen=True)
class EngineSpread:
    """Works out ranges on the workers of an engine, one for each."""

    engine: Engine

    @property
    def parts(self) -> int:
        return self.engine.workers

    def __call__(self, work: RangeWork, count: int) -> Rows:
        """Do work on ranges that make up range(count), and put what they give together."""
        ends = np.linspace(0, count, min(self.parts, count) + 1).astype(int).tolist()
        ranges = list(pairwise(ends))
        found: dict[int, Rows] = {}
        for news in self.engine.run(_Ranged(work), ranges):
            if news.error is not None:
                raise FastbanditError(f"Arms cannot be indexed on workers: {news.error}")
            if news.is_over:
                found[news.job] = news.result
        return np.concatenate([found[job] for job in range(len(ranges))])


@dataclass(frozen=True, eq=False)
class _Ranged:
    """Work on ranges as the job of an engine."""

    work: RangeWork

    def __call__(self, job: tuple[int, int], *, tell: Any) -> Rows:
        return self.work(*job)


@dataclass(frozen=True, eq=False)
class _Embedding:
    """Embeds a range of arms."""

    model: RewardModel
    features: Inputs

    @torch.no_grad()
    def __call__(self, first: int, last: int) -> Rows:
        embedded = self.model.embed_arms(self.features.take(slice(first, last)))
        rows: Rows = embedded.cpu().numpy()
        return rows
