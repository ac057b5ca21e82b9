"""The contracts of the parts of a policy: model, exploration, search, arm space, index.

Call a check on your own; tests/contracts/test_contracts.py holds ours to it.

The docstring of each check is the law it holds a part to. A part that breaks it raises an
AssertionError that says what was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.interfaces import (
    Affine,
    ArmSpace,
    Candidates,
    Choice,
    Exploration,
    Index,
    RewardModel,
    Score,
    Search,
    Seeds,
)

_CLOSE = 1e-3
_COUNTS = (1, 5)


# -- reward models


@torch.no_grad()
def check_model(
    model: RewardModel,
    contexts: Float[Tensor, "B E"],
    arms: Float[Tensor, "N A"],
    *,
    rng: Generator,
) -> None:
    """A model's scores are pure functions of contexts and arms, and its doubt is about its mean."""
    uniforms = _uniforms(len(contexts), model.noise_size, rng=rng)
    for name, score in _scores_of(model, contexts, uniforms):
        _check_shape(name, score, contexts, arms)
        _check_pure(name, score, arms)
        _check_shared_arms(name, score, len(contexts), arms)
        _check_folding(name, score, arms, rng=rng)
        _check_slope(name, score, arms.expand(len(contexts), -1, -1))
    _check_rows_alone(model, contexts, uniforms, arms)
    _check_posterior(model, contexts, uniforms, arms)


def _scores_of(model: RewardModel, contexts: Tensor, uniforms: Tensor) -> list[tuple[str, Score]]:
    return [
        ("mean", model.mean(contexts)),
        ("draw", model.draw(contexts, uniforms, scale=1.0)),
        ("upper", model.upper(contexts, width=1.5)),
    ]


def _check_shape(name: str, score: Score, contexts: Tensor, arms: Tensor) -> None:
    """A score tells what it was fixed to, one row for each context, and scores every arm."""
    scores = score(arms[None])
    wanted = (len(contexts), len(arms))
    _need(scores.shape == wanted, f"{name} gives {tuple(scores.shape)} scores, not {wanted}")
    _need(bool(scores.isfinite().all()), f"{name} gives scores that are not finite")
    _need(len(score.noise) == len(contexts), f"{name} tells {len(score.noise)} rows of noise")
    _need_close(score.contexts, contexts, f"the contexts that {name} was fixed to")


def _check_pure(name: str, score: Score, arms: Tensor) -> None:
    """A score of an arm depends neither on the call nor on the arms beside it."""
    first = score(arms[None])
    _need_close(score(arms[None]), first, f"{name}, asked twice")
    _need_close(score(arms.flip(0)[None]).flip(1), first, f"{name}, asked in another order")
    _need_close(score(arms[None, :1]), first[:, :1], f"{name} of one arm alone")


def _check_shared_arms(name: str, score: Score, count: int, arms: Tensor) -> None:
    """Arms shared by all contexts score as the same arms repeated for each."""
    expanded = arms.expand(count, -1, -1)
    _need_close(score(expanded), score(arms[None]), f"{name} of shared arms")


def _check_folding(name: str, score: Score, arms: Tensor, *, rng: Generator) -> None:
    """A score through an affine map is the score of the mapped points."""
    dim = max(1, arms.shape[1] - 1)
    axes = torch.randn(dim, arms.shape[1], generator=rng).to(arms)
    affine = Affine(arms.mean(0), axes)
    points = torch.randn(1, 7, dim, generator=rng).to(arms)
    through = score.through(affine)
    _need_close(through(points), score(affine(points)), f"{name} through a map")
    _check_slope(f"{name} through a map", through, points.expand(len(score.contexts), -1, -1))


def _check_slope(name: str, score: Score, points: Tensor) -> None:
    """A score's own slope is the one that automatic differentiation gives."""
    scores, slopes = score.slope(points)
    with torch.enable_grad():
        leaves = points.detach().clone().requires_grad_()
        (wanted,) = torch.autograd.grad(score(leaves).sum(), leaves)
    _need_close(scores, score(points), f"{name} beside its slope")
    _need_close(slopes, wanted, f"the slope of {name}")


def _check_rows_alone(model: RewardModel, contexts: Tensor, uniforms: Tensor, arms: Tensor) -> None:
    """A context alone scores as the same context within a batch."""
    for number, (name, score) in enumerate(_scores_of(model, contexts, uniforms)):
        alone = _scores_of(model, contexts[1:2], uniforms[1:2])[number][1]
        _need_close(alone(arms[None])[0], score(arms[None])[1], f"{name} of one context alone")


