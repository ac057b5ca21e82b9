"""A full disk and one that cannot be written to, real ones, under a service that runs.

Full is a small file system in memory with nothing left; read-only are files marked immutable,
since a file system that is written to cannot be remounted. Both need the rights of root: where
there are none, a limit on the size of files stands for the full disk, and the rest is left out
and says so.
"""

from __future__ import annotations

import resource
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from fastbandit.demo.synthetic import Synthetic
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.data_folder import LOG_FILE
from lab.faults.ending import end_with_report
from lab.faults.small_disk import (
    NotPermittedError,
    fill,
    limit_files,
    make_room,
    set_immutable,
    small_disk,
    why_not_immutable,
)
from lab.faults.stage import Caller, Reply, Running, Stage, running, set_stage, wait_for

_MEGABYTES = 12
_CLIENTS = 2
_PAUSE_SECONDS = 0.005
_TRIALS = ("full", "read-only", "full for the learner")


@dataclass(frozen=True)
class DiskTrial:
    """What a service did while its disk took nothing, and after.

    `unlogged` counts answers of 200 that the log does not hold, `logged` refused decisions that
    it does, `unclear` refusals that do not name the disk, and `lost` what was refused again, or
    anew, once the service had said that it is ready. `skipped` says why a trial was left out.
    """

    name: str
    means: str = ""
    skipped: str = ""
    acknowledged: int = 0
    refused: int = 0
    unlogged: int = 0
    logged: int = 0
    unclear: int = 0
    lost: int = 0
    reason: str = ""
    recovery_seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether nothing was acknowledged in vain, and all was said clearly."""
        if self.skipped:
            return True
        faults = self.unlogged + self.logged + self.unclear + self.lost
        return faults == 0 and self.refused > 0 and "disk" in self.reason


@dataclass(frozen=True)
class LearnerTrial:
    """What a learner did while no snapshot could be saved, and after.

    `half` counts versions that appeared meanwhile, or were left half-made.
    """

    skipped: str = ""
    error: str = ""
    half: int = 0
    versions: int = 0
    recovery_seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it said why, published nothing half, and recovered."""
        has_recovered = "room" in self.error and self.half == 0 and self.versions > 0
        return bool(self.skipped) or has_recovered


@dataclass(frozen=True)
class DiskReport:
    """The trials of one campaign."""

    service: list[DiskTrial]
    learner: LearnerTrial

    @property
    def is_whole(self) -> bool:
        """Whether all trials that could be made were passed."""
        return self.learner.is_whole and all(trial.is_whole for trial in self.service)


def disk_trials(
    *, seed: int = 0, arms: int = 200, seconds: float = 3.0, progress: Progress = silent
) -> DiskReport:
    """Let the disk of a service take nothing for some seconds, in each way there is."""
    environment = Synthetic("h2", 4, arms, seed=seed)
    found: list[Any] = []
    for number, trial in enumerate((_full, _read_only, _learner_trial)):
        progress(number, len(_TRIALS), f"disk {_TRIALS[number]}")
        with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
            found.append(trial(Path(home), environment, stack, seconds))
    *service, learner = found
    return DiskReport(service, learner)


@dataclass(frozen=True)
class _Trouble:
    """How to make a disk take nothing, and how to mend it."""

    name: str
    means: str
    begin: Callable[[Running], None]
    mend: Callable[[Running], None]


# -- the service


def _full(home: Path, environment: Synthetic, stack: ExitStack, seconds: float) -> DiskTrial:
    data = home / "data"
    try:
        stack.enter_context(small_disk(data, megabytes=_MEGABYTES))
    except NotPermittedError:
        trouble = _Trouble(
            "full",
            "a limit on the size of files, since nothing can be mounted here",
            lambda service: limit_files(service.pid, 0),
            lambda service: limit_files(service.pid, resource.RLIM_INFINITY),
        )
    else:
        trouble = _Trouble(
            "full",
            f"a file system of {_MEGABYTES} MB without room",
            lambda service: fill(data),
            lambda service: make_room(data),
        )
    return _tried(set_stage(home, environment, {"learn.enabled": False}), trouble, seconds)


