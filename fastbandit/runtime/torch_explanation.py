"""Explains scores of a policy through torch: of few arms, of a box, of what is not compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.arrays import Mask
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.errors import SettingError, ShapeError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, Image
from fastbandit.features.tables import is_named
from fastbandit.interfaces import CompiledModel, Exploration, asks
from fastbandit.policy import Policy
from fastbandit.runtime.explanation import (
    OWN,
    QUANTILE,
    Asked,
    Explanation,
    Floats,
    between,
    check_learned,
    explain,
    middle_of,
)
from fastbandit.runtime.feature_groups import FeatureGroups
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.model_arrays import typical_of
from fastbandit.runtime.parts import DRAWS
from fastbandit.runtime.propensity import propensities_of, propensity_seeds
from fastbandit.runtime.seeds import read_seed
from fastbandit.runtime.state import State
from fastbandit.score import Score
from fastbandit.settings.blueprint import Blueprint
from fastbandit.types import Decision, Features, Inputs, Interactions

_NOBODY = 2**31 - 2  # the row of an arm that came later, which has nothing of its own
_CHUNK = 64  # contexts at a time: a bound takes some memory for each


@dataclass(frozen=True)
class TorchArmScores:
    """The scores of one arm by a policy (see `fastbandit.runtime.explanation.ArmScores`)."""

    policy: Policy
    context: FeatureGroups
    arm: FeatureGroups
    row: int
    has_own: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The features of the context, then those of the arm."""
        more = (OWN,) if self.has_own and OWN not in self.arm.names else ()
        return (*self.context.names, *self.arm.names, *more)

    @property
    def context_features(self) -> int:
        """How many of them are the context's."""
        return len(self.context.names)

    def __call__(self, present: Mask, *, seed: int | None) -> Floats:
        """Return a score in units of reward for each row of a mask of what is not typical."""
        exploration = self.policy.exploration
        exploration = exploration.quiet() if seed is None else exploration
        seeds = np.full(len(present), seed or 0, dtype=np.uint64)
        return self._in_rewards(self._scores(present, exploration, seeds))

    def interval(self) -> tuple[float, float] | None:
        """Return what holds the expected reward with a probability of 90 %, by the posterior."""
        asked, seeds = asks(self.policy.exploration), propensity_seeds(0, DRAWS)
        whole = np.ones((1, len(self.names)), dtype=np.bool_)
        if asked == "draw":
            many = np.repeat(whole, DRAWS, axis=0)
            return middle_of(self._in_rewards(self._scores(many, ThompsonSampling(), seeds)))
        if asked != "upper":
            return None
        centre = self._scores(whole, UpperConfidence(width=0.0), seeds[:1])
        above = self._scores(whole, UpperConfidence(), seeds[:1])
        width = QUANTILE * (above - centre)
        ends = self._in_rewards(np.concatenate([centre - width, centre + width]))
        return between(float(ends[0]), float(ends[1]))

    def _in_rewards(self, scores: Floats) -> Floats:
        found = self.policy.model.in_rewards(torch.from_numpy(scores))
        return np.asarray(found.double().cpu().numpy())

    @torch.no_grad()
    def _scores(self, present: Mask, exploration: Exploration, seeds: Any) -> Floats:
        parts = []
        for first in range(0, len(present), _CHUNK):
            some = slice(first, first + _CHUNK)
            parts.append(self._some(present[some], exploration, seeds[some]))
        return np.concatenate(parts)

    def _some(self, present: Mask, exploration: Exploration, seeds: Any) -> Floats:
        split = self.context_features
        contexts = self.context.mixed(present[:, :split])
        arms = self.arm.mixed(present[:, split : split + len(self.arm.names)])
        score = replace(self.policy, exploration=exploration).score(contexts, seeds=seeds)
        scores = score(self._points(arms)[:, None])[:, 0]
        if score.own is not None:
            scores = scores + self._own(score, contexts, present[:, -1])
        return np.asarray(scores.double().cpu().numpy())

    def _own(self, score: Score, contexts: Inputs, is_own: Mask) -> Float[Tensor, " n"]:
        """Return the arm's own parts, and those of an arm that has none where it is masked."""
        assert score.own is not None
        device, count = score.contexts.device, len(is_own)
        mine = score.own(torch.full((count, 1), self.row, device=device))
        quiet = replace(self.policy, exploration=self.policy.exploration.quiet())
        nobody = quiet.score(contexts, seeds=np.zeros(count, dtype=np.uint64)).own
        assert nobody is not None
        none = nobody(torch.full((count, 1), _NOBODY, device=device))
        return torch.where(torch.from_numpy(is_own).to(device), mine[:, 0], none[:, 0])

    def _points(self, arms: Inputs) -> Float[Tensor, "n D"]:
        space = self.policy.arms
        if isinstance(space, BoxSpace):
            assert arms.dense is not None
            return space.points(arms.dense)
        assert space.frame is not None
        return space.frame.coordinates(self.policy.model.embed_arms(arms))


