"""The contract of searches: the best of the eligible arms, and what it costs to find them."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.interfaces import ArmSpace, Search
from fastbandit.score import Candidates, Choice, Score, Seeds
from fastbandit.testing.laws import need, need_close

_COUNTS = (1, 5)


def check_search(
    search: Search,
    score: Score,
    arms: ArmSpace,
    *,
    seeds: Seeds,
    eligible: Bool[Tensor, "b N"] | None = None,
) -> None:
    """A search returns k different eligible arms or all there are, with true scores and costs."""
    for count in _COUNTS:
        counted, space = _CountingScore(score), _CountingArms(arms)
        choice = search.best(
            replace(score, function=counted), space, count=count, seeds=seeds, eligible=eligible
        )
        _check_legal(choice, arms, count=count, eligible=eligible)
        _check_scores(choice, score)
        _check_costs(choice, counted.evaluations - space.empty, space.lookups)
        again = search.best(score, arms, count=count, seeds=seeds, eligible=eligible)
        need(torch.equal(again.rows, choice.rows), "the same seeds make another choice")
        need_close(again.points, choice.points, "the points of the same seeds")


def check_cost_does_not_grow(small: Choice, large: Choice) -> None:
    """A search costs no more among twice as many arms."""
    for name in ("evaluations", "lookups"):
        one, two = (int(getattr(choice, name).max()) for choice in (small, large))
        need(two <= one, f"{name} grow with the arms: {one} become {two}")


def _check_legal(choice: Choice, arms: ArmSpace, *, count: int, eligible: Tensor | None) -> None:
    """Arms are eligible and never come twice, and are fewer than k only where all are there."""
    batch, total = len(choice.rows), arms.all().rows.shape[1]
    need(choice.rows.shape == (batch, count), f"{count} arms were wanted, got {choice.rows.shape}")
    masks = torch.ones(1, total, dtype=torch.bool) if eligible is None else eligible.cpu()
    for rows, mask in zip(choice.rows.cpu(), masks.expand(batch, -1), strict=True):
        taken = rows[rows >= 0]
        need(len(set(taken.tolist())) == len(taken), f"an arm comes twice in {rows.tolist()}")
        need(
            len(taken) == min(count, int(mask.sum())),
            f"{len(taken)} arms for {int(mask.sum())} eligible and {count} wanted",
        )
        need(bool((rows[len(taken) :] == -1).all()), f"an empty row before an arm: {rows}")
        is_inside = taken < total
        need(
            bool(mask[taken[is_inside]].all()),
            f"an arm that is not eligible among {taken.tolist()}",
        )


def _check_scores(choice: Choice, score: Score) -> None:
    """The scores reported are those of the points chosen, best first."""
    with torch.no_grad():
        real = score.of(Candidates(choice.rows, choice.points))
    is_arm = choice.rows >= 0
    need_close(choice.scores[is_arm], real[is_arm], "the scores of the chosen arms")
    need(bool((choice.scores[~is_arm] == float("-inf")).all()), "an empty row has a score")
    steps = choice.scores[:, 1:] - choice.scores[:, :-1]
    need(not bool((steps > 1e-6).any()), "a later arm scores higher than an earlier one")


def _check_costs(choice: Choice, evaluations: Tensor, lookups: int) -> None:
    """A search counts every score it evaluates (a slope as two) and every look-up.

    Rows that partitions or masks leave empty are scored along with the others, and not counted.
    """
    claimed = choice.evaluations
    need(
        bool((claimed == evaluations).all()),
        f"{claimed.tolist()} evaluations claimed, {evaluations.tolist()} made",
    )
    need(
        bool((choice.lookups == lookups).all()),
        f"{choice.lookups.tolist()} look-ups claimed, {lookups} made",
    )


class _CountingScore:
    """A score that counts how many arms each context had evaluated, a slope as two."""

    def __init__(self, score: Score) -> None:
        self.score, self.evaluations = score, 0

    def __call__(self, points: Tensor) -> Tensor:
        self.evaluations += points.shape[1] * (2 if points.requires_grad else 1)
        return self.score(points)


class _CountingArms:
    """An arm space that counts the points looked up for each context, and rows left empty."""

    def __init__(self, arms: ArmSpace) -> None:
        self.arms, self.lookups = arms, 0
        self.empty = torch.zeros(1, dtype=torch.int64)
        self.dim, self.low, self.high = arms.dim, arms.low, arms.high
        self.size, self.to_embedding = arms.size, arms.to_embedding
        self.sample, self.spanning, self.all = arms.sample, arms.spanning, arms.all
        self.device_index = arms.device_index

    def nearest(self, points: Tensor, count: int, *, eligible: Tensor | None) -> Candidates:
        self.lookups += points.shape[1]
        return self._counted(self.arms.nearest(points, count, eligible=eligible))

    def around(
        self, points: Tensor, partitions: int, *, far: int = 0, eligible: Tensor | None
    ) -> Candidates:
        self.lookups += points.shape[1]
        return self._counted(self.arms.around(points, partitions, far=far, eligible=eligible))

    def neighbours(self, rows: Tensor) -> Candidates | None:
        beside = self.arms.neighbours(rows)
        return None if beside is None else self._counted(beside)

    def few(self, eligible: Tensor | None, limit: int) -> Candidates | None:
        few = self.arms.few(eligible, limit)
        return None if few is None else self._counted(few)

    def _counted(self, found: Candidates) -> Candidates:
        self.empty = self.empty + (found.rows < 0).sum(1)
        return found
