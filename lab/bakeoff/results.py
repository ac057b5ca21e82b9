"""Result files: one for each set, rounds, batch, system and seed; and their means over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit import __version__
from lab.bakeoff.play import Played
from lab.experiments.results import FORMAT, write_beside
from lab.experiments.results import read_result as read_result
from lab.experiments.sections import file_name

KIND = "bakeoff"
GROUP = ("set", "rounds", "batch", "system")
_MEASURES = ("share", "last_quarter", "update_cpu_seconds", "decision_cpu_us")


@dataclass(frozen=True)
class Key:
    """All that names a result file."""

    set: str
    rounds: int
    batch: int
    system: str
    seed: int

    def path(self, folder: Path) -> Path:
        """Return the file of this result."""
        system = file_name(self.system.lower().replace(" ", "-"))
        name = f"t{self.rounds}-b{self.batch}-seed{self.seed}.json"
        return folder / file_name(self.set) / system / name


def write(path: Path, key: Key, found: Mapping[str, Any], *, commit: str | None) -> dict[str, Any]:
    """Write what a run of code found, whole or not at all, and return it as it would be read."""
    result = {"format": FORMAT, "kind": KIND, **asdict(key), **found}
    result |= {"version": __version__, "commit": commit}
    text = json.dumps(result, indent=1, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, text)
    return dict(json.loads(text))


def notes_of(played: Played, *, batch: int) -> dict[str, Any]:
    """Return what was played as a result file has it; a share of nothing is None."""
    is_worth = played.best.sum() > 0
    quarter = played.best[3 * len(played.best) // 4 :].sum()
    return {
        "played": len(played.rewards),
        "share": played.share if is_worth else None,
        "last_quarter": played.last_quarter if quarter > 0 else None,
        "update_cpu_seconds": played.update_cpu_seconds,
        "decision_cpu_us": played.decision_cpu_us,
        "warm_cpu_seconds": played.warm_seconds,
        "cpu_seconds": played.warm_seconds + sum(played.update_seconds) + played.select_seconds,
        "earned": _by_batch(played.rewards, batch),
        "best": _by_batch(played.best, batch),
        "error": None,
    }


def _by_batch(rewards: Any, batch: int) -> list[float]:
    return [float(rewards[first : first + batch].sum()) for first in range(0, len(rewards), batch)]


# -- over seeds


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, and its standard error where there are two or more."""

    value: float
    error: float | None

    @staticmethod
    def of(values: Sequence[float]) -> Mean | None:
        """Return the mean of values; None where there are none."""
        if not values:
            return None
        error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        return Mean(float(np.mean(values)), error)


@dataclass(frozen=True)
class Row:
    """A system on a set: its means over the seeds that went well, and why others did not."""

    set: str
    rounds: int
    batch: int
    system: str
    seeds: int
    share: Mean | None
    last_quarter: Mean | None
    update_cpu_seconds: Mean | None
    decision_cpu_us: Mean | None
    failed: int
    error: str | None


def summarise(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Average results over seeds, in the order they come."""
    return [_row(group, runs) for group, runs in grouped(results).items()]


def grouped(results: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return the results of all seeds by set, rounds, batch and system, in the order they come."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in results:
        group = tuple(result[name] for name in GROUP)
        groups.setdefault(group, []).append(result)
    return groups


def _row(group: tuple[Any, ...], runs: Sequence[Mapping[str, Any]]) -> Row:
    well = [run for run in runs if run["error"] is None]
    means = [Mean.of([run[name] for run in well if run[name] is not None]) for name in _MEASURES]
    share, last_quarter, update_cpu_seconds, decision_cpu_us = means
    errors = [run["error"] for run in runs if run["error"] is not None]
    name, rounds, batch, system = group
    return Row(
        set=name,
        rounds=rounds,
        batch=batch,
        system=system,
        seeds=len(well),
        share=share,
        last_quarter=last_quarter,
        update_cpu_seconds=update_cpu_seconds,
        decision_cpu_us=decision_cpu_us,
        failed=len(errors),
        error=errors[0] if errors else None,
    )