class Terms(NamedTuple):
    """Which arms were eligible, and how many draws estimate the propensity (0: it is not asked)."""

    eligible: Any = None
    draws: int = 0
    epsilon: float = 0.0


def explain_policy(
    plan: Blueprint,
    decider: tuple[State, FrozenBandit | None],
    context: Any,
    *,
    asked: Asked,
    terms: Terms,
    select: Callable[..., Decision],
) -> Explanation:
    """Explain a score by what decides: compiled code where there is some, else torch."""
    state, frozen = decider
    check_learned(state.version, what="An explanation")
    policy = state.policy
    if frozen is not None:
        assert isinstance(policy.arms, Catalogue)
        row = policy.arms.features.take(policy.arms.table.rows([asked.arm]))
        features = row.sparse if row.dense is None else row.dense
        return frozen.explain(
            context, asked.arm, seed=asked.seed, features=features, **terms._asdict()
        )
    history, compiled = state.whole_history, _compiled(policy)
    inputs = None if context is None else read_one(plan.context, context)
    if inputs is None:
        inputs = _typical_inputs(_typical_context(compiled, history), history)
    seed = None if asked.seed is None else read_seed(asked.seed)
    best = select(
        _raw(inputs),
        k=2,
        eligible=terms.eligible,
        explore=seed is not None,
        seeds=np.array([seed or 0], dtype=np.uint64),
    )
    is_box = isinstance(policy.arms, BoxSpace)
    found = np.asarray(best.arms)[0] if is_box else best.rows[0].tolist()
    propensity = _propensity(policy, inputs, asked.arm, terms, select) if terms.draws else None
    return explain_by_torch(
        policy, plan, inputs, asked, best=found, history=history, propensity=propensity
    )


def read_one(kind: Features, context: Any) -> Inputs:
    """Read one context and check it."""
    is_row = isinstance(kind, Dense | Image) and not is_named(context)
    inputs = kind.read(np.asarray(context)[None] if is_row else context, what="contexts")
    if len(inputs) != 1:
        raise ShapeError(f"One context needs one row of features: got {len(inputs)}. Give one.")
    return inputs


def _raw(inputs: Inputs) -> Any:
    """Return inputs as a kind of features would read them."""
    features = inputs.sparse if inputs.dense is None else inputs.dense
    if inputs.ids is None:
        return features
    return inputs.ids if features is None else (features, inputs.ids)


def _propensity(
    policy: Policy, inputs: Inputs, arm: Any, terms: Terms, select: Callable[..., Decision]
) -> float:
    """Estimate how likely an arm is by so many decisions."""
    if isinstance(policy.arms, BoxSpace):
        raise SettingError(
            "A propensity needs a catalogue of arms: got a box, in which no point is likely. "
            "Leave draws out."
        )
    seeds = propensity_seeds(0, terms.draws)
    many = _raw(inputs.take(np.zeros(len(seeds), dtype=np.int64)))
    drawn = select(many, eligible=terms.eligible, seeds=seeds).rows[:, 0]
    mask = policy.arms.rows.eligible(terms.eligible, contexts=1)
    count = len(policy.arms) if mask is None else int(mask.sum())
    found = propensities_of(
        drawn.astype(np.int32),
        policy.arms.table,
        eligible_count=count,
        epsilon=terms.epsilon,
        is_exact=False,
    )
    return found.of(arm)