def _check_posterior(model: RewardModel, contexts: Tensor, uniforms: Tensor, arms: Tensor) -> None:
    """A draw of scale 0 and a bound of width 0 are the mean; both spread with their strength."""
    points = arms[None]
    mean = model.mean(contexts)(points)
    _need_close(model.draw(contexts, uniforms, scale=0.0)(points), mean, "a draw of scale 0")
    one, two = (model.draw(contexts, u, scale=1.0)(points) for u in (uniforms, uniforms.flip(1)))
    _need_close(model.draw(contexts, uniforms, scale=1.0)(points), one, "the same draw again")
    _need(not torch.allclose(one, two), "two draws give the same scores")
    none, some, much = (model.upper(contexts, width=w)(points) for w in (0.0, 1.0, 2.0))
    _need_close(none, mean, "a bound of width 0")
    _need(bool((some >= none - 1e-5).all()), "a bound is lower than the mean")
    _need_close(much - some, some - none, "the growth of a bound with its width")


# -- explorations


@torch.no_grad()
def check_exploration(
    exploration: Exploration,
    model: RewardModel,
    contexts: Float[Tensor, "B E"],
    arms: Float[Tensor, "N A"],
    *,
    seeds: Seeds,
) -> None:
    """An exploration's score is fixed by each decision's own seed; kept quiet, it is the mean."""
    points = arms[None]
    score = exploration.score(model, contexts, seeds=seeds)
    again = exploration.score(model, contexts, seeds=seeds)
    _need_close(again(points), score(points), "the score of the same seeds")
    _need_close(again.noise, score.noise, "the noise of the same seeds")
    alone = exploration.score(model, contexts[1:2], seeds=seeds[1:2])
    _need_close(alone(points)[0], score(points)[1], "the score of one decision alone")
    quiet = exploration.quiet().score(model, contexts, seeds=seeds)
    _need_close(quiet(points), model.mean(contexts)(points), "the score without exploring")
    _need(
        quiet.noise.shape == score.noise.shape,
        f"a quiet score tells noise of shape {tuple(quiet.noise.shape)}, an exploring one "
        f"{tuple(score.noise.shape)}: a generator must understand both",
    )


# -- searches


def check_search(
    search: Search,
    score: Score,
    arms: ArmSpace,
    *,
    seeds: Seeds,
    eligible: Bool[Tensor, "b N"] | None = None,
) -> None:
    """A search gives k different allowed arms or all there are, with true scores and costs."""
    for count in _COUNTS:
        counted, space = _CountingScore(score), _CountingArms(arms)
        choice = search.best(
            replace(score, function=counted), space, count=count, seeds=seeds, eligible=eligible
        )
        _check_legal(choice, arms, count=count, eligible=eligible)
        _check_scores(choice, score)
        _check_costs(choice, counted.evaluations - space.empty, space.lookups)
        again = search.best(score, arms, count=count, seeds=seeds, eligible=eligible)
        _need(torch.equal(again.rows, choice.rows), "the same seeds give another choice")
        _need_close(again.points, choice.points, "the points of the same seeds")


def check_cost_does_not_grow(small: Choice, large: Choice) -> None:
    """A search costs no more among twice as many arms."""
    for name in ("evaluations", "lookups"):
        one, two = (int(getattr(choice, name).max()) for choice in (small, large))
        _need(two <= one, f"{name} grow with the arms: {one} become {two}")


def _check_legal(choice: Choice, arms: ArmSpace, *, count: int, eligible: Tensor | None) -> None:
    """Never a closed arm, never one twice, never fewer than k while more are allowed."""
    batch, total = len(choice.rows), arms.all().rows.shape[1]
    _need(choice.rows.shape == (batch, count), f"{count} arms were asked, got {choice.rows.shape}")
    masks = torch.ones(1, total, dtype=torch.bool) if eligible is None else eligible.cpu()
    for rows, mask in zip(choice.rows.cpu(), masks.expand(batch, -1), strict=True):
        taken = rows[rows >= 0]
        _need(len(set(taken.tolist())) == len(taken), f"an arm comes twice in {rows.tolist()}")
        _need(
            len(taken) == min(count, int(mask.sum())),
            f"{len(taken)} arms for {int(mask.sum())} allowed and {count} asked",
        )
        _need(bool((rows[len(taken) :] == -1).all()), f"an empty place before an arm: {rows}")
        is_inside = taken < total
        _need(bool(mask[taken[is_inside]].all()), f"a closed arm among {taken.tolist()}")


