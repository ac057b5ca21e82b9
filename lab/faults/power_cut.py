"""Power cuts at random moments of an event log's life: what it acknowledged must be there after.

Each cut leaves files of which unsynced writes are stored, dropped or torn (volatile_disk.py).
The log is opened on them, checked, and goes on from there up to the next cut.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import apsw
import click
import numpy as np
from msgspec import structs

from fastbandit.errors import LogError
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults.ending import end_with_report
from lab.faults.volatile_disk import VolatileDisk

_RAM = Path("/dev/shm")
_LIVES = 12  # cuts that one log goes through


@dataclass(frozen=True)
class PowerCutReport:
    """What was found after power cuts.

    `acknowledged` counts events that were looked for, once for each cut they had to outlive.
    `lost` counts those that were gone or changed; `corrupt` and `torn` count cuts after which
    the file was damaged, or only a part of an append was found.
    """

    cuts: int
    seed: int
    acknowledged: int
    lost: int
    corrupt: int
    torn: int
    phases: dict[str, int]
    first_failure: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == self.corrupt == self.torn == 0


@dataclass
class _Found:
    """What was counted so far."""

    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0
    torn: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    failure: str = ""


def power_cuts(
    cuts: int, *, seed: int = 0, synchronous: str = "FULL", progress: Progress = silent
) -> PowerCutReport:
    """Cut the power of a log so many times, and count what was lost.

    With `synchronous` "NORMAL" appends are not synced, with "OFF" nothing is: cuts must then
    lose events, and damage files, or they would show nothing.
    """
    rng, found = np.random.default_rng(seed), _Found()
    with tempfile.TemporaryDirectory(dir=_RAM if _RAM.is_dir() else None) as home:
        life = _Life(Path(home) / "0")
        for number in range(1, cuts + 1):
            if number % _LIVES == 0 or life.is_broken:
                shutil.rmtree(life.folder)
                life = _Life(Path(home) / f"{number} anew")
            life = _cut_once(life, Path(home) / f"{number}", found, synchronous, rng=rng)
            progress(number, cuts, "power cuts")
    counts = {name: getattr(found, name) for name in ("acknowledged", "lost", "corrupt", "torn")}
    phases = dict(sorted(found.phases.items()))
    return PowerCutReport(cuts, seed, phases=phases, first_failure=found.failure, **counts)


@dataclass
class _Life:
    """A log between two cuts: what it acknowledged, and the append that was under way."""

    folder: Path
    stored: list[Event] = field(default_factory=list)
    under_way: list[Event] = field(default_factory=list)
    is_broken: bool = False

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)


def _cut_once(
    life: _Life, target: Path, found: _Found, synchronous: str, *, rng: np.random.Generator
) -> _Life:
    """Let a log live up to a cut, and check what is left; return the life that goes on."""
    disk = VolatileDisk(life.folder, steps_left=_moment(rng))
    pragmas = (f"wal_autocheckpoint = {rng.integers(1, 16)}", f"synchronous = {synchronous}")
    logs: list[SqliteLog] = []
    try:
        path = life.folder / LOG_FILE
        logs.append(SqliteLog(path, clock=_still, pragmas=pragmas))
        _live(logs[0], life, disk, rng=rng)
    except (LogError, apsw.Error):
        if disk.has_power:
            raise
    disk.cut(target, rng=rng)
    for log in logs:
        with suppress(apsw.Error):
            log.close()
    disk.close()
    shutil.rmtree(life.folder)
    found.phases[disk.interrupted] += 1
    return _check(life, _Life(target), found)


def _still() -> int:
    """Return one time for all: what happens is to depend on the seed alone."""
    return 0


def _moment(rng: np.random.Generator) -> int | None:
    """Draw the step at which the power fails; with None it fails after all is done."""
    most = rng.choice([0, 20, 120, 120])
    return int(rng.integers(1, most)) if most else None


def _live(log: SqliteLog, life: _Life, disk: VolatileDisk, *, rng: np.random.Generator) -> None:
    """Append for a while, then close the log or leave it open; the power may fail at any step."""
    for _ in range(int(rng.integers(1, 30))):
        disk.doing, life.under_way = "appending", _some_events(life.stored, rng=rng)
        log.append(life.under_way)
        if not disk.has_power:
            return
        disk.doing, life.under_way = "at rest", []
        life.stored += log.read(after=life.stored[-1].seq if life.stored else 0)
    if rng.random() < 0.7:
        disk.doing, disk.steps_left = "closing", int(rng.integers(1, 20))
        log.close()
        disk.doing = "at rest"


def _some_events(stored: list[Event], *, rng: np.random.Generator) -> list[Event]:
    """Draw the events of an append: of all kinds, from a few bytes to some pages."""
    made = [event for event in stored[-40:] if isinstance(event, DecisionMade)]
    events: list[Event] = []
    for _ in range(int(rng.integers(1, 5))):
        match rng.integers(5):
            case 0 | 1:
                events.append(_decision(rng))
            case 2 | 3 if made:
                one = made[int(rng.integers(len(made)))]
                events.append(RewardCame(one.id, float(rng.random()), one.arms[0]))
            case 4 if rng.random() < 0.3:
                events.append(ArmsChanged([Arm("x", rng.random(200).tolist())], ["y"]))
            case _:
                events.append(TimePassed())
    return events


def _decision(rng: np.random.Generator) -> DecisionMade:
    context = rng.random(int(rng.choice([2, 20, 500]))).tolist()
    return DecisionMade(
        id=rng.bytes(8).hex(),
        context=context,
        arms=["x", 1],
        scores=[0.5, 0.25],
        seed=int(rng.integers(2**63)),
        version=0,
        catalogue=0,
        wait=1_000_000,
    )


# -- after the cut


def _check(life: _Life, after: _Life, found: _Found) -> _Life:
    """Open what a cut left, compare it with what was acknowledged, and write to it."""
    path, stored = after.folder / LOG_FILE, life.stored
    found.acknowledged += len(stored)
    try:
        log = SqliteLog(path, clock=_still)
        events = log.read(limit=2**31)
        _check_integrity(path)
        log.append([TimePassed()])
        after.stored = log.read(limit=2**31)
        log.close()
    except (LogError, apsw.Error) as error:
        found.corrupt += 1
        found.failure = found.failure or str(error)
        after.is_broken = True
        return after
    lost = len(stored) - sum(one == other for one, other in zip(stored, events, strict=False))
    found.lost += lost
    more = [_as_given(event) for event in events[len(stored) :]]
    found.torn += bool(more) and more != life.under_way
    if lost:
        found.failure = found.failure or f"{lost} of {len(stored)} events were lost"
    return after


def _check_integrity(path: Path) -> None:
    connection = connect(path, is_reader=True)
    rows = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    if rows != [("ok",)]:
        raise LogError(f"An event log needs to be whole after a power cut: {path} has {rows[:3]}.")


def _as_given(event: Event) -> Event:
    """Return an event as it was before the log judged and numbered it."""
    if isinstance(event, RewardCame):
        event = structs.replace(event, status=None)
    return structs.replace(event, seq=0, at=0)


# -- the command


@click.command("power-cut")
@click.option("--cuts", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--synchronous",
    type=click.Choice(["FULL", "NORMAL", "OFF"]),
    default="FULL",
    show_default=True,
    help="NORMAL does not sync appends, OFF nothing: they show what a cut can destroy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def power_cut_command(cuts: int, seed: int, synchronous: str, as_json: bool) -> None:
    """Cut the power of an event log at random moments, and look for what it acknowledged.

    Unsynced writes are stored, dropped or torn. Ends with 1 if anything was lost.
    """
    with progress_bar("Power cuts") as progress:
        report = power_cuts(cuts, seed=seed, synchronous=synchronous, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_whole)


def _show(report: PowerCutReport) -> None:
    moments = ", ".join(f"{count:,} while {name}" for name, count in report.phases.items())
    click.echo(f"{report.cuts:,} power cuts: {moments}")
    click.echo(f"{report.acknowledged:,} acknowledged events looked for, {report.lost:,} lost")
    click.echo(f"{report.corrupt:,} files corrupt, {report.torn:,} appends torn")
    if report.first_failure:
        click.echo(f"first failure: {report.first_failure}")
