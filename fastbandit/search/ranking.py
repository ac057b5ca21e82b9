"""The last steps that all searches share: score the candidates, keep the best eligible ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fastbandit.interfaces import ArmSpace
from fastbandit.score import Candidates, Choice, ListedPart, Score
from fastbandit.search.limits import AT_A_TIME, BESIDE, FEW, RERANKED

NOTHING = float("-inf")


@dataclass
class Tally:
    """Counts what one search costs each context, where the search runs."""

    contexts: int
    device: torch.device | str = "cpu"
    evaluations: Tensor = field(init=False)
    lookups: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.evaluations = torch.zeros(self.contexts, dtype=torch.int64, device=self.device)
        self.lookups = torch.zeros_like(self.evaluations)

    def evaluated(self, rows: Int[Tensor, "B K"]) -> None:
        self.evaluations += (rows >= 0).sum(1)


@dataclass(frozen=True)
class Ranked:
    """Candidates with their scores: -inf where a place is empty, closed or a repetition."""

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]
    scores: Float[Tensor, "B K"]

    @property
    def width(self) -> int:
        """How many candidates a context has, empty places included."""
        return self.rows.shape[1]

    def best(self, count: int) -> Ranked:
        """Keep the `count` best of each context, best first (fewer if there are fewer)."""
        scores, order = self.scores.topk(min(count, self.scores.shape[1]), dim=1)
        points = self.points.gather(1, order[..., None].expand(-1, -1, self.points.shape[-1]))
        return Ranked(self.rows.gather(1, order), points, scores)

    def joined(self, other: Ranked) -> Ranked:
        """Put two rankings together; an arm that stands in both counts once."""
        rows = torch.cat([self.rows, other.rows], dim=1)
        scores = torch.cat([self.scores, other.scores], dim=1)
        scores = scores.masked_fill(is_repeated(rows), NOTHING)
        return Ranked(rows, torch.cat([self.points, other.points], dim=1), scores)

    def as_choice(self, count: int, tally: Tally) -> Choice:
        best = self.best(count)
        missing = count - best.rows.shape[1]
        rows = torch.where(best.scores > NOTHING, best.rows, -1)
        return Choice(
            rows=torch.nn.functional.pad(rows, (0, missing), value=-1),
            points=torch.nn.functional.pad(best.points, (0, 0, 0, missing)),
            scores=torch.nn.functional.pad(best.scores, (0, missing), value=NOTHING),
            evaluations=tally.evaluations,
            lookups=tally.lookups,
        )


def rank(
    score: Score, candidates: Candidates, tally: Tally, *, eligible: Bool[Tensor, "b N"] | None
) -> Ranked:
    """Score candidates once; what may not be chosen gets no score."""
    rows = candidates.rows
    tally.evaluated(rows)
    scores = score.of(candidates)
    is_closed = rows < 0
    if eligible is not None:
        masks = eligible.expand(len(rows), -1)
        is_closed = is_closed | ~masks.gather(1, rows.clamp_min(0))
    closed = is_closed | is_repeated(rows)
    return Ranked(rows, candidates.points, scores.masked_fill(closed, NOTHING))


def land(
    score: Score,
    arms: ArmSpace,
    points: Float[Tensor, "B M D"],
    tally: Tally,
    *,
    partitions: int,
    far: int = 0,
    neighbours: int = 0,
    eligible: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Look up the real arms near some points and score them.

    These are all in the nearest `partitions` of each point and the `far` outermost arms, or just
    so many `neighbours` of each point (where not 0). Contexts that may choose only a few
    arms have all of those scored as well.
    """
    if neighbours:
        candidates = arms.nearest(points, neighbours, eligible=eligible)
    else:
        candidates = arms.around(points, partitions, far=far, eligible=eligible)
    tally.lookups += points.shape[1]
    few = arms.few(eligible, FEW)
    if few is not None:
        candidates = Candidates(
            torch.cat([candidates.rows, few.rows.expand(len(points), -1)], dim=1),
            torch.cat([candidates.points, few.points.expand(len(points), -1, -1)], dim=1),
        )
    return rank(score, candidates, tally, eligible=eligible)


def rerank(
    score: Score,
    arms: ArmSpace,
    ranked: Ranked,
    tally: Tally,
    *,
    count: int,
    eligible: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Rank what was found by the score itself: arms' own parts, and what a surrogate left."""
    if isinstance(score.own, ListedPart):
        ranked = beside_own(score, score.own, arms, ranked, tally, count=count, eligible=eligible)
    if score.surrogate is None:
        return ranked
    few = ranked.best(max(RERANKED, count))
    tally.evaluated(few.rows)
    scores = score.of(Candidates(few.rows, few.points))
    return Ranked(few.rows, few.points, torch.where(few.scores > NOTHING, scores, NOTHING))


def beside_own(
    score: Score,
    own: ListedPart,
    arms: ArmSpace,
    ranked: Ranked,
    tally: Tally,
    *,
    count: int,
    eligible: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Add arms' own parts to the best arms found, and rank the best by that part beside them.

    The list ends where no arm could win even if its point were as good as the last of those: an
    arm with a better point would be among them.
    """
    near = ranked.best(max(BESIDE, count))
    last = near.scores[:, -1]
    is_full = (last > NOTHING) & (near.width >= max(BESIDE, count))
    bound = torch.where(is_full, last, float("inf"))
    totals = torch.where(near.scores > NOTHING, near.scores + own(near.rows), NOTHING)
    near = Ranked(near.rows, near.points, totals)
    rows, parts = (part.to(near.rows.device) for part in own.best())
    if not rows.shape[1]:
        return near
    points = arms.all().points[0][rows.clamp_min(0)]
    listed = rank(score.by_surrogate(), Candidates(rows, points), tally, eligible=eligible)
    listed = replace(listed, scores=listed.scores + parts)
    for start in range(0, rows.shape[1], AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        least = near.best(count).scores[:, count - 1 :].amax(1) if count <= near.width else NOTHING
        is_over = ~(bound + parts[:, start] > least)
        if bool(is_over.all()):
            break
        some = Ranked(rows[:, part], points[:, part], listed.scores[:, part])
        near = near.joined(replace(some, scores=some.scores.masked_fill(is_over[:, None], NOTHING)))
    return near


def fill(
    score: Score,
    arms: ArmSpace,
    ranked: Ranked,
    tally: Tally,
    *,
    count: int,
    eligible: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Make sure of `count` arms for each context, or all that are eligible."""
    found = (ranked.scores > NOTHING).sum(1)
    if int(found.min()) >= count:
        return ranked
    middle = ranked.best(1).points
    more = arms.nearest(middle, count, eligible=eligible)
    tally.lookups += 1
    return ranked.joined(rank(score, more, tally, eligible=eligible))


def is_repeated(rows: Int[Tensor, "B K"]) -> Bool[Tensor, "B K"]:
    """Mark arms that stand further left already."""
    order = torch.argsort(rows, dim=1, stable=True)
    ordered = rows.gather(1, order)
    is_same = torch.zeros_like(ordered, dtype=torch.bool)
    is_same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return torch.zeros_like(is_same).scatter(1, order, is_same)