def _check_scores(choice: Choice, score: Score) -> None:
    """The scores reported are those of the points chosen, best first."""
    with torch.no_grad():
        real = score.of(Candidates(choice.rows, choice.points))
    is_arm = choice.rows >= 0
    _need_close(choice.scores[is_arm], real[is_arm], "the scores of the chosen arms")
    _need(bool((choice.scores[~is_arm] == float("-inf")).all()), "an empty place has a score")
    steps = choice.scores[:, 1:] - choice.scores[:, :-1]
    _need(not bool((steps > 1e-6).any()), "a later arm scores higher than an earlier one")


def _check_costs(choice: Choice, evaluations: Tensor, lookups: int) -> None:
    """A search counts every score it asks for (a slope as two) and every look-up.

    Places that cells or masks leave empty are scored along with the others, and not counted.
    """
    claimed = choice.evaluations
    _need(
        bool((claimed == evaluations).all()),
        f"{claimed.tolist()} evaluations claimed, {evaluations.tolist()} made",
    )
    _need(
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


@dataclass
class _CountingArms:
    """An arm space that counts the points looked up for each context, and places left empty."""

    arms: ArmSpace
    lookups: int = 0
    empty: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.int64))

    @property
    def dim(self) -> int:
        return self.arms.dim

    @property
    def size(self) -> int | None:
        return self.arms.size

    @property
    def low(self) -> Float[Tensor, " D"]:
        return self.arms.low

    @property
    def high(self) -> Float[Tensor, " D"]:
        return self.arms.high

    @property
    def to_embedding(self) -> Callable[[Tensor], Tensor]:
        return self.arms.to_embedding

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Bool[Tensor, "b N"] | None
    ) -> Candidates:
        self.lookups += points.shape[1]
        return self._counted(self.arms.nearest(points, count, eligible=eligible))

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Candidates:
        self.lookups += points.shape[1]
        return self._counted(self.arms.around(points, partitions, far=far, eligible=eligible))

    def neighbours(self, rows: Int[Tensor, "B K"]) -> Candidates | None:
        beside = self.arms.neighbours(rows)
        return None if beside is None else self._counted(beside)

    def device_index(self) -> object | None:
        return self.arms.device_index()

    def few(self, eligible: Bool[Tensor, "b N"] | None, limit: int) -> Candidates | None:
        few = self.arms.few(eligible, limit)
        return None if few is None else self._counted(few)

    def _counted(self, found: Candidates) -> Candidates:
        self.empty = self.empty + (found.rows < 0).sum(1)
        return found

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        return self.arms.sample(count, rng=rng)

    def spanning(self, count: int) -> Candidates:
        return self.arms.spanning(count)

    def all(self) -> Candidates:
        return self.arms.all()


# -- arm spaces


def check_arm_space(arms: ArmSpace, *, rng: Generator) -> None:
    """Every arm of a space lies in its box, is placed by its map, and is found where it lies."""
    everything, sample = arms.all(), arms.sample(9, rng=rng)
    shape = (arms.dim,)
    _need(arms.low.shape == arms.high.shape == shape, f"a box of {arms.low.shape}, not {shape}")
    numbers = torch.rand(4, 3, arms.dim, generator=rng).to(arms.low)
    points = arms.low + (arms.high - arms.low) * numbers
    near = arms.nearest(points, 2, eligible=None)
    around = arms.around(points, 2, far=3, eligible=None)
    named = {"all()": everything, "sample()": sample, "nearest()": near, "around()": around}
    for name, some in named.items():
        inside = (some.points >= arms.low - 1e-4) & (some.points <= arms.high + 1e-4)
        _need(bool(inside.all()), f"an arm of {name} lies outside the box")
        _need(some.rows.shape == some.points.shape[:2], f"{name} gives rows and points that differ")
    _need(len(everything.rows) == len(sample.rows) == 1, "all() and sample() are a batch of one")
    placed = arms.to_embedding(points)
    _need(placed.shape[:2] == (4, 3), f"place() turns {points.shape} into {placed.shape}")
    _need_close(arms.to_embedding(points[1:2, :1]), placed[1:2, :1], "the place of one point alone")
    if arms.neighbours(everything.rows) is not None:
        _check_rows(arms, everything, rng=rng)


