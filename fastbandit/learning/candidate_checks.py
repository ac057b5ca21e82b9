"""The checks of a candidate before it may serve: finite, well searched, no worse than before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.exploration import Greedy
from fastbandit.interfaces import FittedSearch
from fastbandit.learning.joining import Interaction, to_arrays
from fastbandit.policy import Policy
from fastbandit.score import Candidates
from fastbandit.settings.service import LearnConfig

_AUDITED = 200
_LOOKED_UP = 100
_NEAREST = 10
_ABOUT = 1.1  # an arm so many times as far is about as near
_ERRORS = 2.0
_SURE = 1e-6  # a prediction of 0 or 1 would be punished without bound


@dataclass(frozen=True)
class Checks:
    """What was measured of a candidate; losses are of the interactions that were held out.

    `worse` is the mean of the candidate's losses less its parent's, with its standard error;
    None where there were no such interactions, or the parent had learned nothing.
    """

    finite: bool
    quality: float
    recall: float
    held_out: int
    loss: float | None = None
    worse: float | None = None
    standard_error: float | None = None

    def notes(self) -> dict[str, Any]:
        return {name: _to_json(value) for name, value in asdict(self).items()}

    def reason(self, minimum: LearnConfig) -> str | None:
        """Say why the candidate must not serve, if so."""
        if not self.finite:
            return "Its weights need to be finite numbers, and some are not."
        if not self.quality >= minimum.min_quality:
            return (
                f"Its search needs a quality q of at least {minimum.min_quality:g}: got "
                f"{self.quality:.3f}."
            )
        if not self.recall >= minimum.min_recall:
            return (
                f"Its index needs to find a share of at least {minimum.min_recall:g} of the "
                f"nearest arms: got {self.recall:.3f}."
            )
        if self.worse is None or self.standard_error is None:
            return None
        if not self.worse <= _ERRORS * self.standard_error:
            return (
                f"Its loss on {self.held_out} interactions that it has not seen must not exceed "
                f"that of its parent by more than {_ERRORS:g} standard errors: got "
                f"{self.worse:.4g} more, with a standard error of {self.standard_error:.2g}."
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
    contexts, _, _ = to_arrays(fresh[-_AUDITED:])
    found = Checks(True, bandit.audit(contexts).quality, recall(policy), held_out)
    if held_out == 0:
        return found
    losses = losses_of(bandit, policy, fresh[-held_out:])
    found = replace(found, loss=float(losses.mean()))
    if before is None or held_out < 2:
        return found
    gaps = losses - losses_of(bandit, before, fresh[-held_out:])
    error = float(gaps.std(ddof=1)) / math.sqrt(held_out)
    return replace(found, worse=float(gaps.mean()), standard_error=error)


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


@torch.no_grad()
def losses_of(
    bandit: Bandit, policy: Policy, interactions: Sequence[Interaction]
) -> NDArray[np.float64]:
    """Return the loss of the mean prediction for each interaction: log loss, or squared error."""
    arms, model = _catalogue(bandit.policy), policy.model
    contexts, ids, rewards = to_arrays(interactions)
    inputs = bandit.blueprint.context.read(contexts, what="contexts")
    rows = arms.table.rows(ids)
    embedded = model.embed_arms(arms.features.take(rows))[:, None]
    seeds = np.zeros(len(rewards), dtype=np.uint64)
    score = Greedy().score(model, model.embed_contexts(inputs), seeds=seeds)
    scores = score.of(Candidates(torch.from_numpy(rows)[:, None], embedded))[:, 0]
    predicted = model.in_rewards(scores).double().cpu().numpy()
    if bandit.blueprint.reward == "real":
        squares: NDArray[np.float64] = np.square(predicted - rewards)
        return squares
    probabilities = np.clip(predicted, _SURE, 1 - _SURE)
    return -np.log(np.where(rewards > 0.5, probabilities, 1 - probabilities))


def _catalogue(policy: Policy) -> Catalogue:
    assert isinstance(policy.arms, Catalogue)
    return policy.arms


def _to_json(value: Any) -> Any:
    """Round a number, so that reports are short; what is not finite is None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
