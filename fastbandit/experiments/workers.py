"""Jobs in processes of their own: one that fails or dies takes no other with it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fastbandit.errors import FastbanditError
from fastbandit.experiments.run import one_thread

Work = Callable[..., Any]
"""Called with a job, and with `after_batch` to be told the steps done so far."""

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


@dataclass(frozen=True)
class Event:
    """News of a job: the steps it has done, and at its end its result or what went wrong."""

    job: int
    steps: int = 0
    is_over: bool = False
    result: Any = None
    error: str | None = None


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    job: int = -1

    def give(self, number: int, job: Any) -> None:
        self.job = number
        self.connection.send((number, job))

    def hear(self) -> Event:
        try:
            event: Event = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            ended = f"Its process ended with {self.process.exitcode}; memory may have run out."
            return Event(self.job, is_over=True, error=ended)
        return event

    def stop(self) -> None:
        self.process.terminate()
        self.connection.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def run_apart(work: Work, jobs: Sequence[Any], *, workers: int) -> Generator[Event, None, None]:
    """Run jobs in order, `workers` at a time, in processes of one thread; give news as it comes.

    Whoever stops listening stops the jobs.
    """
    waiting = list(enumerate(jobs))[::-1]
    crew: dict[Connection, _Worker] = {}
    try:
        while waiting or crew:
            while waiting and len(crew) < workers:
                worker = _start(work)
                crew[worker.connection] = worker
                worker.give(*waiting.pop())
            for connection in wait(list(crew)):
                worker = crew[connection]  # type: ignore[index]
                event = worker.hear()
                yield event
                if event.is_over and waiting and worker.process.is_alive():
                    worker.give(*waiting.pop())
                elif event.is_over:
                    del crew[worker.connection]
                    worker.stop()
    finally:
        for worker in crew.values():  # all at once, then one by one
            worker.process.terminate()
        for worker in crew.values():
            worker.stop()


def _start(work: Work) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    with one_thread_asked():
        process.start()
    there.close()
    return _Worker(process, here)


@contextmanager
def one_thread_asked() -> Iterator[None]:
    """Ask libraries that count threads when they are imported for one; NumPy's among them."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, work: Work) -> None:
    """Do jobs until there are no more; the parent alone answers to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unlike a plain end, it cleans up
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  its bars would write over the parent's
    one_thread()
    while True:
        try:
            number, job = connection.recv()
        except EOFError:
            return
        connection.send(_do(work, number, job, tell=connection.send))


def _do(work: Work, number: int, job: Any, *, tell: Callable[[Event], None]) -> Event:
    try:
        result = work(job, after_batch=lambda steps: tell(Event(number, steps)))
    except Exception as error:
        return Event(number, is_over=True, error=word_error(error))
    return Event(number, is_over=True, result=result)


def word_error(error: Exception) -> str:
    """Word an error in one line; one that nobody raised on purpose with its place."""
    words = " ".join(str(error).split())
    if isinstance(error, FastbanditError):
        return words
    if isinstance(error, MemoryError):
        return "This needs more memory than there is."
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words} ({Path(frame.filename).name}, line {frame.lineno})"
