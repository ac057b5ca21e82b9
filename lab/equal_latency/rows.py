"""Results over seeds: what a system earns on a set, and what a decision, an arm, an update cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.bakeoff.results import Mean, grouped


@dataclass(frozen=True)
class Row:
    """A system on a set, over the seeds that went well; `error` says why others did not."""

    set: str
    rounds: int
    batch: int
    system: str
    arms: int | None
    seeds: tuple[int, ...]
    share: Mean | None
    last_quarter: Mean | None
    p50_us: Mean | None
    bytes_per_arm: Mean | None
    update_cpu_seconds: Mean | None
    commits: tuple[str, ...]
    error: str | None


def rows_of(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Average results over seeds, in the order they come."""
    return [_row(group, runs) for group, runs in grouped(results).items()]


def _row(group: tuple[Any, ...], runs: Sequence[Mapping[str, Any]]) -> Row:
    well = [run for run in runs if run["error"] is None]

    def mean(name: str) -> Mean | None:
        return Mean.of([run[name] for run in well if run.get(name) is not None])

    name, rounds, batch, system = group
    return Row(
        set=name,
        rounds=rounds,
        batch=batch,
        system=system,
        arms=next((run["arms"] for run in runs), None),
        seeds=tuple(sorted(run["seed"] for run in well)),
        share=mean("share"),
        last_quarter=mean("last_quarter"),
        p50_us=mean("p50_us"),
        bytes_per_arm=mean("bytes_per_arm"),
        update_cpu_seconds=mean("update_cpu_seconds"),
        commits=tuple(sorted({str(run["commit"]) for run in runs})),
        error=next((run["error"] for run in runs if run["error"] is not None), None),
    )
