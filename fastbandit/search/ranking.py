"""The steps that all searches share: land on real arms, hop, and keep the best eligible ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fastbandit.interfaces import ArmSpace
from fastbandit.score import Candidates, Choice, Eligible, ListedPart, Score
from fastbandit.search.limits import AT_A_TIME, AT_LEAST, BESIDE, FEW, RERANKED

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
    """Candidates with their scores: -inf where one is missing, not eligible or repeated."""

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]
    scores: Float[Tensor, "B K"]

    @property
    def width(self) -> int:
        """How many candidates a context has, empty slots included."""
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


class SearchRun:
    """One search for the `count` best arms of a score: ranks candidates, counts what it costs.

    It finds its way by the score's surrogate; its choice is by the score itself.
    """

    def __init__(
        self, score: Score, arms: ArmSpace, *, count: int = 1, eligible: Eligible = None
    ) -> None:
        self.score, self.arms, self.count, self.eligible = score, arms, count, eligible
        self.surrogate = score.by_surrogate()
        self.tally = Tally(len(score.contexts), score.contexts.device)

    def rank(self, candidates: Candidates) -> Ranked:
        """Score candidates once; what may not be chosen gets no score."""
        rows = candidates.rows
        self.tally.evaluated(rows)
        scores = self.surrogate.of(candidates)
        is_closed = (rows < 0) | is_repeated(rows)
        if self.eligible is not None:
            masks = self.eligible.expand(len(rows), -1)
            is_closed = is_closed | ~masks.gather(1, rows.clamp_min(0))
        return Ranked(rows, candidates.points, scores.masked_fill(is_closed, NOTHING))

    def land(
        self,
        points: Float[Tensor, "B M D"],
        *,
        partitions: int = 1,
        far: int = 0,
        neighbours: int = 0,
    ) -> Ranked:
        """Look up the real arms near some points and score them.

        These are all in the nearest `partitions` of each point and the `far` outermost arms, or
        just so many `neighbours` of each point (where not 0).
        """
        arms, eligible = self.arms, self.eligible
        self.tally.lookups += points.shape[1]
        if neighbours:
            found = arms.nearest(points, max(neighbours, self.count), eligible=eligible)
        else:
            enough = max(partitions, -(-self.count // AT_LEAST))
            found = arms.around(points, enough, far=far, eligible=eligible)
        return self.rank(self.with_few(found))

    def with_few(self, found: Candidates) -> Candidates:
        """Return candidates with all arms of those contexts that may choose only a few."""
        few, contexts = self.arms.few(self.eligible, FEW), self.tally.contexts
        if few is None and len(found.rows) == contexts:
            return found
        parts = [found] if few is None else [found, few]
        return Candidates(
            torch.cat([part.rows.expand(contexts, -1) for part in parts], dim=1),
            torch.cat([part.points.expand(contexts, -1, -1) for part in parts], dim=1),
        )

    def hop(self, ranked: Ranked, *, hops: int, beam: int) -> Ranked:
        """Score the neighbours of the `beam` best arms, `hops` times over, never twice of one."""
        waiting = ranked.scores  # of arms whose neighbours were not looked at
        for _ in range(hops):
            best = waiting.topk(min(beam, waiting.shape[1]), dim=1)
            rows = ranked.rows.gather(1, best.indices)
            beside = self.arms.neighbours(torch.where(best.values > NOTHING, rows, -1))
            if beside is None:
                return ranked
            known = ranked.width
            ranked = ranked.joined(self.rank(beside))
            waiting = waiting.scatter(1, best.indices, NOTHING)
            waiting = torch.cat([waiting, ranked.scores[:, known:]], dim=1)
        return ranked

    def fill(self, ranked: Ranked) -> Ranked:
        """Make sure of `count` arms for each context, or all that are eligible."""
        found = (ranked.scores > NOTHING).sum(1)
        if int(found.min()) >= self.count:
            return ranked
        more = self.arms.nearest(ranked.best(1).points, self.count, eligible=self.eligible)
        self.tally.lookups += 1
        return ranked.joined(self.rank(more))

    def choice(self, ranked: Ranked) -> Choice:
        return self.rerank(ranked).as_choice(self.count, self.tally)

    def rerank(self, ranked: Ranked) -> Ranked:
        """Rank what was found by the score itself: arms' own parts, and what a surrogate left."""
        if isinstance(self.score.own, ListedPart):
            ranked = self._beside_own(self.score.own, ranked)
        if self.score.surrogate is None:
            return ranked
        few = ranked.best(max(RERANKED, self.count))
        self.tally.evaluated(few.rows)
        scores = self.score.of(Candidates(few.rows, few.points))
        return Ranked(few.rows, few.points, torch.where(few.scores > NOTHING, scores, NOTHING))

    def _beside_own(self, own: ListedPart, ranked: Ranked) -> Ranked:
        """Add arms' own parts to the best arms found, and rank the best by that part beside them.

        The list ends where no arm could win even if its point were as good as the last of those:
        an arm with a better point would be among them.
        """
        count = self.count
        near = ranked.best(max(BESIDE, count))
        last = near.scores[:, -1]
        is_full = (last > NOTHING) & (near.width >= max(BESIDE, count))
        bound = torch.where(is_full, last, float("inf"))
        totals = torch.where(near.scores > NOTHING, near.scores + own(near.rows), NOTHING)
        near = replace(near, scores=totals)
        rows, parts = (part.to(near.rows.device) for part in own.best())
        if not rows.shape[1]:
            return near
        points = self.arms.all().points[0][rows.clamp_min(0)]
        listed = self.rank(Candidates(rows, points))
        listed = replace(listed, scores=listed.scores + parts)
        for start in range(0, rows.shape[1], AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            is_whole = count <= near.width
            least = near.best(count).scores[:, count - 1 :].amax(1) if is_whole else NOTHING
            is_over = ~(bound + parts[:, start] > least)
            if bool(is_over.all()):
                break
            scores = listed.scores[:, part].masked_fill(is_over[:, None], NOTHING)
            near = near.joined(Ranked(rows[:, part], points[:, part], scores))
        return near


def is_repeated(rows: Int[Tensor, "B K"]) -> Bool[Tensor, "B K"]:
    """Mark arms that stand further left already."""
    order = torch.argsort(rows, dim=1, stable=True)
    ordered = rows.gather(1, order)
    is_same = torch.zeros_like(ordered, dtype=torch.bool)
    is_same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return torch.zeros_like(is_same).scatter(1, order, is_same)