def explain_by_torch(
    policy: Policy,
    plan: Blueprint,
    inputs: Inputs,
    asked: Asked,
    *,
    best: Any,
    history: Interactions | None = None,
    propensity: float | None = None,
) -> Explanation:
    """Explain the score of an arm; `best` are the rows of the two best arms, or points of a box.

    Contexts of a history say what is typical where the model does not.
    """
    compiled = _compiled(policy)
    typical = _typical_context(compiled, history)
    context = FeatureGroups.of(inputs, plan.context, typical=typical, prefix="context")

    def scores_of(row: int, values: Any) -> TorchArmScores:
        features = _arm_features(policy, plan, row, values)
        usual = _typical_arm(policy, compiled)
        arm = FeatureGroups.of(features, plan.arm, typical=usual, prefix="arm", id_name=OWN)
        has_own = _has_own(policy, inputs)
        return TorchArmScores(policy, context, arm, row, has_own)

    if isinstance(policy.arms, BoxSpace):
        given = np.asarray(asked.arm, dtype=np.float32)
        rival = next((other for other in best if not np.allclose(other, given)), None)
        mine = scores_of(0, given)
        if rival is None:
            return explain(asked, mine, propensity=propensity)
        others, name = scores_of(0, rival), np.asarray(rival).tolist()
        return explain(asked, mine, runner_up=name, others=others, propensity=propensity)
    row = int(policy.arms.table.rows([asked.arm])[0])
    found = next((int(other) for other in best if other not in (row, -1)), None)
    if found is None:
        return explain(asked, scores_of(row, None), propensity=propensity)
    return explain(
        asked,
        scores_of(row, None),
        runner_up=policy.arms.table.id(found),
        others=scores_of(found, None),
        propensity=propensity,
    )


def _compiled(policy: Policy) -> CompiledModel | None:
    """Return what the model says of itself, which knows what is typical; None of some models."""
    try:
        return policy.model.compiled(asks(policy.exploration))
    except SettingError:
        return None


def _typical_context(
    compiled: CompiledModel | None, history: Interactions | None
) -> NDArray[np.floating[Any]] | None:
    effects: Any = None if compiled is None else compiled.effects
    if effects is not None:
        return np.asarray(effects.inputs.features.shift)
    if compiled is not None and (known := _shift(compiled.context_encoder)) is not None:
        return known
    if history is None or history.contexts.dense is None:
        return None
    return np.asarray(history.contexts.dense.mean(axis=0, dtype=np.float64))


def _typical_inputs(typical: Any, history: Interactions | None) -> Inputs:
    """Return the typical context, in the shape of those that were seen."""
    if history is None and typical is not None:
        return Inputs(dense=np.asarray(typical, np.float32).reshape(1, -1))
    if history is None:
        raise SettingError(
            "A typical context needs a history: this bandit holds none. Give a context."
        )
    first = history.contexts.take(slice(0, 1))
    if first.dense is not None:
        return replace(first, dense=np.asarray(typical, np.float32).reshape(first.dense.shape))
    return first if first.sparse is None else replace(first, sparse=first.sparse * 0)


def _typical_arm(policy: Policy, compiled: CompiledModel | None) -> Any:
    space = policy.arms
    if isinstance(space, BoxSpace):
        return (np.asarray(space.box.low) + np.asarray(space.box.high)) / 2
    known = None if compiled is None else _shift(compiled.arm_encoder)
    if known is not None or space.features.dense is None:
        return known
    return space.features.dense.mean(axis=0, dtype=np.float64)


def _shift(encoder: Any) -> NDArray[np.floating[Any]] | None:
    shift = typical_of(getattr(encoder, "features", encoder))
    return shift.cpu().numpy() if len(shift) else None


def _arm_features(policy: Policy, plan: Blueprint, row: int, values: Any) -> Inputs:
    if isinstance(policy.arms, BoxSpace):
        found = plan.arm.read(np.asarray(values)[None], what="arms")
        policy.arms.box.check(found)
        return found
    return policy.arms.features.take(np.array([row]))


def _has_own(policy: Policy, inputs: Inputs) -> bool:
    with torch.no_grad():
        return policy.score(inputs, seeds=np.zeros(1, dtype=np.uint64)).own is not None
