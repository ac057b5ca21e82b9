"""evaluate(): what would a policy have earned on a log that another one made?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastbandit.declaration import check_seed
from fastbandit.errors import InputError, SettingError
from fastbandit.evaluation.clusters import can_make_clusters
from fastbandit.evaluation.diagnostics import Diagnostics, clip_note, diagnose
from fastbandit.evaluation.drawn_policies import Draws, policy_of, schema_of
from fastbandit.evaluation.estimators import (
    Contributions,
    Estimator,
    PreparedRounds,
    cut_notes,
    estimators_of,
    name_of,
    possible_estimators,
)
from fastbandit.evaluation.expected import CrossFit, expect
from fastbandit.evaluation.intervals import Interval, intervals_of
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.evaluation.readers import read_log
from fastbandit.evaluation.report import Estimate, Evaluation
from fastbandit.evaluation.reward_models import RewardFunction
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.progress import Progress, silent

_NO_CLUSTERS = "mips was left out: its clusters need pip install 'fastbandit[evaluation]'"


def evaluate(
    log: LoggedRounds | str | Path,
    policy: Any,
    *,
    estimators: Sequence[str | Estimator] | str | Estimator | None = None,
    model: str | CrossFit | RewardFunction = "ridge",
    draws: int | Draws | None = None,
    interval: str | Interval = "bootstrap",
    seed: int = 0,
    progress: Progress = silent,
) -> Evaluation:
    """Estimate what a policy would have earned a round, from rounds that another one logged.

    `log` is a `LoggedRounds`, or the path of one that `read_rounds` reads. `policy` is a bandit
    (asked `draws` times a context, 16 to 1 by the number of rounds: see `Draws`), a
    `SparsePolicy`, a function of contexts, or "uniform". `estimators` are names (replay, ips,
    snips, dm, dr, switch, mips) or objects such as `SwitchDR(threshold=5.0)`, by default all that
    the log allows. `model` is "ridge", "logistic", a `CrossFit`, or a function of contexts and
    rows. `interval` is "bootstrap", "normal", "bernstein", or an `Interval`.
    """
    _check_order(log, policy)
    if check_seed(seed) < 0:
        raise SettingError(
            f"A seed needs to be a whole number of at least 0: got {seed!r}. Any one will do, 0 "
            f"for example."
        )
    interval = interval if isinstance(interval, Interval) else Interval(interval)
    asking = draws if isinstance(draws, Draws) else Draws(draws)
    reward_model = CrossFit(model) if isinstance(model, str) else model
    asked = None if estimators is None else estimators_of(estimators)
    by_name = LogColumns(schema=schema_of(policy))
    rounds = log if isinstance(log, LoggedRounds) else read_log(log, by_name, progress=progress)
    used = possible_estimators(rounds) if asked is None else asked
    rounds, target = policy_of(rounds, policy, draws=asking, seed=seed, progress=progress)
    likely = target.probability_of(rounds.chosen)
    fit = partial(expect, rounds, target, reward_model, seed=seed, progress=progress)
    weights = likely / rounds.propensities
    prepared = PreparedRounds(rounds, target, likely, weights=weights, fit=fit, seed=seed)
    found = [one.contributions(prepared) for one in used]
    diagnostics, notes = _diagnose(prepared, used, found)
    columns = [*found, Contributions(rounds.rewards)]
    ends = intervals_of(columns, interval, seed=seed, progress=progress)
    names = [*((name_of(one), one.title) for one in used), ("logged", "")]
    estimates = [
        Estimate(name, one.value, *end, title=title)
        for (name, title), one, end in zip(names, columns, ends, strict=True)
    ]
    lacks_clusters = estimators is None and rounds.vectors is not None and not can_make_clusters()
    return Evaluation(
        rounds=len(rounds),
        arms=rounds.arms,
        estimates=tuple(estimates[:-1]),
        logged=estimates[-1],
        diagnostics=diagnostics,
        interval=interval.kind,
        confidence=interval.confidence,
        notes=(*rounds.notes, *notes, *([_NO_CLUSTERS] if lacks_clusters else [])),
    )


def _diagnose(
    prepared: PreparedRounds, estimators: Sequence[Estimator], found: Sequence[Contributions]
) -> tuple[Diagnostics, list[str]]:
    """Return what the weights say, and notes.

    The weights are clipped where all estimators that rest on them clip at one number.
    """
    both = zip(estimators, found, strict=True)
    clips = {one.clip for estimator, one in both if "weights" in estimator.needs}
    diagnostics = diagnose(prepared.weights, clip=clips.pop() if len(clips) == 1 else None)
    notes = [note for one in found for note in one.notes]
    cuts = sorted({one.clip for one in found if one.clip is not None})
    for clip in cuts:
        notes.append(clip_note(diagnose(prepared.weights, clip=clip), clip, prepared.rewards))
    draws = prepared.policy.draws
    if draws is not None:
        some = "1 draw a round stands" if draws == 1 else f"{draws} draws a round stand"
        notes.append(
            f"{some} for what the policy would do: right on average, and the intervals count that "
            f"noise; more draws make them narrower"
        )
    return diagnostics, notes + (cut_notes("clip", prepared.policy) if cuts else [])


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
