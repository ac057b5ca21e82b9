"""A wall clock that steps: waits for rewards must take as long as by a clock that nobody can set.

A log lives on a machine of which only the true time is real: its wall clock steps ahead and back,
processes and the machine itself end and start again. What a learner joins is compared with an
oracle on the true time, and beside it with a log that trusts the wall clock.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from fastbandit.learning.joining import Joiner
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.log_clock import LogClock, Machine
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults.ending import end_with_report

_SECOND = 1_000_000
_SIZES = (1, 3600, 86_400)  # seconds of a step
_WAIT = 10 * _SECOND
_BEGIN = 1_800_000_000 * _SECOND
_BETWEEN = 8  # appends from one step to the next, on average

Table = dict[tuple[str, int], float]
Happened = list[tuple[int, Event]]


@dataclass(frozen=True)
class ClockReport:
    """What came of steps of the wall clock.

    `differ` counts interactions that a learner joins otherwise than the oracle does, or not at
    all; `by_wall_clock` the same for a log that trusts the wall clock. `noticed` counts the steps
    that the log's clock told of.
    """

    steps: int
    seed: int
    noticed: int
    restarts: int
    boots: int
    interactions: int
    mean_reward: float
    differ: int
    by_wall_clock: int

    @property
    def is_met(self) -> bool:
        """Whether no step changed anything, and all were noticed."""
        return self.differ == 0 < self.by_wall_clock and self.noticed == self.steps


@dataclass
class _Times:
    """A machine's times: the true one, how far the wall clock is off, and when it was booted."""

    true: int = _BEGIN
    off: int = 0
    booted: int = _BEGIN - 3600 * _SECOND
    boots: int = 1

    def wall(self) -> int:
        return self.true + self.off

    def machine(self) -> Machine:
        return Machine(self.wall, lambda: self.true - self.booted, lambda: f"boot {self.boots}")


def step_clock(steps: int, *, seed: int = 0, progress: Progress = silent) -> ClockReport:
    """Let the wall clock step so many times, and compare what is joined with the true times."""
    rng, times, happened = np.random.default_rng(seed), _Times(), Happened()
    counts = {"noticed": 0, "restarts": 0}
    with tempfile.TemporaryDirectory() as home:
        paths = [Path(home) / name / LOG_FILE for name in ("steady", "wall")]
        for path in paths:
            path.parent.mkdir()
        logs = _open(paths, times)
        for step in range(1, steps + 1):
            for _ in range(1 + int(rng.integers(2 * _BETWEEN - 1))):
                times.true += int(rng.integers(1, 2 * _SECOND))
                events = _some_events(happened, rng=rng)
                for log in logs:
                    log.append(events)
                happened += [(times.true, event) for event in events]
            if rng.random() < 0.2:
                counts["restarts"] += 1
                counts["noticed"] += _close(logs)
                times.true += int(rng.integers(1, 20 * _SECOND))
                if rng.random() < 0.3:  # the machine starts again, and its clock goes on
                    times.booted, times.boots = times.true, times.boots + 1
                logs = _open(paths, times)
            times.off += int(rng.choice([-1, 1]) * rng.choice(_SIZES)) * _SECOND
            for log in logs:
                log.append([TimePassed()])
            happened.append((times.true, TimePassed()))
            progress(step, steps, "steps")
        counts["noticed"] += _close(logs)
        tables = [_learned(path) for path in paths]
    oracle = _oracle(happened)
    return ClockReport(
        steps,
        seed,
        **counts,
        boots=times.boots - 1,
        interactions=len(oracle),
        mean_reward=round(float(np.mean([*oracle.values()])), 4),
        differ=_differing(oracle, tables[0]),
        by_wall_clock=_differing(oracle, tables[1]),
    )


def _open(paths: Sequence[Path], times: _Times) -> list[SqliteLog]:
    clocks: list[Callable[[], int]] = [LogClock(times.machine()), times.wall]
    pragmas = ("synchronous = OFF",)
    return [
        SqliteLog(path, clock=clock, pragmas=pragmas)
        for path, clock in zip(paths, clocks, strict=True)
    ]


def _close(logs: Sequence[SqliteLog]) -> int:
    """Close the logs; return how many steps were noticed."""
    for log in logs:
        log.close()
    return sum(log.clock.steps for log in logs if isinstance(log.clock, LogClock))


def _some_events(happened: Happened, *, rng: np.random.Generator) -> list[Event]:
    """Draw a decision, a reward of one of the last, or a tick."""
    made = [event for _, event in happened[-60:] if isinstance(event, DecisionMade)]
    match rng.integers(5):
        case 0 | 1:
            id = rng.bytes(8).hex()
            return [DecisionMade(id, [0.0], ["x", "y"], [0.0, 0.0], 0, 0, 0, _WAIT)]
        case 2 | 3 if made:
            one = made[int(rng.integers(len(made)))]
            return [RewardCame(one.id, 1.0, one.arms[int(rng.integers(2))])]
    return [TimePassed()]


def _oracle(happened: Happened) -> Table:
    """Return the reward of each arm of each decision that has one for good, by the true times."""
    table: Table = {}
    for start, (made_at, made) in enumerate(happened):
        if not isinstance(made, DecisionMade):
            continue
        for position, arm in enumerate(made.arms):
            for at, event in happened[start + 1 :]:
                if at > made_at + made.wait:
                    table[made.id, position] = made.default_reward
                    break
                if isinstance(event, RewardCame) and (event.decision, event.arm) == (made.id, arm):
                    table[made.id, position] = event.value
                    break
    return table


def _learned(path: Path) -> Table:
    """Return the same as a learner joins it."""
    joiner, ids = Joiner(), dict[int, str]()
    with closing(SqliteLog(path, is_reader=True)) as log:
        for event in log.read(limit=2**31):
            joiner.feed(event)
            if isinstance(event, DecisionMade):
                ids[event.seq] = event.id
    return {(ids[one.decision], one.position): one.reward for one in joiner.interactions}


def _differing(one: Table, other: Table) -> int:
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())


@click.command("clock")
@click.option("--steps", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clock_command(steps: int, seed: int, as_json: bool) -> None:
    """Step the wall clock of a log by a second, an hour or a day, and compare what is joined.

    Ends with 1 if anything differs from an oracle on the true time.
    """
    logging.getLogger("fastbandit.storage").addHandler(logging.NullHandler())  # it says each step
    with progress_bar("Steps") as progress:
        report = step_clock(steps, seed=seed, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_met)


def _show(report: ClockReport) -> None:
    again = f"{report.restarts} restarts and {report.boots} boots"
    click.echo(f"{report.steps:,} steps of the clock, {report.noticed:,} noticed, {again}")
    click.echo(f"{report.interactions:,} interactions: {report.differ:,} differ from the oracle")
    click.echo(f"a log that trusts the wall clock: {report.by_wall_clock:,} differ")
