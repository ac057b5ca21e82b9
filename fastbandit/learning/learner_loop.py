"""Runs a learner until it is stopped."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from fastbandit.errors import FastbanditError, LogUnavailableError
from fastbandit.files.locks import locking
from fastbandit.files.private import make_private
from fastbandit.learning.backlog import JoinRange
from fastbandit.learning.candidates import Train
from fastbandit.learning.deltas import Deltas
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import Reached, nothing_more

_LOGGER = logging.getLogger("fastbandit.learning")
_POLL_SECONDS = 0.2
_LEASE_SECONDS = 2.0
_LOOK_SECONDS = 0.1  # for a version, whose first delta must not be late
_LAST_SECONDS = 5.0  # for a delta that is under way
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


def run_learner(
    config: Config,
    *,
    reached: Reached = nothing_more,
    once: bool = False,
    train: Train | None = None,
    join: JoinRange | None = None,
) -> None:
    """Learn as the log grows; with `once`, make what is due now and return.

    One learner at a time works on a data folder, and on a log: another waits. SIGTERM ends it
    at any moment; what it had not published is made again, just so, by the next. What it did is
    logged, and why it fails, each reason once until it works again.
    """
    torch.set_num_threads(1)  # sums of several threads may differ in their last digits
    folder = Path(config.server.data_dir)
    make_private(folder)
    with _ending_on_sigterm(), locking(folder / "learner.lock"):
        learner, pause = Learner(config, reached=reached, train=train, join=join), _FIRST_PAUSE
        failures = _Failures()
        while True:
            began = time.monotonic()
            try:
                while not learner.acquire_lease():
                    time.sleep(_LEASE_SECONDS)
                learner.start()
                with _publishing_deltas(config, learner, is_wanted=not once):
                    _work(learner, failures, once=once)
                learner.close()
                return
            except Exception as error:
                reason = " ".join(str(error).split())
                learner.report("failed", error=reason)
                if once or not isinstance(error, FastbanditError):
                    raise
                failures.log(reason)
                if (
                    isinstance(error, LogUnavailableError)
                    or time.monotonic() - began > _LONGEST_PAUSE
                ):
                    pause = _FIRST_PAUSE  # it is back any moment, or all went well for a while
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class _Failures:
    """Logs why a learner fails; the same reason again only after it worked."""

    def __init__(self, message: str = "the learner failed") -> None:
        self._message, self._last = message, ""

    def log(self, reason: str) -> None:
        if reason != self._last:
            _LOGGER.error(self._message, extra={"reason": reason})
        self._last = reason

    def forget(self) -> None:
        self._last = ""


def _work(learner: Learner, failures: _Failures, *, once: bool) -> None:
    while True:
        step = learner.step()
        failures.forget()
        if step.did != "waited":
            _LOGGER.info(step.did, extra={"version": step.version, "reason": step.reason})
            continue
        if once:
            return
        learner.audit()
        time.sleep(_POLL_SECONDS)


@contextmanager
def _publishing_deltas(config: Config, learner: Learner, *, is_wanted: bool) -> Iterator[None]:
    """Publish deltas in a thread of its own: they go on while a version is trained."""
    if not (is_wanted and config.learn.delta_seconds):
        yield
        return
    is_over = threading.Event()
    thread = threading.Thread(target=_publish_deltas, args=(config, learner, is_over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_LAST_SECONDS)


def _publish_deltas(config: Config, learner: Learner, is_over: threading.Event) -> None:
    torch.set_num_threads(1)
    seconds, failures = config.learn.delta_seconds, _Failures("deltas failed")
    deltas, due = Deltas(config, known=learner.bandit_of), time.monotonic()
    while not is_over.wait(min(_LOOK_SECONDS, seconds)):
        if time.monotonic() < due and not deltas.is_behind:
            continue
        due = time.monotonic() + seconds
        try:
            deltas.step()
            failures.forget()
        except Exception as error:  # whatever it is, versions come all the same
            failures.log(f"{type(error).__name__}: {' '.join(str(error).split())}")
    deltas.close()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        sys.exit(0)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
