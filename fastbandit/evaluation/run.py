"""evaluate(): what would a policy have earned on a log that another one made?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.declaration import known_name
from fastbandit.errors import InputError, SettingError
from fastbandit.evaluation import estimators as formulas
from fastbandit.evaluation.clusters import can_make_clusters, clusters_of, logging_shares
from fastbandit.evaluation.diagnostics import Diagnostics, clip_words, cluster_words, diagnose
from fastbandit.evaluation.drawn_policies import policy_of
from fastbandit.evaluation.estimators import ESTIMATORS, MODELLED, Terms
from fastbandit.evaluation.expected import Expected, expect
from fastbandit.evaluation.intervals import check_confidence, intervals_of
from fastbandit.evaluation.readers import read_rounds
from fastbandit.evaluation.report import Estimate, Evaluation
from fastbandit.evaluation.reward_models import Told
from fastbandit.evaluation.rounds import Floats, LoggedRounds
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.progress import Progress, silent


@dataclass(frozen=True)
class Settings:
    """How to estimate: see `evaluate`."""

    estimators: tuple[str, ...]
    model: str | Told
    folds: int
    clip: float | None
    switch_at: float
    clusters: Any
    logging: SparsePolicy | None
    seed: int

    def __post_init__(self) -> None:
        for name in self.estimators:
            known_name("estimator", name, ESTIMATORS)
        for what, number in (("clip", self.clip), ("switch_at", self.switch_at)):
            if number is not None and (isinstance(number, bool) or not number > 0):
                raise SettingError(
                    f"The threshold {what} needs to be above 0: got {number!r}. Use 10, or None "
                    f"for no clipping."
                )
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise SettingError(
                f"A seed needs to be a whole number of at least 0: got {self.seed!r}. Any one "
                f"will do, 0 for example."
            )


def evaluate(
    log: LoggedRounds | str | Path,
    policy: Any,
    *,
    estimators: Sequence[str] | None = None,
    model: str | Told = "ridge",
    draws: int | None = None,
    explore: bool = True,
    epsilon: float = 0.0,
    interval: str = "bootstrap",
    confidence: float = 0.95,
    resamples: int = 1_000,
    clip: float | None = None,
    switch_at: float = 10.0,
    clusters: Any = None,
    logging: SparsePolicy | None = None,
    folds: int = 2,
    seed: int = 0,
    progress: Progress = silent,
) -> Evaluation:
    """Estimate what a policy would have earned a round, from rounds that another one logged.

    `log` is a `LoggedRounds`, or the path of one that `read_rounds` reads. `policy` is a bandit
    (asked `draws` times a context, 16 to 1 by the number of rounds, with so much of a `floor`
    under it; once and greedily without `explore`), a `SparsePolicy`, a function of contexts, or
    "uniform". `estimators` are some of replay, ips, snips, dm, dr, switch and mips, by default
    all that can be had. `model` is "ridge", "logistic" or a function of contexts and rows;
    fitted ones are cross-fitted in `folds`. `clip` cuts weights, `switch_at` is the weight above
    which SWITCH takes the model's word. `clusters` (a number, or one for each arm) and the
    `logging` policy are for MIPS.
    `interval` is "bootstrap", "normal" or "bernstein".
    """
    _check_order(log, policy)
    check_confidence(confidence)
    rounds = log if isinstance(log, LoggedRounds) else read_rounds(log, progress=progress)
    settings = Settings(
        _names(estimators, rounds, clusters),
        model,
        folds,
        clip,
        switch_at,
        clusters,
        logging,
        seed,
    )
    rounds, target = policy_of(
        rounds, policy, draws=draws, explore=explore, epsilon=epsilon, seed=seed, progress=progress
    )
    terms, found, notes = estimate(rounds, target, settings, progress=progress)
    named = [*terms.values(), Terms(rounds.rewards)]
    ends = intervals_of(
        named,
        interval,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        progress=progress,
    )
    told = [
        Estimate(name, one.value, *end)
        for name, one, end in zip([*terms, "logged"], named, ends, strict=True)
    ]
    return Evaluation(
        rounds=len(rounds),
        arms=rounds.arms,
        estimates=tuple(told[:-1]),
        logged=told[-1],
        diagnostics=found,
        interval=interval,
        confidence=confidence,
        notes=(*rounds.notes, *notes, *_left_out(estimators, rounds, settings)),
    )


def estimate(
    rounds: LoggedRounds, policy: SparsePolicy, settings: Settings, *, progress: Progress = silent
) -> tuple[dict[str, Terms], Diagnostics, list[str]]:
    """Give the terms of each estimator, what the weights say, and notes."""
    chosen = policy.probability_of(rounds.chosen)
    weights = formulas.importance_weights(chosen, rounds.propensities)
    found = diagnose(weights, clip=settings.clip)
    if settings.clip is not None:
        weights = np.minimum(weights, settings.clip)
    expected = None
    if any(name in MODELLED for name in settings.estimators):
        expected = expect(
            rounds,
            policy,
            model=settings.model,
            folds=settings.folds,
            seed=settings.seed,
            progress=progress,
        )
    terms = {
        name: _terms(name, rounds, policy, chosen, weights, expected, settings)
        for name in settings.estimators
    }
    notes = _notes(rounds, found, settings) + _draw_notes(policy, settings)
    own = [one.weights for one in terms.values() if one.weights is not None]
    notes += [said for weights in own if (said := cluster_words(diagnose(weights)))]
    return terms, found, notes


def _terms(
    name: str,
    rounds: LoggedRounds,
    policy: SparsePolicy,
    chosen: Floats,
    weights: Floats,
    expected: Expected | None,
    settings: Settings,
) -> Terms:
    rewards = rounds.rewards
    if name == "replay":
        return formulas.replay(rewards, chosen)
    if name == "ips":
        return formulas.ips(rewards, weights)
    if name == "snips":
        return formulas.snips(rewards, weights)
    if name == "mips":
        return formulas.marginalised_ips(rewards, *_of_clusters(rounds, policy, settings))
    assert expected is not None
    model = {"expected": expected.of_policy, "logged": expected.logged}
    if name == "dm":
        return formulas.direct_method(expected.of_policy)
    if name == "dr":
        return formulas.doubly_robust(rewards, weights, **model)
    return formulas.switch_doubly_robust(rewards, weights, **model, threshold=settings.switch_at)


def _of_clusters(
    rounds: LoggedRounds, policy: SparsePolicy, settings: Settings
) -> tuple[Floats, Floats]:
    """Give how likely the policy, and the log, took some arm of the cluster that was taken."""
    clusters = clusters_of(rounds, settings.clusters, seed=settings.seed)
    target = policy.probability_within(clusters, rounds.chosen, np.bincount(clusters))
    return target, logging_shares(rounds, clusters, logging=settings.logging)


def _names(
    estimators: Sequence[str] | None, rounds: LoggedRounds, clusters: Any
) -> tuple[str, ...]:
    """Give the estimators that were asked for, or those that the log allows."""
    if isinstance(estimators, str):
        return (estimators,)
    if estimators is not None:
        return tuple(dict.fromkeys(estimators))
    has_clusters = clusters is not None or (rounds.vectors is not None and can_make_clusters())
    return ESTIMATORS if has_clusters else ESTIMATORS[:-1]


def _left_out(
    estimators: Sequence[str] | None, rounds: LoggedRounds, settings: Settings
) -> list[str]:
    """Say which estimator the log allows, and this installation does not."""
    if estimators is not None or rounds.vectors is None or "mips" in settings.estimators:
        return []
    return ["mips was left out: its clusters need pip install 'fastbandit[evaluation]'"]


def _notes(rounds: LoggedRounds, found: Diagnostics, settings: Settings) -> list[str]:
    notes = []
    if "replay" in settings.estimators and not rounds.is_uniform:
        notes.append("replay supposes that every arm was equally likely, and here they were not")
    if settings.clip is not None:
        notes.append(clip_words(found, settings.clip, rounds.rewards))
    if "dm" in settings.estimators:
        notes.append("the interval of the direct method knows nothing of the model's own error")
    if "switch" in settings.estimators:
        notes.append(
            f"SWITCH takes the model's word where weights are above {settings.switch_at:g}"
        )
    return notes


def _draw_notes(policy: SparsePolicy, settings: Settings) -> list[str]:
    """Say what estimates mean that rest on a few draws of the policy."""
    if policy.draws is None:
        return []
    said = "1 draw a round stands" if policy.draws == 1 else f"{policy.draws} draws a round stand"
    notes = [
        f"{said} for what the policy would do: right on average, and the intervals count that "
        f"noise; more draws make them narrower"
    ]
    cut = ["SWITCH"] * ("switch" in settings.estimators) + ["clip"] * (settings.clip is not None)
    if cut:
        notes.append(
            f"the weights that {' and '.join(cut)} cut are those of these draws: larger and rarer "
            f"than those of the policy's probabilities"
        )
    return notes


def _check_order(log: Any, policy: Any) -> None:
    is_policy = isinstance(log, SparsePolicy) or hasattr(log, "select")
    if is_policy or isinstance(policy, LoggedRounds):
        raise InputError(
            f"evaluate needs the log first and the policy second: got {type(log).__name__} as log "
            f"and {type(policy).__name__} as policy. Swap them."
        )
    if not isinstance(log, LoggedRounds | str | Path):
        raise InputError(
            f"evaluate needs a log that is a LoggedRounds or a path: got {type(log).__name__}. "
            f"Put your columns into LoggedRounds(contexts, chosen, rewards, propensities)."
        )
