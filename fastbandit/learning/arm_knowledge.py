"""Whether arms of any names are learned by their features, or by their ids: what predicts better.

Arms that come again and again deserve weights of their own; of others, features alone are known.
By ids is usual where an arm was taken five times on average: with weights of their own arms earn
more than their predictions tell. Both ways learn the first interactions and predict the last ones,
whenever there are twice as many as when they were last compared; the unusual one is taken where its
error is lower beyond a 95 % interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids
from fastbandit.learning.candidate_checks import Comparison, Losses, loss_of, predicted_by
from fastbandit.learning.joining import Interaction, to_arrays
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, blueprint
from fastbandit.settings.service import SelectConfig
from fastbandit.types import Interactions

FEWEST = 50
"""Fewer interactions do not tell which way is better: features are read."""
MOST_IDS = 20_000
"""More arms are not known by ids: all that have weights of their own are scanned."""
_LEARNED = 0.8  # of the interactions; the others are predicted
_OFTEN = 5  # times that arms were taken, on average, where they are known by ids


def known_by(bandit: Bandit) -> str:
    """Return what arms are told apart by: ids or features."""
    return "ids" if getattr(bandit.blueprint.posterior, "own_weights", False) else "features"


def better_known(bandit: Bandit, fresh: Sequence[Interaction], select: SelectConfig) -> Bandit:
    """Return a bandit whose arms are known as predicts better; itself where that is as now.

    Another one has yet to learn all that this one has.
    """
    count = 0 if bandit.history is None else len(bandit.history)
    if not _is_open(bandit) or not _is_due(count, count + len(fresh)):
        return bandit
    every = _with_fresh(bandit, fresh)
    other = _known_otherwise(bandit, select)
    learned = int(_LEARNED * len(every))
    usual, unusual = (bandit, other) if known_by(bandit) == _usual(every) else (other, bandit)
    gap = Comparison.of(_losses(unusual, every, learned), _losses(usual, every, learned))
    return unusual if gap.high < 0 else usual


def unlearned(bandit: Bandit, select: SelectConfig) -> Bandit:
    """Return a bandit of the same arms that has learned nothing, known as at first."""
    if known_by(bandit) == "ids" and _is_open(bandit):
        return _known_otherwise(bandit, select).with_history(None)
    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    return bandit.rebuilt(bandit.blueprint, Catalogue(arms.rows)).with_history(None)


def _usual(every: Interactions) -> str:
    """Return what arms are told apart by unless the other way is surely better."""
    assert every.rows is not None
    return "ids" if len(every) >= _OFTEN * len(np.unique(every.rows)) else "features"


def _with_fresh(bandit: Bandit, fresh: Sequence[Interaction]) -> Interactions:
    """Return all that a bandit learned, and what it learns next."""
    kind, arms = bandit.blueprint.context, bandit.policy.arms
    assert isinstance(arms, Catalogue)
    contexts, ids, rewards = to_arrays(fresh, kind)
    inputs, rows = kind.read(contexts, what="contexts"), arms.table.rows(ids)
    features, values = arms.features.take(rows), rewards.astype(np.float32)
    more = Interactions(inputs, features, values, rows=rows)
    return more if bandit.history is None else Interactions.stack([bandit.history, more])


def _is_open(bandit: Bandit) -> bool:
    """Return whether arms have any names, and either way can be taken."""
    plan, arms = bandit.blueprint, bandit.policy.arms
    schema = getattr(getattr(plan.arm, "features", plan.arm), "schema", None)
    is_few = isinstance(arms, Catalogue) and len(arms.table) <= MOST_IDS
    has_effects = isinstance(plan.posterior, ArmEffectsPosterior)
    return schema is not None and schema.others is not None and is_few and has_effects


def _is_due(before: int, now: int) -> bool:
    """Return whether a count passed a power of two times the fewest, or the fewest itself."""
    return now >= FEWEST and (now // FEWEST).bit_length() > (before // FEWEST).bit_length()


def _known_otherwise(bandit: Bandit, select: SelectConfig) -> Bandit:
    """Return a bandit of the same arms and history that tells arms apart the other way."""
    arms, by_id = bandit.policy.arms, known_by(bandit) == "features"
    assert isinstance(arms, Catalogue)
    ids = np.arange(len(arms.table)) if by_id else None
    plan = plan_by(bandit.blueprint, select, by_id=by_id, count=len(arms.table))
    rows = replace(arms.rows, features=replace(arms.features, ids=ids))
    return bandit.rebuilt(plan, Catalogue(rows))


def plan_by(plan: Blueprint, select: SelectConfig, *, by_id: bool, count: int) -> Blueprint:
    """Return the parts of a bandit that tells its arms apart by ids, or by features."""
    features: Any = plan.arm.features if isinstance(plan.arm, FeaturesAndIds) else plan.arm
    assert isinstance(features, Dense)
    names: dict[str, Any] = {"exploration": select.exploration, "modules": select.part_modules}
    terms: dict[str, Any] = {
        "context": plan.context,
        "reward": plan.reward,
        "preset": select.preset,
        "seed": plan.seed,
    }
    parts = PartNames(search=select.search, posterior=select.posterior, **names)
    found = blueprint(parts, arm=features, **terms)
    if by_id:
        own = replace(found.posterior, own_weights=True)  # type: ignore[type-var]
        parts = PartNames(search="auto", posterior=own, **names)
        found = blueprint(parts, arm=FeaturesAndIds(features, Ids(count)), **terms)
    return replace(found, weights=plan.weights)


def _losses(bandit: Bandit, every: Interactions, learned: int) -> Losses:
    """Return squared errors of the interactions after the first ones, which alone are learned."""
    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    first = bandit.with_history(every.take(slice(learned)))
    trial = first.rebuilt(bandit.blueprint, Catalogue(arms.rows))
    trial.update(contexts=every.contexts.take(slice(0)).dense, arms=[], rewards=[])
    rest = every.take(slice(learned, None))
    assert rest.rows is not None
    predicted = predicted_by(trial, trial.policy, rest.contexts, rest.rows)
    return loss_of(predicted, rest.rewards.astype(np.float64), kind="real")
