"""Offline evaluations: what was chosen, the baseline's action, and chance, on the log.

Personalizer's summaries are those of IPS and SNIPS (`fastbandit.evaluation.estimators`). A finished
evaluation is a file in the data folder.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import LogError
from fastbandit.evaluation.estimators import Contributions
from fastbandit.evaluation.intervals import normal_interval
from fastbandit.files.private import make_private
from fastbandit.serving.personalizer.schemas import (
    Evaluation,
    EvaluationContract,
    PolicyResult,
    PolicyResultSummary,
)
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.settings.durations import duration_of
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.joined_rows import Bounds, Row, count_decisions, joined_rows
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.sqlite_files import all_rows

FOLDER = "evaluations"
_ID = re.compile(r"[0-9a-f]{1,64}\Z")
_WINDOWS = 24
EXPLAINED = 20
_LATEST = f"""
SELECT id FROM decisions WHERE context <> '[]' AND arms <> '[]' ORDER BY seq DESC LIMIT {EXPLAINED}
"""
_POLICIES = (("Online", "what was chosen"), ("Baseline", "baseline action"), ("Random", "uniform"))
Floats = NDArray[np.float64]


def in_utc(asked: EvaluationContract) -> EvaluationContract:
    """Return an evaluation with times of UTC, which those without a zone are of, or reject it."""
    found = {name: _utc(getattr(asked, name), name) for name in ("start_time", "end_time")}
    return msgspec.structs.replace(asked, **found)


def _utc(at: datetime, name: str) -> datetime:
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError as error:
        field = "startTime" if name == "start_time" else "endTime"
        said = "An evaluation needs times of the years 1 to 9999, in UTC."
        raise wrong_field(said, fix="Send such a time.", field=field, value=str(at)) from error


@dataclass(frozen=True)
class Judged:
    """What policies are judged on: when decisions were made, and what came of each.

    `weights` hold how much likelier each policy takes what was chosen; `latest` are the last ids.
    """

    at: Floats
    rewards: Floats
    weights: dict[str, Floats]
    latest: list[str]


def judged(folder: Path, asked: EvaluationContract, most: int) -> Judged:
    """Return the decisions of a time that a policy can be judged on, or reject it.

    What is held of each is a few numbers: the rows of a log may be large.
    """
    bounds = Bounds(since=asked.start_time, until=asked.end_time)
    numbers, latest = [np.empty((0, 4))], deque[str](maxlen=EXPLAINED)
    try:
        with one_moment_of(folder / LOG_FILE) as log:
            _check_count(count_decisions(log, bounds), most)
            for batch in joined_rows(log, bounds):
                rows = [row for row in batch if row.reward is not None and _propensity(row) > 0]
                latest.extend(row.decision for row in rows)
                numbers.append(np.array([*map(_numbers_of, rows)]).reshape(-1, 4))
    except LogError as error:
        raise _no_logs(str(error)) from error
    at, rewards, baseline, random = np.concatenate(numbers).T
    if len(at) < 2:
        raise _no_logs("An evaluation needs two decisions with a reward and a probability.")
    weights = {"Online": np.ones(len(at)), "Baseline": baseline, "Random": random}
    return Judged(at, rewards, weights, [*latest])


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise Rejection(
            400,
            "too many decisions",
            f"An evaluation needs a time of at most {most:,} decisions: got {count:,}.",
            fix="Choose a shorter time, or raise personalizer.max_decisions.",
            field="startTime",
            value=count,
        )


def _numbers_of(row: Row) -> tuple[float, float | None, float, float]:
    """Return the time and the reward of a decision, and the weights of baseline and chance."""
    share = _propensity(row)
    is_baselines = row.decided_by == "baseline"  # or `other` is what that would have taken
    baseline = 1.0 if is_baselines else (row.other == row.arms[0]) / share
    return row.at.timestamp(), row.reward, baseline, 1.0 / max(1, len(row.eligible or ())) / share


def latest_decisions(folder: Path) -> list[str]:
    """Return the ids of the last decisions of a log."""
    with one_moment_of(folder / LOG_FILE) as log:
        return [id for (id,) in all_rows(log, _LATEST)]


def _no_logs(said: str) -> Rejection:
    fix = "Choose a time with ranks whose rewards came, or are over."
    return Rejection(400, "no logs", said, fix=fix, field="startTime")


def _propensity(row: Row) -> float:
    return float(row.propensities[0]) if row.propensities else 0.0


def evaluation_of(
    asked: EvaluationContract, found: Judged, *, id: str, importance: list[list[str]]
) -> Evaluation:
    """Return what each policy would have earned."""
    results = [_result(name, said, found, asked) for name, said in _POLICIES]
    best = max(results, key=lambda one: one.total_summary.average_reward)
    return Evaluation(
        id=id,
        name=asked.name,
        start_time=_written(asked.start_time),
        end_time=_written(asked.end_time),
        job_id=id,
        status="completed",
        policy_results=results,
        feature_importance=importance,
        evaluation_type="Manual",
        optimal_policy=best.name,
        creation_time=_written(datetime.now(UTC)),
    )


def _result(name: str, said: str, found: Judged, asked: EvaluationContract) -> PolicyResult:
    at, rewards, weights = found.at, found.rewards, found.weights[name]
    first = max(asked.start_time, datetime.fromtimestamp(at.min(), UTC))
    last = min(asked.end_time, datetime.fromtimestamp(at.max(), UTC))
    width = max(timedelta(seconds=1), (last - first) / _WINDOWS)
    window = ((at - first.timestamp()) / width.total_seconds()).astype(int)
    summaries = [
        _summary(weights[window == n], rewards[window == n], at=first + n * width, width=width)
        for n in np.unique(window).tolist()
    ]
    total = _summary(weights, rewards, at=first, width=max(width, last - first))
    return PolicyResult(name, said, name, summaries, total)


def _summary(weights: Floats, rewards: Floats, *, at: datetime, width: timedelta) -> Any:
    """Return sums, the estimate by SNIPS and half of its interval of 95 %."""
    terms = Contributions(weights * rewards, weights)
    value = terms.value if weights.sum() > 0 else 0.0
    half = 0.0
    if len(weights) > 1 and weights.sum() > 0:
        low, high = normal_interval(terms)
        half = (high - low) / 2
    return PolicyResultSummary(
        time_stamp=_written(at),
        ips_estimator_numerator=float(terms.tops.sum()),
        ips_estimator_denominator=float(len(weights)),
        snips_estimator_denominator=float(weights.sum()),
        aggregate_time_window=duration_of(width.total_seconds()),
        non_zero_probability=float((weights > 0).mean()),
        sum_of_squares=float((terms.tops**2).sum()),
        confidence_interval=half,
        average_reward=value,
    )


def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class EvaluationFiles:
    """Evaluations in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def write(self, evaluation: Evaluation) -> None:
        make_private(self._folder)
        beside = self._folder / f".{evaluation.id}"
        beside.write_bytes(msgspec.json.encode(evaluation))
        beside.rename(self._folder / f"{evaluation.id}.json")

    def every(self) -> list[Evaluation]:
        """Return all, the newest first."""
        found = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda one: one.creation_time, reverse=True)

    def get(self, id: str) -> Evaluation:
        return self._read(self._path(id))

    def remove(self, id: str) -> None:
        self._path(id).unlink(missing_ok=True)

    def _path(self, id: str) -> Path:
        path = self._folder / f"{id}.json"
        if _ID.match(id) is None or not path.exists():
            raise Rejection(
                404,
                "no such evaluation",
                "No evaluation of this id is here.",
                fix="GET /evaluations lists those that are.",
                field="evaluationId",
                value=id,
            )
        return path

    def _read(self, path: Path) -> Evaluation:
        return msgspec.json.decode(path.read_bytes(), type=Evaluation)
