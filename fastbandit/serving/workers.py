"""A service of several processes on one machine: workers decide, one process writes the log.

The parent accepts connections and hands each to the worker that has the fewest. It starts
again what ends, the learner too, and adds up what the workers count. It does no other work: what
it promises is that somebody answers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fastbandit.errors import FastbanditError, LogError, SettingError
from fastbandit.files.private import make_private
from fastbandit.serving.counts import add_counts, counts_of, joined_windows
from fastbandit.serving.learner_process import LearnerProcess, environment_of, keep_retaining
from fastbandit.serving.metrics import Metrics, Window
from fastbandit.serving.personalizer.configuration import configured
from fastbandit.serving.sockets import bound_to, url_of
from fastbandit.serving.worker_link import LONGEST_LINE, OF_CLIENT, TO_WRITER, Answer, Report
from fastbandit.settings.service import Config
from fastbandit.storage.column_marks import SecretNames
from fastbandit.storage.data_folder import LOG_FILE

_LOGGER = logging.getLogger("fastbandit.serving")
_SILENT_SECONDS = 5.0  # a worker that did not report for so long does not run
_LONG_ENOUGH, _PAUSE, _LONGEST_PAUSE = 1.0, 0.1, 5.0
_DRAINING_SECONDS, _ENDING_SECONDS = 20.0, 10.0
_BACKLOG = 4096
_NO_WORKER = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: application/problem+json\r\ncontent-length: %d\r\n\r\n%s"
)
_SAID = msgspec.json.encode(
    {
        "type": "urn:fastbandit:not-ready",
        "title": "not ready",
        "status": 503,
        "detail": "No worker of the service runs.",
        "fix": "Send the request again after the time in Retry-After; see the service's logs.",
    }
)


@dataclass(eq=False)
class _Worker:
    """A worker that runs, and what it said last; `handed` counts connections since."""

    process: asyncio.subprocess.Process
    handed_over: socket.socket
    report: Report = field(default_factory=Report)
    heard: float = 0.0
    handed: int = 0

    @property
    def is_running(self) -> bool:
        is_heard = time.monotonic() - self.heard < _SILENT_SECONDS
        return self.report.has_started and is_heard and self.process.returncode is None


class Workers:
    """Runs a service of `config.server.workers` processes; `learner` is the command that trains.

    `on_started` is called with where it listens, once all workers decide.
    """

    on_started: Callable[[str], None] = staticmethod(lambda url: None)

    def __init__(self, config: Config, *, learner: Sequence[str] | None = None) -> None:
        self._config = config = configured(config)
        self._metrics = Metrics()  # of workers that ended, and its own
        self._learner = LearnerProcess(config, learner, metrics=self._metrics)
        self._windows: deque[Window] = deque(maxlen=self._metrics.windows.maxlen)
        self._workers: list[_Worker | None] = [None] * config.server.workers
        self._to_writer: socket.socket | None = None  # while one runs
        self._processes: set[asyncio.subprocess.Process] = set()
        self._first_to_end: list[asyncio.Task[None]] = []
        self._has_started = False

    def run(self) -> None:
        """Serve until a signal to stop; raise why not before anything is served."""
        server = self._config.server
        with ExitStack() as closing:
            self._bound = list(bound_to(server.host, server.port))
            for one in self._bound:
                closing.callback(one.close)
            make_private(Path(server.data_dir))
            if asyncio.run(self._live()) is signal.SIGINT:
                raise KeyboardInterrupt

    # -- its life

    async def _live(self) -> signal.Signals:
        """Run all processes until one cannot start, or a signal comes; return that."""
        loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[signal.Signals] = loop.create_future()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._end, one)
        jobs = [self._keep_writer(), *map(self._keep_worker, range(len(self._workers)))]
        schema = self._config.context.read_schema()
        is_regular = bool(self._config.log.retain_days or (schema and schema.drops))
        if is_regular or self._config.personalizer.enabled:
            jobs.append(keep_retaining(self._config, is_regular=is_regular))
        tasks = [loop.create_task(job) for job in jobs]
        if self._learner.is_wanted:
            self._first_to_end.append(loop.create_task(self._learner.keep_running()))
        try:
            return await self._ending
        finally:
            await self._stop(tasks)

    def _end(self, signaled: signal.Signals) -> None:
        """Begin to end, or where that has begun, end at once."""
        if not self._ending.done():
            self._ending.set_result(signaled)
            return
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()

    def _fail(self, error: FastbanditError) -> None:
        """End with an error where nothing was served yet; later it is tried again."""
        _LOGGER.error("a process cannot start", extra={"reason": str(error)})
        if not self._has_started and not self._ending.done():
            self._ending.set_exception(error)

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        """Let workers answer what is under way, then the writer write it, then end."""
        await _cancel(self._first_to_end)
        for one in self._bound:
            one.close()
        running = [one.process for one in self._workers if one is not None]
        for worker in filter(None, self._workers):
            with suppress(ProcessLookupError):
                (worker.process.terminate if worker.report.has_started else worker.process.kill)()
        await _ended(running, _DRAINING_SECONDS)
        await self._learner.stop()
        if self._to_writer is not None:
            self._to_writer.shutdown(socket.SHUT_RDWR)  # it ends by that
        await _ended(list(self._processes), _ENDING_SECONDS)
        await _cancel(tasks)
        _LOGGER.info("stopped")

    async def _run(
        self, module: str, sockets: Sequence[socket.socket], *arguments: str
    ) -> asyncio.subprocess.Process:
        """Start a module as a process with sockets of its own, which are closed here."""
        numbers = [one.fileno() for one in sockets]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"fastbandit.serving.{module}", *map(str, numbers), *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            env=environment_of(self._config),
            pass_fds=numbers,
        )
        self._processes.add(process)
        if self._ending.done():
            process.kill()
        for one in sockets:
            one.close()
        return process

    def _starts(self) -> Iterator[float]:
        """Yield how long to wait before each start: not at all after one that lasted."""
        pause, began = 0.0, time.monotonic()
        while not self._ending.done():
            yield pause
            now = time.monotonic()
            has_lasted, began = now - began - pause >= _LONG_ENOUGH, now
            pause = 0.0 if has_lasted else min(2 * pause or _PAUSE, _LONGEST_PAUSE)

    # -- the writer of the log

    async def _keep_writer(self) -> None:
        """Run the writer, and start it again when it ends."""
        loop, path = asyncio.get_running_loop(), Path(self._config.server.data_dir) / LOG_FILE
        secret = [msgspec.json.encode(row).decode() for row in SecretNames.of(self._config).rows]
        for pause in self._starts():
            await asyncio.sleep(pause)
            own, its = socket.socketpair()
            own.setblocking(False)
            process = await self._run("log_writer_process", [its], str(path), *secret)
            with own:
                said = await loop.sock_recv(own, 2**16)
                if said == b"+":
                    self._to_writer = own
                elif said:
                    self._fail(LogError(said[1:].decode()))
                await self._wait(process, "writer")
                self._to_writer = None

    async def _wait(self, process: asyncio.subprocess.Process, role: str) -> None:
        status = await process.wait()
        self._processes.discard(process)
        if not self._ending.done():
            name = signal.Signals(-status).name if status < 0 else str(status)
            _LOGGER.error(f"a {role} ended", extra={"status": name})

    def _join(self, worker: _Worker) -> None:
        """Hand a worker and the writer a socket to each other."""
        if self._to_writer is None:
            return  # it asks again
        one, other = socket.socketpair()
        with one, other, suppress(OSError):
            socket.send_fds(self._to_writer, [TO_WRITER], [other.fileno()])
            socket.send_fds(worker.handed_over, [TO_WRITER], [one.fileno()])

    # -- workers

    async def _keep_worker(self, number: int) -> None:
        """Run a worker, hear its reports, and start it again when it ends."""
        sources = msgspec.json.encode(dict(self._config.sources)).decode()
        for pause in self._starts():
            await asyncio.sleep(pause)
            reports, its_reports = socket.socketpair()
            handed, its_handed = socket.socketpair(type=socket.SOCK_DGRAM)
            handed.setblocking(False)
            with handed:
                process = await self._run("worker", [its_reports, its_handed], sources)
                worker = self._workers[number] = _Worker(process, handed)
                await self._hear(worker, reports)
                await self._wait(process, "worker")
                self._workers[number] = None
            add_counts(self._metrics, worker.report.counts)

    async def _hear(self, worker: _Worker, reports: socket.socket) -> None:
        """Answer reports until they end."""
        reader, writer = await asyncio.open_unix_connection(sock=reports, limit=LONGEST_LINE)
        with suppress(OSError):
            while line := await reader.readline():
                report = msgspec.json.decode(line, type=Report)
                if report.error:
                    self._fail(SettingError(report.error))
                    break
                worker.report, worker.heard, worker.handed = report, time.monotonic(), 0
                self._windows.extend(report.windows)
                if not report.is_joined:
                    self._join(worker)
                writer.write(msgspec.json.encode(self._answer(report)) + b"\n")
                self._announce()
        writer.close()

    def _announce(self) -> None:
        """Listen once all workers decide: who asks too early is rejected."""
        if self._has_started or len(self._running()) < len(self._workers):
            return
        self._has_started = True
        for one in self._bound:
            one.setblocking(False)
            one.listen(_BACKLOG)
            self._first_to_end.append(asyncio.create_task(self._accept(one)))
        server = self._config.server
        self.on_started(url_of(server.host, self._bound[0], is_tls=bool(server.tls_cert)))

    def _running(self) -> list[_Worker]:
        return [one for one in self._workers if one is not None and one.is_running]

    def _answer(self, report: Report) -> Answer:
        reports = [one.report for one in self._workers if one is not None]
        answer = Answer(
            workers=len(self._workers),
            running=len(self._running()) if self._has_started else len(self._workers),
            is_learner_down=self._learner.is_down,
            waiting=sum(one.waiting for one in reports),
        )
        if report.is_asked:
            total = Metrics()
            for counts in (counts_of(self._metrics), *(one.counts for one in reports)):
                add_counts(total, counts)
            answer.counts, answer.windows = counts_of(total), joined_windows(self._windows)
        return answer

    # -- connections

    async def _accept(self, bound: socket.socket) -> None:
        """Hand each connection to the worker that has the fewest."""
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(bound)
            except OSError:  # there are too many files
                await asyncio.sleep(_PAUSE)
                continue
            with client:
                if not self._hand_over(client):
                    await self._refuse(client)

    def _hand_over(self, client: socket.socket) -> bool:
        """Hand a connection to a worker; return whether any took it."""
        for worker in sorted(self._running(), key=lambda it: it.report.connections + it.handed):
            with suppress(OSError):
                socket.send_fds(worker.handed_over, [OF_CLIENT], [client.fileno()])
                worker.handed += 1
                return True
        return False

    async def _refuse(self, client: socket.socket) -> None:
        """Say that no worker runs; over TLS, say nothing."""
        loop = asyncio.get_running_loop()
        with suppress(OSError, TimeoutError):
            if not self._config.server.tls_cert:
                await asyncio.wait_for(loop.sock_recv(client, 2**16), _PAUSE)
                await loop.sock_sendall(client, _NO_WORKER % (len(_SAID), _SAID))


async def _ended(processes: list[asyncio.subprocess.Process], seconds: float) -> None:
    """Wait for processes to end, and kill those that do not."""
    if processes:
        waits = [asyncio.ensure_future(process.wait()) for process in processes]
        await asyncio.wait(waits, timeout=seconds)
    for process in processes:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
