"""One bit of the newest version flipped, and a restart: an older version stands in, and says so.

Now and then the pointer is lost in its place: the newest version answers, and says so.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.snapshot_version import POINTER, read_pointer
from lab.faults.ending import end_with_report
from lab.faults.stage import Caller, Stage, set_stage
from lab.faults.swaps import Alternation, two_bandits

MOST_SECONDS = 5.0
_OLDER = 3
_POINTER_EVERY = 10
_SETTINGS: dict[str, Any] = {"learn.enabled": False}  # it would publish another
_PATIENCE = 60.0


@dataclass
class FlipReport:
    """What restarts after flips brought: `older` of them answered by an older version.

    After `pointers` of them, of the pointer, the newest version answered. `unsaid` were not
    degraded by their own account, `lost` did not answer at all, and `reused` would give the number
    of the flipped version to another.
    """

    flips: int
    seed: int
    arms: int
    whole_seconds: float = 0.0
    older: int = 0
    pointers: int = 0
    unsaid: int = 0
    lost: int = 0
    reused: int = 0
    seconds: list[float] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        answered = self.older + self.pointers
        return answered == self.flips and self.unsaid == self.lost == self.reused == 0

    @property
    def slowest_seconds(self) -> float:
        return max(self.seconds, default=0.0)


def flip_bits(
    flips: int, *, seed: int = 0, arms: int = 1_000, progress: Progress = silent
) -> FlipReport:
    """Flip one bit in a file of the newest version so many times, each followed by a restart."""
    rng, report, files = np.random.default_rng(seed), FlipReport(flips, seed, arms), Counter[str]()
    with tempfile.TemporaryDirectory() as home:
        stage = set_stage(Path(home), Synthetic("h2", 4, arms, seed=seed), _SETTINGS)
        alternation = Alternation(stage, two_bandits(stage))
        newest = [alternation.publish().version for _ in range(_OLDER)][-1]
        whole = Path(home) / "whole"
        shutil.copytree(stage.data, whole)
        _restart(stage)  # which may compile
        report.whole_seconds = _restart(stage)[0] or 0.0
        for number in range(flips):
            shutil.rmtree(stage.data)
            shutil.copytree(whole, stage.data)
            if number % _POINTER_EVERY == 1:
                what = _lose(stage.store.pointer, rng)
                files[POINTER] += 1
                _judge_pointer(report, stage, newest, what)
            else:
                name, bit = _flip(stage.data / "snapshots" / f"{newest:06d}", rng)
                files[name.split("-")[0]] += 1
                _judge(report, stage, newest, f"bit {bit} of {name}")
            progress(number + 1, flips, "flips")
    report.files = dict(files)
    return report


def _flip(folder: Path, rng: np.random.Generator) -> tuple[str, int]:
    """Flip one bit of any file in a folder; return which."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[int(rng.integers(len(files)))]
    return path.relative_to(folder).as_posix(), _flip_in(path, rng)


def _flip_in(path: Path, rng: np.random.Generator) -> int:
    content = bytearray(path.read_bytes())
    bit = int(rng.integers(8 * len(content)))
    content[bit // 8] ^= 1 << (bit % 8)
    path.unlink()  # versions share files
    path.write_bytes(content)
    return bit


def _lose(pointer: Path, rng: np.random.Generator) -> str:
    """Remove the pointer, or flip one bit of it; return what was done."""
    if rng.random() < 0.5:
        pointer.unlink()
        return "no pointer"
    return f"bit {_flip_in(pointer, rng)} of the pointer"


def _judge(report: FlipReport, stage: Stage, newest: int, what: str) -> None:
    seconds, status = _restart(stage)
    if seconds is None:
        report.lost += 1
        report.wrong.append(f"{what}: no answer")
        return
    report.seconds.append(round(seconds, 3))
    is_older = status["version"] is not None and status["version"] < newest
    is_said = _is_said(status)
    report.older += is_older
    report.unsaid += not is_said
    report.reused += stage.store.next_version() <= newest
    if not (is_older and is_said):
        report.wrong.append(f"{what}: version {status['version']}, {status['problems']}")


def _judge_pointer(report: FlipReport, stage: Stage, newest: int, what: str) -> None:
    is_lost = read_pointer(stage.store.pointer)[0] is None  # a bit of no matter may have flipped
    seconds, status = _restart(stage)
    if seconds is None:
        report.lost += 1
        report.wrong.append(f"{what}: no answer")
        return
    report.seconds.append(round(seconds, 3))
    is_newest, is_unsaid = status["version"] == newest, is_lost and not _is_said(status)
    report.pointers += is_newest
    report.unsaid += is_unsaid
    if is_unsaid or not is_newest:
        report.wrong.append(f"{what}: version {status['version']}, {status['problems']}")


def _is_said(status: dict[str, Any]) -> bool:
    return any(one["name"] == "snapshot" for one in status["problems"])


def _restart(stage: Stage) -> tuple[float | None, dict[str, Any]]:
    """Start the service; return the seconds to its first decision, and its status then."""
    service, caller = stage.start(), Caller(stage.port)
    try:
        seconds = service.first_answer(seconds=_PATIENCE)
        reply = caller.ask("/v1/status")
        return seconds, {} if reply is None else reply.content
    except ServiceUnavailable:
        return None, {}
    finally:
        caller.close()
        service.end()


# -- the command


@click.command("flips")
@click.option("--flips", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def flips_command(flips: int, seed: int, arms: int, as_json: bool) -> None:
    """Flip a bit of the newest version, restart, and see an older one stand in.

    Of ten, one is of the pointer in its place, or removes it: the newest stands in. Ends with 1 if
    one did not answer by such a version within 5 seconds, or did not say so.
    """
    with progress_bar("Flips") as progress:
        report = flip_bits(flips, seed=seed, arms=arms, progress=progress)
    notes = {**asdict(report), "slowest_seconds": report.slowest_seconds}
    is_met = report.is_whole and report.slowest_seconds <= MOST_SECONDS
    end_with_report(report, notes, as_json=as_json, show=_show, is_met=is_met)


def _show(report: FlipReport) -> None:
    click.echo(
        f"{report.flips:,} flips at {report.arms:,} arms: {report.older:,} answered by an older "
        f"version, {report.pointers:,} of the pointer by the newest, {report.unsaid:,} without "
        f"saying so, {report.lost:,} not at all"
    )
    click.echo(
        f"first answer after {np.median(report.seconds or [0.0]):.2f} s in the middle, "
        f"{report.slowest_seconds:.2f} s at most; {report.whole_seconds:.2f} s without a flip"
    )
    for one in report.wrong:
        click.echo(one)
