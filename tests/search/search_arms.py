"""Arms and scores to search, whose best arm is known."""

from __future__ import annotations

import torch
from fakes import BowlReward, seeds_of, vectors_of
from torch import Tensor

from fastbandit import Box, Exhaustive
from fastbandit.arms.box_space import BoxSpace
from fastbandit.interfaces import ArmSpace, Exploration, Search
from fastbandit.score import Score

DIM = 3
CONTEXTS = torch.from_numpy(vectors_of(32, DIM, seed=4))


def score_of(arms: ArmSpace, exploration: Exploration) -> Score:
    score = exploration.score(BowlReward(DIM), CONTEXTS, seeds=seeds_of(32))
    return score.through(arms.to_embedding)


def box() -> BoxSpace:
    space = BoxSpace(Box([-3.0] * DIM, [3.0] * DIM, cover=2_000))
    return space.embedded_by(lambda values: values, device="cpu")


def gap_of(search: Search, score: Score, arms: ArmSpace) -> Tensor:
    """Return by how much the arms that a search finds score less than the best."""
    found = search.best(score, arms, count=1, seeds=seeds_of(32))
    exact = Exhaustive().best(score, arms, count=1, seeds=seeds_of(32))
    return exact.scores - found.scores
