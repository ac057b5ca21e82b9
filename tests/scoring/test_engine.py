"""Engines: workers that die, jobs that fail, and how an engine is made by its name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from fastbandit.cluster.engine import (
    News,
    SerialEngine,
    WorkerDiedError,
    engine_for,
    make_engine,
    spread,
)
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.cores import cores
from fastbandit.errors import FastbanditError, SettingError


class Stillborn:
    """A pool whose first workers die before they can do anything, so many of them."""

    def __init__(self, deaths: int) -> None:
        self.deaths, self.started = deaths, 0

    def start(self, work: Any) -> Starting:
        self.started += 1
        return Starting(dies=self.started <= self.deaths)

    def listen(self, pool: Sequence[Starting]) -> list[Starting]:
        return list(pool)

    def stop(self, pool: Sequence[Starting]) -> None:
        pass


@dataclass(eq=False)
class Starting:
    """A worker that dies before it is ready, or does its job."""

    dies: bool
    job: int | None = None
    is_ready: bool = False

    def give(self, number: int, job: Any) -> None:
        self.job = number

    def hear(self) -> News | None:
        if self.dies:
            raise WorkerDiedError("killed")
        self.is_ready, number, self.job = True, self.job, None
        return None if number is None else News(number, is_over=True, result=number)


def test_a_worker_that_dies_while_it_starts_is_replaced() -> None:
    pool = Stillborn(deaths=2)

    news = list(spread(pool, None, ["a", "b"], workers=1))

    assert [one.result for one in news] == [0, 1]
    assert pool.started == 3


def test_workers_that_all_die_while_they_start_are_given_up() -> None:
    with pytest.raises(FastbanditError, match=r"workers that start.*killed.*fewer workers"):
        list(spread(Stillborn(deaths=99), None, ["a"], workers=1))


def test_an_engine_is_made_by_its_name() -> None:
    assert make_engine("local", workers=3) == LocalEngine(3)
    assert make_engine("local").workers == cores()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "spark"}, r"local, ray: got 'spark'"),
        ({"name": "local", "workers": 0}, r"at least 1 worker: got 0"),
        ({"name": "local", "address": "auto"}, r"needs the engine ray: got 'auto'.*--engine ray"),
    ],
)
def test_an_engine_that_cannot_be_is_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make_engine(**settings)  # type: ignore[arg-type]


def test_ray_says_what_to_install_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(ImportError, match=r"pip install 'fastbandit\[cluster\]'"):
        make_engine("ray")


def test_what_is_printed_while_an_engine_works_is_no_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with engine_for("local", workers=1) as engine:
        print("a worker died")
    print("the result")

    assert engine == LocalEngine(1)
    assert capsys.readouterr() == ("the result\n", "a worker died\n")


def double(job: int, *, report: Callable[[int], None]) -> int:
    report(1)
    return 2 * job


def test_a_serial_engine_does_jobs_in_order() -> None:
    news = list(SerialEngine().run(double, [1, 2]))

    assert news == [News(0, is_over=True, result=2), News(1, is_over=True, result=4)]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SettingError("It needs\n  this."), "It needs this."),
        (MemoryError(), "This needs more memory than there is."),
        (ValueError("no room"), r"ValueError: no room (test_engine.py, line "),
    ],
)
def test_an_error_is_described_in_one_line(error: Exception, text: str) -> None:
    def fail(job: int, *, report: Callable[[int], None]) -> None:
        raise error

    (news,) = SerialEngine().run(fail, [1])

    assert str(news.error).startswith(text)
