"""What a second worker brings, and what each part of a select costs the processor.

A service of one process and one of several workers, each on a log of its own, are sent loads in
alternation. The times of the processor are those that the system counts for each process, so they
hold on a machine that others use; parts are timed in this process.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import click
from msgspec import structs

from fastbandit.serving.frames import (
    CameArms,
    Frames,
    SentArms,
    frame_of_outcomes,
    outcomes_in,
)
from fastbandit.storage.events import DecisionMade, Outcome
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults.ending import end_with_report
from lab.faults.load import Answers, Load, load_from_process
from lab.faults.stage import Running, Stage, running
from lab.faults.throughput import TRAINED, added_time, trained_stage

_CONNECTIONS = 4  # of each worker
_DIM = 8
_SMALL, _LARGE = _GROUPS = (8, 128)  # selects in a group
_MODULES = {
    "worker": "fastbandit.serving.worker",
    "writer": "fastbandit.serving.log_writer_process",
}
_TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Loaded:
    """A service of so many workers under load; `cpu_us` is of each role, for one select."""

    workers: int
    connections: int
    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int
    cpu_us: dict[str, float]


@dataclass(frozen=True)
class WorkersReport:
    """Services of one process and of several under load, and what each part of a select costs.

    `parts_us` are microseconds of the processor for one select, appended and synced in groups; the
    last is how long a whole group waits for the disk.
    """

    arms: int
    seconds: float
    alone: Loaded
    several: Loaded
    parts_us: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times the selects of one process several make."""
        return self.several.per_second / self.alone.per_second

    def on_cores(self, cores: int) -> float:
        """Return the selects a second of so many cores: the writer takes one, workers the rest.

        So many send it groups of a hundred and more.
        """
        writer = self.parts_us["frames, writer"] + self.parts_us[f"append, of {_LARGE}"]
        return min((cores - 1) * 1e6 / self.several.cpu_us["worker"], 1e6 / writer)


def compare_workers(
    workers: int, *, arms: int, seconds: float = 5.0, rounds: int = 3
) -> WorkersReport:
    """Send loads to one process and to several workers in turn, then time the parts."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        stages = [trained_stage(Path(home), arms, TRAINED) for home in (one, other)]
        parts = _parts(stages[0])
        counts = (1, workers)
        with ExitStack() as ending:
            services = [
                ending.enter_context(running(stage, "--no-learner", "--workers", str(count)))
                for stage, count in zip(stages, counts, strict=True)
            ]
            found: list[list[tuple[Answers, dict[str, float]]]] = [[], []]
            for _ in range(rounds):
                for own, service, count in zip(found, services, counts, strict=True):
                    own.append(_loaded(service, count, seconds))
        alone, several = (_summary(count, own) for count, own in zip(counts, found, strict=True))
    return WorkersReport(arms, seconds, alone, several, parts)


def _loaded(service: Running, workers: int, seconds: float) -> tuple[Answers, dict[str, float]]:
    """Send a load; return the answers, and the time of each role for one."""
    before = _busy_us(service)
    load = Load(service.stage.port, seconds, connections=_CONNECTIONS * workers, features=_DIM)
    answers = load_from_process(load)
    taken = _busy_us(service)
    sent = sum(answers.statuses.values())
    return answers, {role: (taken[role] - before[role]) / sent for role in taken}


def _busy_us(service: Running) -> dict[str, float]:
    """Return the time that each role has taken of the processor so far."""
    roles = {role: service.children(module) for role, module in _MODULES.items()}
    found = {role: sum(map(_process_us, pids)) for role, pids in roles.items() if pids}
    return {**found, "parent" if found else "worker": _process_us(service.pid)}


def _process_us(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_US


def _summary(workers: int, found: list[tuple[Answers, dict[str, float]]]) -> Loaded:
    answers = [one for one, _ in found]
    return Loaded(
        workers,
        _CONNECTIONS * workers,
        round(median(one.good_per_second for one in answers), 1),
        round(median(one.p50_ms for one in answers), 2),
        round(median(one.p99_ms for one in answers), 2),
        sum(sum(n for status, n in one.statuses.items() if status != "200") for one in answers),
        {role: round(median(taken[role] for _, taken in found), 1) for role in found[0][1]},
    )


# -- parts


def _parts(stage: Stage) -> dict[str, float]:
    """Time the parts of a select in this process."""
    choose, added = added_time(stage)
    context = stage.environment.contexts(0, 1)[0].astype(float).tolist()
    made = DecisionMade("decision-00", context, ["arm-1"], [0.5], 2**60, 3, 17, 600_000_000)
    to_send, came, answer = SentArms(), CameArms(), frame_of_outcomes(1, [Outcome(9, "written")])
    sent = to_send.frame_of_events(1, [made])

    def in_worker() -> None:
        to_send.frame_of_events(1, [made])
        for _, _, body in Frames().feed(answer):
            outcomes_in(body)

    def in_writer() -> None:
        for _, kind, body in Frames().feed(sent):
            came.events_in(kind, body)
        frame_of_outcomes(1, [Outcome(123_456, "written")])

    appended = {group: _append_us(stage.home / f"{group}.db", made, group) for group in _GROUPS}
    return {
        "parse and decide": round(choose + added, 1),
        "frames, worker": round(_cpu_us(in_worker, 2_000), 1),
        "frames, writer": round(_cpu_us(in_writer, 2_000), 1),
        **{f"append, of {group}": round(busy, 1) for group, (busy, _) in appended.items()},
        "a group's sync": round(appended[_SMALL][1] * _SMALL, 1),
    }


def _append_us(path: Path, made: DecisionMade, group: int) -> tuple[float, float]:
    """Return the time of the processor that a synced append takes for one event, and the wait."""
    rounds, log = 200, SqliteLog(path)
    groups = [
        [structs.replace(made, id=f"{number}-{row}") for row in range(group)]
        for number in range(rounds)
    ]
    began, start = time.perf_counter(), time.process_time()
    for events in groups:
        log.append(events)
    busy, taken = time.process_time() - start, time.perf_counter() - began
    log.close()
    return busy / rounds / group * 1e6, (taken - busy) / rounds / group * 1e6


def _cpu_us(job: Callable[[], None], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        job()
    return (time.process_time() - began) / count * 1e6


# -- the command


@click.command("workers")
@click.option("--workers", type=click.IntRange(min=2), default=2, show_default=True)
@click.option("--arms", type=click.IntRange(min=1), default=10_000, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def workers_command(workers: int, arms: int, seconds: float, as_json: bool) -> None:
    """Compare one process with several workers, and time the parts of a select.

    Ends with 1 if any select failed.
    """
    report = compare_workers(workers, arms=arms, seconds=seconds)
    notes = {"ratio": round(report.ratio, 3), "on_16_cores": round(report.on_cores(16))}
    failed = report.alone.failed + report.several.failed
    end_with_report(
        report, {**asdict(report), **notes}, as_json=as_json, show=_show, is_met=failed == 0
    )


def _show(report: WorkersReport) -> None:
    for one in (report.alone, report.several):
        busy = ", ".join(f"{role} {us:.0f} µs" for role, us in one.cpu_us.items())
        click.echo(
            f"{one.workers} worker(s), {one.connections} connections: {one.per_second:,.0f} "
            f"selects/s, p50 {one.p50_ms:.1f} ms, p99 {one.p99_ms:.1f} ms; {busy} a select"
        )
    click.echo(", ".join(f"{name} {us:.0f} µs" for name, us in report.parts_us.items()))
    click.echo(f"{report.ratio:.2f} times; 16 cores: {report.on_cores(16):,.0f} selects/s")