def _read_only(home: Path, environment: Synthetic, stack: ExitStack, seconds: float) -> DiskTrial:
    name = "read-only"
    if reason := why_not_immutable(home):
        return DiskTrial(name, skipped=reason)
    stage = set_stage(home, environment, {"learn.enabled": False})
    log = [stage.data / LOG_FILE, stage.data / f"{LOG_FILE}-wal"]
    trouble = _Trouble(
        name,
        "files marked immutable",
        lambda service: set_immutable(log, True),
        lambda service: set_immutable(log, False),
    )
    stack.callback(set_immutable, log, False)
    return _tried(stage, trouble, seconds)


@dataclass
class _Client:
    """Asks for decisions in threads, each with an id of its own, and remembers the replies."""

    stage: Stage
    replies: dict[str, Reply] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to ask."""
        self._is_over.clear()
        self._threads = [threading.Thread(target=self._ask) for _ in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask no more; return when all replies have come."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def request(self, id: str) -> dict[str, Any]:
        """Return the request of an id."""
        round_number = int(id.rpartition("-")[2])
        return {"id": id, "context": self.stage.environment.contexts(round_number, 1)[0].tolist()}

    def _ask(self) -> None:
        caller, me = Caller(self.stage.port), threading.get_ident()
        while not self._is_over.is_set():
            id = f"{me}-{len(self.replies)}"
            self.replies[id] = caller.ask("/v1/select", self.request(id)) or Reply(0, "", None)
            time.sleep(_PAUSE_SECONDS)
        caller.close()

    def ids(self, *, are_good: bool) -> list[str]:
        """Return the ids that were answered, or refused."""
        return [id for id, reply in self.replies.items() if (reply.status == 200) == are_good]


def _tried(stage: Stage, trouble: _Trouble, seconds: float) -> DiskTrial:
    """Ask a service before, while and after its disk takes nothing."""
    with running(stage) as service:
        client = _Client(stage)
        client.start()
        try:
            time.sleep(seconds / 3)
            trouble.begin(service)
            reason = _reason(service.wait_until(False))
            time.sleep(seconds / 3)
        finally:
            client.stop()
        refused = client.ids(are_good=False)
        logged = len(stage.decisions().keys() & set(refused))
        trouble.mend(service)
        began = time.monotonic()
        service.wait_until(True)
        recovery = time.monotonic() - began
        client.start()
        time.sleep(seconds / 3)
        client.stop()
        lost = len(client.ids(are_good=False)) - len(refused) + _lost(stage, client, refused)
        service.stop()
    stage.check_log()
    return DiskTrial(
        trouble.name,
        trouble.means,
        acknowledged=len(client.ids(are_good=True)),
        refused=len(refused),
        unlogged=_unlogged(stage, client),
        logged=logged,
        unclear=sum(not _is_clear(client.replies[id]) for id in refused),
        lost=lost,
        reason=reason,
        recovery_seconds=round(recovery, 3),
    )


def _reason(reply: Reply) -> str:
    return " ".join(reason["detail"] for reason in reply.content["reasons"])


def _is_clear(reply: Reply) -> bool:
    """Return whether a refusal says that it is the disk, in the form of a problem."""
    if (reply.status, reply.kind) != (503, "application/problem+json"):
        return False
    return "disk" in reply.content["detail"] and bool(reply.content["fix"])


def _lost(stage: Stage, client: _Client, refused: list[str]) -> int:
    """Ask again for what was refused; count what is not answered even so."""
    caller = Caller(stage.port)
    replies = [caller.ask("/v1/select", client.request(id)) for id in refused]
    caller.close()
    return sum(reply is None or reply.status != 200 for reply in replies)


def _unlogged(stage: Stage, client: _Client) -> int:
    """Count the answers that the log does not hold just so."""
    made = stage.decisions()
    good = {id: client.replies[id].content for id in client.ids(are_good=True)}
    return sum(id not in made or made[id].arms != content["arms"] for id, content in good.items())


# -- the learner


def _learner_trial(
    home: Path, environment: Synthetic, stack: ExitStack, seconds: float
) -> LearnerTrial:
    snapshots = home / "data" / "snapshots"
    try:
        stack.enter_context(small_disk(snapshots, megabytes=_MEGABYTES))
    except NotPermittedError as error:
        return LearnerTrial(skipped=str(error))
    stage = set_stage(home, environment, {"learn.fresh": 20})
    fill(snapshots)
    with running(stage) as service:
        caller = Caller(stage.port)
        for visit in range(60):
            _decide_and_reward(caller, environment, visit)
        said = wait_for(lambda: _failure(stage), seconds=60.0, what="a learner that fails")
        time.sleep(seconds / 3)
        half = sum(version > 0 for version in stage.store.versions())
        wait_for(lambda: _is_reported(caller, said), seconds=30.0, what="a problem in the status")
        make_room(snapshots)
        began = time.monotonic()
        wait_for(lambda: _asked(caller, "version"), seconds=90.0, what="a version after that")
        recovery = time.monotonic() - began
        caller.close()
        service.stop()
    whole = stage.store.list()
    half += len(stage.store.versions()) - len(whole) + len(list(snapshots.glob(".draft-*")))
    return LearnerTrial("", said, half, len(whole) - 1, round(recovery, 3))


def _is_reported(caller: Caller, said: str) -> bool:
    """Return whether the status says why the learner failed, but for the name of its draft."""
    problems = [problem["detail"] for problem in _asked(caller, "problems") or []]
    return any(said.rpartition("(")[2] in problem for problem in problems)


def _asked(caller: Caller, what: str) -> Any:
    """Return something that the status of a service shows."""
    status = caller.ask("/v1/status")
    return None if status is None else status.content[what]


def _decide_and_reward(caller: Caller, environment: Synthetic, visit: int) -> None:
    reply = caller.ask("/v1/select", {"context": environment.contexts(visit, 1)[0].tolist()})
    if reply is not None and reply.status == 200:
        caller.ask("/v1/reward", {"decision": reply.content["decision"], "value": visit % 2})


def _failure(stage: Stage) -> str:
    state = stage.learner_state()
    return str(state["error"]) if state.get("state") == "failed" else ""


# -- the command


@click.command("disk")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.3), default=9.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def disk_command(seed: int, seconds: float, as_json: bool) -> None:
    """Let the disk of a service be full, then read-only; look at what it acknowledged.

    Needs root, to mount a small disk. Ends with 1 if anything was acknowledged and not written.
    """
    with progress_bar("Disks") as progress:
        report = disk_trials(seed=seed, seconds=seconds, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_whole)


def _show(report: DiskReport) -> None:
    for trial in report.service:
        if trial.skipped:
            click.echo(f"disk {trial.name}: left out. {trial.skipped}")
            continue
        click.echo(f"disk {trial.name} ({trial.means}): {trial.reason}")
        click.echo(
            f"  {trial.acknowledged:,} acknowledged, {trial.unlogged:,} of them not in the log; "
            f"{trial.refused:,} refused, {trial.logged:,} of them in the log, {trial.unclear:,} "
            f"without a clear reason, {trial.lost:,} refused again; ready "
            f"{trial.recovery_seconds:.2f} s after it was mended"
        )
    learner = report.learner
    if learner.skipped:
        click.echo(f"disk full for the learner: left out. {learner.skipped}")
        return
    click.echo(f"disk full for the learner: {learner.error}")
    click.echo(
        f"  {learner.half:,} versions half-made, {learner.versions:,} made in the end, the first "
        f"served {learner.recovery_seconds:.2f} s after there was room"
    )
