"""Workers that are processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from fastbandit.cluster.local_engine import LocalEngine, one_thread_per_process


def add(job: int, *, report: Callable[[int], None]) -> int:
    report(7)
    return job + 1


def threads(job: int, *, report: Callable[[int], None]) -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def test_a_local_worker_reports_its_steps() -> None:
    news = list(LocalEngine(1).run(add, [1, 2]))

    assert [(one.job, one.steps) for one in news if not one.is_over] == [(0, 7), (1, 7)]
    assert [one.result for one in news if one.is_over] == [2, 3]


def test_a_local_worker_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    (news,) = LocalEngine(1).run(threads, [0])

    assert news.result == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_settings_of_threads_are_as_before_after_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)

    with one_thread_per_process():
        assert os.environ["MKL_NUM_THREADS"] == "1"

    assert "MKL_NUM_THREADS" not in os.environ
