"""A worker's side of its service: the log, connections and counts go through two sockets.

Over one come sockets (of clients, and to the writer of the log); over the other a worker
reports four times a second, and hears of the others. It ends when the service does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from fastbandit.errors import LogError
from fastbandit.serving.counts import Counts, add_counts, counts_of
from fastbandit.serving.log_client import LogClient
from fastbandit.serving.metrics import Metrics, Window
from fastbandit.serving.schemas import Reason
from fastbandit.storage.shared import open_log

if TYPE_CHECKING:
    from fastbandit.serving.snapshot_follower import SnapshotFollower

_LOGGER = logging.getLogger("fastbandit.serving")
REPORT_SECONDS = 0.25
LONGEST_LINE = 2**24
TO_WRITER, OF_CLIENT = b"w", b"c"
"""What a socket that is handed to a worker is."""


class Report(Struct):
    """What a worker says of itself, with the windows since its last report; `error` ends it."""

    has_started: bool = False
    is_joined: bool = False
    connections: int = 0
    waiting: int = 0
    counts: Counts = {}
    windows: list[Window] = []
    is_asked: bool = False
    error: str = ""


class Answer(Struct):
    """How many workers there should be and run, if the learner is down, and what all counted."""

    workers: int
    running: int
    is_learner_down: bool
    waiting: int = 0
    counts: Counts | None = None
    windows: list[Window] = []


class WorkerLink:
    """Ties a worker to its service; `take` is called with the sockets of clients.

    `count` says how many connections there are, and `end` is called when the service is gone.
    """

    def __init__(self, reports: socket.socket, handed: socket.socket) -> None:
        self._reports, self._handed = reports, handed
        self._asking, self._wake = asyncio.Lock(), asyncio.Event()
        self._said = Answer(0, 0, False)
        self._windows_at = 0
        self._metrics = Metrics()
        self._jobs: set[asyncio.Task[Any]] = set()
        self.log = LogClient(self._wake.set)
        self.has_started = False
        self.take: Callable[[socket.socket], Coroutine[Any, Any, None]] = _close
        self.count: Callable[[], int] = lambda: 0
        self.end: Callable[[], None] = lambda: None

    async def start(self, metrics: Metrics) -> None:
        """Begin to report, and to take what the service hands over."""
        self._metrics, loop = metrics, asyncio.get_running_loop()
        for one in (self._reports, self._handed):
            one.setblocking(False)
        self._reader, self._writer = await asyncio.open_unix_connection(
            sock=self._reports, limit=LONGEST_LINE
        )
        loop.add_reader(self._handed.fileno(), self._take)
        self._do(self._keep_reporting())

    def begin(self) -> None:
        """Say that connections can come."""
        self.has_started = True
        self._wake.set()

    def close(self) -> None:
        """Let go of the service."""
        for job in self._jobs:
            job.cancel()
        asyncio.get_running_loop().remove_reader(self._handed.fileno())
        self._handed.close()
        self._writer.close()

    def problems(self) -> list[Reason]:
        """Return what is wrong with the processes of the service."""
        found, said = [], self._said
        if said.running < said.workers:
            text = f"{said.running} of {said.workers} workers run."
            found.append(Reason("workers", text, "They are started again; see logs."))
        if said.is_learner_down:
            text = "The learner is not running."
            found.append(Reason("learner", text, "It is started again; see logs."))
        return found

    def gauges(self) -> dict[str, float]:
        """Return what is shown of all workers beside the counts, as of the last report."""
        said = self._said
        waiting = float(said.waiting)
        return {
            "workers": said.workers,
            "workers_running": said.running,
            "waiting_for_log": waiting,
        }

    async def totals(self) -> Metrics:
        """Return what all workers counted; those that ended, too."""
        said, found = await self._report(is_asked=True), Metrics()
        add_counts(found, said.counts or counts_of(self._metrics))
        found.windows.extend(said.windows)
        return found

    async def follow(self, follower: SnapshotFollower, folder: Path) -> None:
        """Make changes of the arms that came by way of other workers, as they come."""
        while True:
            await self.log.changed.wait()
            self.log.changed.clear()
            try:
                async with follower.changing:
                    with closing(open_log("", folder, is_reader=True)) as reader:
                        await asyncio.to_thread(follower.catch_up, reader)
            except LogError as error:
                _LOGGER.warning("cannot follow", extra={"reason": " ".join(str(error).split())})
                await asyncio.sleep(REPORT_SECONDS)
                self.log.changed.set()

    # -- sockets that come

    def _take(self) -> None:
        """Take a socket: of a client, or to the writer of the log."""
        with suppress(BlockingIOError):
            said, numbers, _, _ = socket.recv_fds(self._handed, 1, 1)
            for number in numbers:
                one = socket.socket(fileno=number)
                one.setblocking(False)
                self._do(self.log.join(one) if said == TO_WRITER else self.take(one))

    def _do(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOGGER.error("a worker failed", exc_info=error)
            self.end()

    # -- reports

    async def _keep_reporting(self) -> None:
        while True:
            self._wake.clear()
            await self._report()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), REPORT_SECONDS)

    async def _report(self, *, is_asked: bool = False) -> Answer:
        """Say what there is to say, and return what the service answers."""
        async with self._asking:
            windows = [one for one in self._metrics.windows if one.at > self._windows_at]
            self._windows_at = windows[-1].at if windows else self._windows_at
            report = Report(
                self.has_started,
                self.log.is_joined,
                connections=self.count(),
                waiting=self.log.waiting,
                counts=counts_of(self._metrics),
                windows=windows,
                is_asked=is_asked,
            )
            line = b""
            with suppress(OSError):
                self._writer.write(msgspec.json.encode(report) + b"\n")
                line = await self._reader.readline()
            if line:
                self._said = msgspec.json.decode(line, type=Answer)
            else:
                self.end()
        return self._said


def report_error(reports: socket.socket, error: Exception) -> None:
    """Say why a worker cannot start."""
    text = " ".join(str(error).split())
    with suppress(OSError):
        reports.setblocking(True)
        reports.sendall(msgspec.json.encode(Report(error=text)) + b"\n")


async def _close(one: socket.socket) -> None:
    one.close()
