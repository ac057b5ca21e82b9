"""LocalEngine: workers that are processes of this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from fastbandit.cluster.engine import News, Work, WorkerDiedError, do, spread

_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
_THREADS = (*(f"{name}_NUM_THREADS" for name in _LIBRARIES), "LOKY_MAX_CPU_COUNT")


@dataclass(frozen=True)
class LocalEngine:
    """Does jobs in processes of one thread each, spawned when there are jobs."""

    workers: int

    def run(self, work: Work, jobs: Sequence[Any]) -> Generator[News, None, None]:
        return spread(self, work, jobs, workers=self.workers)

    def close(self) -> None:
        """Do nothing: processes end with the jobs."""

    def start(self, work: Any) -> _Process:
        context = get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, work), daemon=True)
        with one_thread_per_process():
            process.start()
        there.close()
        return _Process(process, here)

    def listen(self, pool: Sequence[_Process]) -> list[_Process]:
        speaking = wait([worker.connection for worker in pool])
        return [worker for worker in pool if worker.connection in speaking]

    def stop(self, pool: Sequence[_Process]) -> None:
        for worker in pool:
            worker.process.terminate()
            worker.connection.close()
        for worker in pool:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


@dataclass
class _Process:
    process: BaseProcess
    connection: Connection
    job: int | None = None
    is_ready: bool = True

    def give(self, number: int, job: Any) -> None:
        self.job = number
        with suppress(OSError):  # it died, which `hear` will notice
            self.connection.send((number, job))

    def hear(self) -> News | None:
        try:
            news: News = self.connection.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            ended = f"Its process ended with {self.process.exitcode}"
            raise WorkerDiedError(ended) from error
        if news.is_over:
            self.job = None
        return news


@contextmanager
def one_thread_per_process() -> Iterator[None]:
    """Ask libraries that count threads when they are imported for one; NumPy's among them."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)


def _serve(connection: Connection, work: Work) -> None:
    """Do jobs until there are no more; the parent alone answers to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unlike a plain end, it cleans up
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  its bars would write over the parent's
    while True:
        try:
            number, job = connection.recv()
            connection.send(do(work, number, job, report=connection.send))
        except (EOFError, BrokenPipeError):  # the parent is gone
            return
