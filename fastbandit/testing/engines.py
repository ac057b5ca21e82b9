"""The contract of engines: what each must do, wherever its workers run.

Call `check_engine` on your own. The docstring of each law is what it holds an engine to.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from fastbandit.cluster.engine import Engine, News
from fastbandit.errors import SettingError
from fastbandit.testing.laws import need

_LONG = 600.0  # seconds of a job that is not waited for
_SOON = 60.0


class Chores:
    """Work that does what a job names, and counts the jobs that its process did."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.done = folder, 0

    def __call__(self, job: tuple[str, Any], *, report: Callable[[int], None]) -> Any:
        """Do a chore: the name of a method, and its argument."""
        report(1)
        self.done += 1
        name, argument = job
        return getattr(self, name)(argument)

    def double(self, number: int) -> int:
        return 2 * number

    def count(self, _: Any) -> tuple[int, int]:
        """Return the process, and how many jobs it did."""
        time.sleep(0.02)
        return os.getpid(), self.done

    def reject(self, found: str) -> None:
        """Raise an error on purpose, of two lines."""
        raise SettingError(f"It needs this:\ngot {found}.")

    def divide(self, number: int) -> float:
        return number / 0

    def die_once(self, name: str) -> str:
        """Kill the process that does it, unless that was done before."""
        mark = self.folder / name
        if not mark.exists():
            mark.touch()
            self.die(name)
        return name

    def die(self, _: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def wait(self, name: str) -> None:
        """Note the process, and do nothing for long."""
        (self.folder / name).symlink_to(str(os.getpid()))  # which appears at once or not at all
        time.sleep(_LONG)

    def see(self, name: str) -> int:
        """Wait until a process was noted, and return it."""
        _wait_until((self.folder / name).is_symlink)
        return int(os.readlink(self.folder / name))


def check_engine(engine: Engine, folder: Path) -> None:
    """An engine keeps every law; `folder` is an empty one that its workers reach."""
    for law in LAWS:
        law(engine, folder)


def check_results(engine: Engine, folder: Path) -> None:
    """Each job is done once, and its result comes with its number."""
    need(isinstance(engine, Engine), f"{type(engine).__name__} lacks a method of Engine")
    need(engine.workers >= 1, f"an engine has workers: {engine.workers}")
    over = list(_over(engine, folder, [("double", number) for number in range(20)]))
    found = sorted((news.job, news.result) for news in over)
    need(found == [(number, 2 * number) for number in range(20)], f"20 doubles: {found}")


def check_nothing(engine: Engine, folder: Path) -> None:
    """No jobs, no news."""
    need(list(engine.run(Chores(folder), [])) == [], "news of no jobs")


def check_errors(engine: Engine, folder: Path) -> None:
    """The error of a job that fails is one line, and takes no other job with it."""
    over = _by_job(engine, folder, [("reject", "that"), ("divide", 1), ("double", 4)])
    need(over[0].error == "It needs this: got that.", f"an error on purpose: {over[0]}")
    said = str(over[1].error)
    wanted = f"ZeroDivisionError: division by zero ({Path(__file__).name}"
    need(said.startswith(wanted), said)
    need(over[2].error is None and over[2].result == 8, f"the job after: {over[2]}")


def check_memory(engine: Engine, folder: Path) -> None:
    """A worker has one copy of the work for all its jobs."""
    over = _by_job(engine, folder, [("count", None)] * 12)
    often: dict[int, int] = {}
    for process, done in (news.result for news in over):
        often[process] = max(often.get(process, 0), done)
    need(len(often) <= engine.workers, f"{engine.workers} workers were {len(often)}")
    need(sum(often.values()) == 12, f"jobs by process: {often}")


def check_death(engine: Engine, folder: Path) -> None:
    """A job whose worker died is done by another; those done before are not done again."""
    jobs = [("double", 1), ("die_once", "once"), *[("double", number) for number in range(6)]]
    over = list(_over(engine, folder, jobs))
    need(sorted(news.job for news in over) == list(range(8)), f"news of {over}")
    need(all(news.error is None for news in over), f"errors in {over}")


def check_deaths(engine: Engine, folder: Path) -> None:
    """A job that kills each of its workers is given up, and the others are done."""
    over = _by_job(engine, folder, [("die", None), *[("double", 1)] * 4])
    need("times" in str(over[0].error), f"a job that kills: {over[0]}")
    need([news.result for news in over[1:]] == [2] * 4, f"the jobs after: {over[1:]}")


def check_stop(engine: Engine, folder: Path) -> None:
    """Whoever stops listening stops the jobs (seen with two workers or more)."""
    news = engine.run(Chores(folder), [("wait", "waiting"), ("see", "waiting")])
    process = next(one.result for one in news if one.is_over)
    news.close()
    _wait_until(lambda: not _is_running(process))


def _over(engine: Engine, folder: Path, jobs: list[tuple[str, Any]]) -> Iterator[News]:
    with closing(engine.run(Chores(folder), jobs)) as news:
        yield from (one for one in news if one.is_over)


def _by_job(engine: Engine, folder: Path, jobs: list[tuple[str, Any]]) -> list[News]:
    return sorted(_over(engine, folder, jobs), key=lambda news: news.job)


def _is_running(process: int) -> bool:
    """Return whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def _wait_until(is_so: Callable[[], bool]) -> None:
    late = time.monotonic() + _SOON
    while not is_so():
        need(time.monotonic() < late, f"{_SOON:g} s went by in vain")
        time.sleep(0.02)


LAWS: tuple[Callable[[Engine, Path], None], ...] = (
    check_results,
    check_nothing,
    check_errors,
    check_memory,
    check_death,
    check_deaths,
    check_stop,
)
"""What any engine must do; the last three need workers that are processes of their own."""
