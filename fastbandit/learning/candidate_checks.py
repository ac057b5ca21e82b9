"""The checks of a candidate before it may serve: finite, well searched, no worse than others.

Worse is what is so beyond a 95 % interval of the paired differences of losses on interactions that
were held out: than the version in service, than a constant, or than popularity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.exploration import Greedy
from fastbandit.interfaces import FittedSearch
from fastbandit.learning.joining import Interaction, to_arrays
from fastbandit.learning.shrunken_means import ShrunkenMeans
from fastbandit.policy import Policy
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.score import Candidates
from fastbandit.settings.service import LearnConfig
from fastbandit.types import Inputs

_AUDITED = 200
_LOOKED_UP = 100
_NEAREST = 10
_ABOUT = 1.1  # an arm so many times as far is about as near
FEWEST = 20
"""Fewer held-out interactions than these are no reason to refuse a candidate."""
_Z = NormalDist().inv_cdf(0.975)
_SURE = 1e-6  # a prediction of 0 or 1 would be punished without bound

Losses: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """The held-out loss of something else, and the candidate's less it, with its 95 % interval."""

    loss: float
    difference: float
    low: float
    high: float

    @staticmethod
    def of(losses: Losses, others: Losses) -> Comparison:
        """Compare the losses of the same interactions, at least two."""
        gaps = losses - others
        middle, count = float(gaps.mean()), len(gaps)
        quantile = _Z + (_Z**3 + _Z) / (4.0 * (count - 1.0))  # of Student's t, nearly
        half = quantile * float(gaps.std(ddof=1)) / math.sqrt(count)
        return Comparison(float(others.mean()), middle, middle - half, middle + half)


@dataclass(frozen=True)
class Checks:
    """What was measured of a candidate; losses are of the interactions that were held out.

    `in_service` is the version in service, None where that had learned nothing, `constant` the
    mean reward, `popularity` each arm's shrunken mean reward, both of what was learned. They are
    None where fewer than two interactions were held out. Recall is for people: an index that
    misses neighbours and finds arms as good does no harm, and q says whether it does.
    """

    finite: bool
    quality: float
    recall: float
    held_out: int
    loss: float | None = None
    in_service: Comparison | None = None
    constant: Comparison | None = None
    popularity: Comparison | None = None

    def notes(self) -> dict[str, Any]:
        return _to_json(asdict(self))

    def reason(self, minimum: LearnConfig) -> str | None:
        """Say why the candidate must not serve, if so."""
        if not self.finite:
            return "Its weights need to be finite numbers, and some are not."
        if not self.quality >= minimum.min_quality:
            return (
                f"Its search needs a quality q of at least {minimum.min_quality:g}: got "
                f"{self.quality:.3f}."
            )
        others = {
            "the version in service": self.in_service,
            "a constant, the mean reward": self.constant,
            "popularity, each arm's shrunken mean reward": self.popularity,
        }
        for name, other in others.items():
            if other is not None and self.held_out >= FEWEST and not other.low <= 0:
                return (
                    f"Its loss on {self.held_out} interactions that it has not seen must not "
                    f"exceed that of {name}: got {self.loss:.4g} beside {other.loss:.4g}, a "
                    f"difference between {other.low:.2g} and {other.high:.2g} (95 %)."
                )
        return None


def check_candidate(
    bandit: Bandit, before: Policy | None, fresh: Sequence[Interaction], *, held_out: int
) -> Checks:
    """Measure a candidate on fresh interactions, of which it has not seen the last `held_out`.

    `before` is the policy of its parent, None where that had learned nothing.
    """
    policy = bandit.policy
    if not is_finite(policy):
        return Checks(finite=False, quality=math.nan, recall=math.nan, held_out=held_out)
    contexts: Any = to_arrays(fresh[-_AUDITED:], bandit.blueprint.context)[0]
    if not fresh and bandit.history is not None:  # nothing but rewards that were combined anew
        contexts = bandit.history.contexts.take(slice(-_AUDITED, None)).dense
    found = Checks(True, bandit.audit(contexts).quality, recall(policy), held_out)
    if held_out == 0:
        return found
    unseen = fresh[-held_out:]
    losses = losses_of(bandit, policy, unseen)
    found = replace(found, loss=float(losses.mean()))
    if held_out < 2:
        return found
    if before is not None:
        others = losses_of(bandit, before, unseen)
        found = replace(found, in_service=Comparison.of(losses, others))
    known = _popularity(bandit, fresh[:-held_out])
    if known is None:
        return found
    rows = _rows_of(bandit, unseen)
    rewards = np.array([one.reward for one in unseen], dtype=np.float64)
    simple = (np.full(len(rows), known.mean), known.predicted(rows))
    constant, popular = (loss_of(one, rewards, kind=_kind_of(bandit)) for one in simple)
    return replace(
        found,
        constant=Comparison.of(losses, constant),
        popularity=Comparison.of(losses, popular),
    )


