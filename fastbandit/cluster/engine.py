"""The role of an engine: it does jobs on workers; one that fails or dies takes no other with it."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from fastbandit.cores import cores
from fastbandit.declaration import known_name
from fastbandit.errors import FastbanditError, SettingError

ENGINES = ("local", "ray")
TRIES = 3
"""A job whose worker died is given to another, up to so many workers in all."""
_FEWER = "Memory may have run out: use fewer workers."

Work = Callable[..., Any]
"""Called with a job, and with `report`, which takes the steps done so far.

Each worker has a copy of its own for all its jobs: what is dear to make (a bandit mapped into
memory) is made once for each worker. It has to be a function of a module, or an
object of a class of one.
"""


@dataclass(frozen=True)
class News:
    """News of a job: the steps it has done, and at its end its result or what went wrong."""

    job: int
    steps: int = 0
    is_over: bool = False
    result: Any = None
    error: str | None = None


@runtime_checkable
class Engine(Protocol):
    """Does jobs on so many workers, of one thread each."""

    @property
    def workers(self) -> int: ...

    def run(self, work: Work, jobs: Sequence[Any]) -> Generator[News, None, None]:
        """Start jobs in order, and yield news as it comes; whoever stops listening stops them."""

    def close(self) -> None:
        """Let go of what was started for it."""


def make_engine(name: str, *, workers: int | None = None, address: str | None = None) -> Engine:
    """Return an engine by its name; without a number of workers, one for each core there is."""
    known_name("engine", name, ENGINES)
    if workers is not None and workers < 1:
        raise SettingError(f"An engine needs at least 1 worker: got {workers}. Use 1 or more.")
    if name == "ray":
        from fastbandit.cluster.ray_engine import RayEngine

        return RayEngine(address=address, workers=workers)
    if address is not None:
        raise SettingError(
            f"An address needs the engine ray: got {address!r} for the engine {name}. Add "
            f"--engine ray, or leave the address out."
        )
    from fastbandit.cluster.local_engine import LocalEngine

    return LocalEngine(workers or cores())


@contextmanager
def engine_for(
    name: str, *, workers: int | None = None, address: str | None = None
) -> Iterator[Engine]:
    """Make an engine for a command that prints its result afterwards.

    Ray prints what its workers died of wherever results go: meanwhile that is standard error.
    """
    with (
        redirect_stdout(sys.stderr),
        closing(make_engine(name, workers=workers, address=address)) as engine,
    ):
        yield engine


@dataclass(frozen=True)
class SerialEngine:
    """Does one job after the other in this process: for small work, and for notebooks."""

    workers: int = 1

    def run(self, work: Work, jobs: Sequence[Any]) -> Generator[News, None, None]:
        """Do jobs in order; the steps that a job reports are not passed on."""
        for number, job in enumerate(jobs):
            yield do(work, number, job)

    def close(self) -> None:
        """Do nothing: nothing was started."""


def do(work: Work, number: int, job: Any, *, report: Callable[[News], None] | None = None) -> News:

    def report_steps(steps: int) -> None:
        if report is not None:
            report(News(number, steps))

    try:
        result = work(job, report=report_steps)
    except Exception as error:
        return News(number, is_over=True, error=describe_error(error))
    return News(number, is_over=True, result=result)


def describe_error(error: Exception) -> str:
    """Return the text of an error in one line; one that was not raised on purpose with its line."""
    text = " ".join(str(error).split())
    if isinstance(error, FastbanditError):
        return text
    if isinstance(error, MemoryError):
        return "This needs more memory than there is."
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"


class WorkerDiedError(Exception):
    """A worker ended too early; the text says how."""


class Worker(Protocol):
    """A process somewhere that does one job at a time; `job` is None while it does none."""

    job: int | None
    is_ready: bool

    def give(self, number: int, job: Any) -> None:
        """Let it start a job."""

    def hear(self) -> News | None:
        """Return its news, None where it only is ready; raise WorkerDiedError if it died."""


_Kind = TypeVar("_Kind", bound=Worker)


class WorkerPool(Protocol, Generic[_Kind]):
    """How workers of a kind are started, heard and stopped."""

    def start(self, work: Any) -> _Kind: ...

    def listen(self, pool: Sequence[_Kind]) -> list[_Kind]:
        """Wait until some of them have news."""

    def stop(self, pool: Sequence[_Kind]) -> None:
        """End them, whatever they do."""


def spread(
    pool: WorkerPool[_Kind], work: Any, jobs: Sequence[Any], *, workers: int
) -> Generator[News, None, None]:
    """Do jobs on the workers of a pool; a job whose worker died starts again on another."""
    waiting = list(range(len(jobs)))[::-1]
    deaths: Counter[int] = Counter()
    started: list[_Kind] = []
    stillborn = 0
    try:
        while waiting or any(worker.job is not None for worker in started):
            idle = sum(worker.job is None for worker in started)
            for _ in range(min(workers - len(started), len(waiting) - idle)):
                started.append(pool.start(work))
            for worker in started:
                if waiting and worker.is_ready and worker.job is None:
                    number = waiting.pop()
                    worker.give(number, jobs[number])
            for worker in pool.listen(started):
                try:
                    news, stillborn = worker.hear(), 0
                except WorkerDiedError as died:
                    started.remove(worker)
                    pool.stop([worker])
                    stillborn += not worker.is_ready
                    if stillborn == TRIES * workers:
                        raise FastbanditError(
                            f"Jobs need workers that start: one after the other died before it "
                            f"could do anything ({died}). {_FEWER}"
                        ) from died
                    news = None
                    if worker.job is not None:
                        deaths[worker.job] += 1
                        if deaths[worker.job] < TRIES:
                            waiting.append(worker.job)
                        else:
                            often = f"{died} ({TRIES} times). {_FEWER}"
                            news = News(worker.job, is_over=True, error=often)
                if news is not None:
                    yield news
    finally:
        pool.stop(started)
