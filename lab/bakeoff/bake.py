"""Runs of the bake-off: each made once, in a time limit; what fails takes nothing with it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastbandit.cluster.engine import Engine, describe_error
from fastbandit.cores import one_thread
from fastbandit.errors import MissingExtraError
from fastbandit.progress import Progress, silent
from lab.bakeoff.play import Agent, play
from lab.bakeoff.results import GROUP, Key, notes_of, read_result, write
from lab.bakeoff.sets import Set, Setting
from lab.bakeoff.systems import System
from lab.experiments.kept import keep_rows, not_kept, read_rows
from lab.experiments.results import code_commit

_LOOK_SECONDS = 0.2

Measure = Callable[[Agent, Setting], Mapping[str, Any]]
"""Measures more of an agent that has played."""


def measure_nothing(agent: Agent, setting: Setting) -> Mapping[str, Any]:
    """Return nothing more than what was played."""
    return {}


@dataclass(frozen=True)
class Job:
    """One run: a set, a system and a seed."""

    set: Set
    system: System
    seed: int

    @property
    def key(self) -> Key:
        entry = self.set
        return Key(entry.name, entry.rounds, entry.batch, self.system.name, self.seed)


class _TimeUpError(BaseException):
    """Ends a run that takes too long; no exception, which a library might swallow."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise where what is inside takes the processor longer; for the main thread alone.

    The clock is looked at now and then: a timer of the processor's time would make Linux count that
    in steps of milliseconds, for `time.process_time`, too.
    """
    latest = time.process_time() + seconds

    def look(*_: Any) -> None:
        if time.process_time() > latest:
            raise _TimeUpError

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Baker:
    """Makes runs and writes their results; keeps the last setting, which many systems share.

    A set that cannot be loaded, and a library that is not installed, leave no result: they may come
    later. Any other failure, of making an agent or of playing, is a result. `commit` is that of the
    code when it began: files may change while many runs are made.
    """

    folder: Path
    data: Path | None
    most_seconds: float
    measure: Measure = measure_nothing
    commit: str | None = field(default_factory=lambda: code_commit())
    _last: tuple[tuple[str, int], Setting] | None = field(default=None, init=False)

    def __call__(self, job: Job, *, report: Callable[[int], None]) -> dict[str, Any]:
        """Make one run, and return its result, or only why it cannot be made here ("missing")."""
        one_thread()
        try:
            setting = self._setting(job)
        except Exception as error:
            return {"missing": describe_error(error)}
        started = time.perf_counter()
        found: dict[str, Any] = {"arms": setting.environment.size}
        rounds = min(job.set.rounds, setting.environment.rounds or job.set.rounds)
        try:
            with at_most(self.most_seconds):
                agent = job.system.make(setting.environment, job.seed, rounds)
                played = play(
                    setting, agent, rounds=rounds, batch=job.set.batch, after_batch=report
                )
                more = self.measure(agent, setting)
            found |= {**notes_of(played, batch=job.set.batch), **more}
        except (ModuleNotFoundError, MissingExtraError) as error:
            return {"missing": describe_error(error)}
        except _TimeUpError:
            found["error"] = f"It took more than {self.most_seconds:g} s of the processor."
        except Exception as error:
            found["error"] = describe_error(error)
        found["seconds"] = time.perf_counter() - started
        return write(job.key.path(self.folder), job.key, found, commit=self.commit)

    def _setting(self, job: Job) -> Setting:
        name = (job.set.name, job.seed)
        if self._last is None or self._last[0] != name:
            self._last = None  # let go of one before the next is made
            self._last = (name, job.set.load(self.data, job.seed))
        return self._last[1]


def jobs_of(sets: Sequence[Set], systems: Sequence[System], seeds: int) -> list[Job]:
    """List the runs, those of one setting next to each other."""
    ordered = sorted(sets, key=lambda entry: [other.name for other in sets].index(entry.name))
    names = list(dict.fromkeys(entry.name for entry in ordered))
    return [
        Job(entry, system, seed)
        for name in names
        for seed in range(seeds)
        for entry in ordered
        if entry.name == name
        for system in systems
        if system.sets is None or name in system.sets
    ]


def bake(
    jobs: Sequence[Job],
    folder: Path,
    *,
    engine: Engine,
    data: Path | None = None,
    most_seconds: float = 600.0,
    is_retried: bool = False,
    measure: Measure = measure_nothing,
    keep: Path | None = None,
    progress: Progress = silent,
) -> tuple[list[dict[str, Any]], list[tuple[Job, str]]]:
    """Make the runs that are not there yet; return all results, and what could not be tried.

    With `is_retried` those that failed before are made again. With `keep` a run that has a row
    there is not made, and each new one is added to it as soon as it is made.
    """
    jobs = not_kept(keep, jobs, key_of=lambda job: job.key, is_retried=is_retried)
    made = {number: _made(job, folder, is_retried) for number, job in enumerate(jobs)}
    todo = [number for number, result in made.items() if result is None]
    missing: list[tuple[Job, str]] = []
    steps = dict.fromkeys(todo, 0)
    total = sum(jobs[number].set.rounds for number in todo)
    baker = Baker(folder.resolve(), data and data.resolve(), most_seconds, measure)
    keep_rows(keep, [result for result in made.values() if result is not None])
    with closing(engine.run(baker, [jobs[number] for number in todo])) as news:
        for item in news:
            number = todo[item.job]
            job = jobs[number]
            steps[number] = job.set.rounds if item.is_over else item.steps
            progress(sum(steps.values()), total, f"{job.system.name} on {job.set.name}")
            if item.error is not None:  # its process died
                found = {"arms": None, "error": item.error, "seconds": None}
                made[number] = write(job.key.path(folder), job.key, found, commit=baker.commit)
            elif item.is_over and "missing" in item.result:
                missing.append((job, item.result["missing"]))
            elif item.is_over:
                made[number] = item.result
            if item.is_over and (result := made[number]) is not None:
                keep_rows(keep, [result])
    return [result for result in made.values() if result is not None], missing


def kept_results(
    keep: Path, sets: Sequence[Set], systems: Sequence[System]
) -> list[dict[str, Any]]:
    """Return the rows of a file for all seeds of sets and systems."""
    asked = {(e.name, e.rounds, e.batch, system.name) for e in sets for system in systems}
    rows = read_rows(keep) if keep.exists() else []
    return [row for row in rows if tuple(row.get(name) for name in GROUP) in asked]


def _made(job: Job, folder: Path, is_retried: bool) -> dict[str, Any] | None:
    """Return the result of an earlier run; None where there is none, or one to try again."""
    path = job.key.path(folder)
    if not path.exists():
        return None
    result = read_result(path)
    return None if is_retried and result["error"] is not None else result