def _popularity(bandit: Bandit, learned: Sequence[Interaction]) -> ShrunkenMeans | None:
    """Return the means of all that a bandit learned, or else of what it learned last."""
    history = bandit.history
    if history is not None and history.rows is not None and len(history):
        return ShrunkenMeans.of(history.rows, history.rewards.astype(np.float64))
    if not learned:
        return None
    rewards = np.array([one.reward for one in learned], dtype=np.float64)
    return ShrunkenMeans.of(_rows_of(bandit, learned), rewards)


def _rows_of(bandit: Bandit, interactions: Sequence[Interaction]) -> NDArray[np.int64]:
    return _catalogue(bandit.policy).table.rows([one.arm for one in interactions])


def is_finite(policy: Policy) -> bool:
    """Return whether all numbers behind decisions are finite."""
    tensors = list(policy.model.state_dict().values())
    if isinstance(policy.search, FittedSearch):
        tensors += policy.search.state()[0].values()
    vectors = _catalogue(policy).vectors
    return all(
        bool(tensor.isfinite().all()) for tensor in [*tensors, vectors] if tensor is not None
    )


@torch.no_grad()
def recall(policy: Policy) -> float:
    """Return which share of the arms that the index finds near some arms are nearest to them.

    Those a tenth farther than the tenth nearest count as such: where features are many, a
    great number of arms are about as near, and one is as good as another.
    """
    arms = _catalogue(policy)
    rows = np.flatnonzero(arms.live)
    step = max(1, len(rows) // _LOOKED_UP)
    points = arms.at(torch.from_numpy(rows[::step][:_LOOKED_UP])[:, None])  # (B, 1, D)
    count = min(_NEAREST, len(rows))
    live = torch.from_numpy(arms.live).to(points.device)[None]
    found = arms.nearest(points, count, eligible=None)
    exact = arms.nearest(points, count, eligible=live)
    gaps, least = (_distances(points, near.points, near.rows) for near in (found, exact))
    return float((gaps <= _ABOUT**2 * least[:, -1:] + 1e-6).double().mean())


def _distances(points: Tensor, found: Tensor, rows: Tensor) -> Tensor:
    gaps = (found - points).square().sum(-1)
    return gaps.masked_fill(rows < 0, float("inf")).sort(dim=1).values


def losses_of(bandit: Bandit, policy: Policy, interactions: Sequence[Interaction]) -> Losses:
    """Return the loss of the mean prediction for each interaction: log loss, or squared error."""
    kind = bandit.blueprint.context
    contexts, _, rewards = to_arrays(interactions, kind)
    inputs, rows = kind.read(contexts, what="contexts"), _rows_of(bandit, interactions)
    return loss_of(predicted_by(bandit, policy, inputs, rows), rewards, kind=_kind_of(bandit))


def _kind_of(bandit: Bandit) -> str:
    """Return which rewards losses are for: a regression predicts means, which may exceed 1."""
    is_regression = isinstance(bandit.policy.model, EffectsReward)
    return "real" if is_regression else bandit.blueprint.reward


@torch.no_grad()
def predicted_by(bandit: Bandit, policy: Policy, inputs: Inputs, rows: NDArray[np.int64]) -> Losses:
    """Return the mean predictions of a policy for arms in the rows of a bandit's catalogue."""
    arms, model = _catalogue(bandit.policy), policy.model
    embedded = model.embed_arms(arms.features.take(rows))[:, None]
    seeds = np.zeros(len(rows), dtype=np.uint64)
    score = Greedy().score(model, model.embed_contexts(inputs), seeds=seeds)
    scores = score.of(Candidates(torch.from_numpy(rows)[:, None], embedded))[:, 0]
    predicted: Losses = model.in_rewards(scores).double().cpu().numpy()
    return predicted


def loss_of(predicted: Losses, rewards: Losses, *, kind: str) -> Losses:
    """Return the loss of each prediction: log loss, or squared error of real rewards."""
    if kind == "real":
        squares: Losses = np.square(predicted - rewards)
        return squares
    probabilities = np.clip(predicted, _SURE, 1 - _SURE)
    return -np.log(np.where(rewards > 0.5, probabilities, 1 - probabilities))


def _catalogue(policy: Policy) -> Catalogue:
    assert isinstance(policy.arms, Catalogue)
    return policy.arms


def _to_json(value: Any) -> Any:
    """Round numbers, so that reports are short; what is not finite is None."""
    if isinstance(value, dict):
        return {name: _to_json(one) for name, one in value.items()}
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