def _check_rows(arms: ArmSpace, everything: Candidates, *, rng: Generator) -> None:
    """A finite space finds each arm at its own point, keeps to masks, and knows neighbours."""
    total = everything.rows.shape[1]
    some = torch.randint(total, (1, 5), generator=rng)
    points = everything.points[:, some[0]]
    found = arms.nearest(points, 1, eligible=None)
    _need_close(found.points, points, "the arm nearest to an arm")
    mask = torch.rand(3, total, generator=rng) < 0.3
    mask[:, 0] = True
    near = arms.nearest(points.expand(3, -1, -1), 4, eligible=mask)
    taken = mask.gather(1, near.rows.clamp_min(0)) | (near.rows < 0)
    _need(bool(taken.all()), "nearest() gives an arm that is not allowed")
    around = arms.around(points.expand(3, -1, -1), 1, far=3, eligible=mask)
    taken = mask.gather(1, around.rows.clamp_min(0)) | (around.rows < 0)
    _need(bool(taken.all()), "around() gives an arm that is not allowed")
    few = arms.few(mask, total)
    _need(few is not None, "few() gives nothing although all are few")
    if few is not None:
        sets = [set(rows[rows >= 0].tolist()) for rows in few.rows]
        wanted = [set(row.nonzero()[:, 0].tolist()) for row in mask]
        _need(sets == wanted, "few() does not give exactly the allowed arms")
    _need(arms.few(mask, 0) is None, "few() gives arms although none are few")
    beside = arms.neighbours(some)
    if beside is not None:
        pairs = beside.rows.unflatten(1, (some.shape[1], -1))
        _need(not bool((pairs == some[..., None]).any()), "an arm is its own neighbour")
        real = beside.rows >= 0
        expected = everything.points[0][beside.rows.clamp_min(0)]
        _need_close(beside.points[real], expected[real], "the points of neighbours")


# -- indexes


def check_index(
    index: Index, vectors: NDArray[np.float32], *, numbers: np.random.Generator
) -> None:
    """An index gives different, allowed positions, nearest first, -1 only after the last."""
    total = len(vectors)
    _need(len(index) == total, f"an index of {total} vectors says it holds {len(index)}")
    points = numbers.normal(size=(6, vectors.shape[1])).astype(np.float32)
    masks: list[NDArray[np.bool_] | None] = [None, numbers.random(total) < 0.5]
    lone = np.zeros(total, dtype=bool)
    lone[int(numbers.integers(total))] = True
    for eligible in [*masks, lone, np.zeros(total, dtype=bool)]:
        for count in (1, 10, total + 3):
            found = index.search(points, count, eligible=eligible)
            _check_found(found, points, vectors, count=count, eligible=eligible)
    own = index.search(vectors[:5], 1)[:, 0]
    _need_close(torch.from_numpy(vectors[own]), torch.from_numpy(vectors[:5]), "a vector's nearest")


def _check_found(
    found: NDArray[np.int64],
    points: NDArray[np.float32],
    vectors: NDArray[np.float32],
    *,
    count: int,
    eligible: NDArray[np.bool_] | None,
) -> None:
    _need(found.shape == (len(points), count), f"{found.shape} positions for {count} asked")
    there = len(vectors) if eligible is None else int(eligible.sum())
    for point, row in zip(points, found, strict=True):
        real = row[row >= 0]
        _need(len(set(real.tolist())) == len(real), f"a position comes twice in {row.tolist()}")
        _need(len(real) == min(count, there), f"{len(real)} of {count} asked, {there} allowed")
        _need(bool((row[len(real) :] == -1).all()), "an empty place before a position")
        _need(eligible is None or bool(eligible[real].all()), "a closed position")
        distances = np.square(vectors[real] - point).sum(1)
        _need(bool((np.diff(distances) >= -1e-3).all()), "a nearer position after a farther one")


# -- saying what is wrong


def _need(is_met: bool, otherwise: str) -> None:
    if not is_met:
        raise AssertionError(otherwise)


def _need_close(found: Tensor, wanted: Tensor, what: str) -> None:
    """Raise unless two tensors agree, up to rounding at the scale of their largest number."""
    _need(found.shape == wanted.shape, f"{what}: shape {found.shape}, not {wanted.shape}")
    if not wanted.numel():
        return
    gap = float((found.double() - wanted.double()).abs().max())
    eligible = _CLOSE * max(1.0, float(wanted.double().abs().max()))
    _need(gap <= eligible, f"{what}: differs by {gap:.3g}, where {eligible:.3g} is rounding")


def _uniforms(batch: int, count: int, *, rng: Generator) -> Any:
    return torch.rand(batch, count, generator=rng).clamp(1e-6, 1 - 1e-6)
