"""Runs a learner until it is told to stop."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import torch

from fastbandit.config import Config
from fastbandit.errors import FastbanditError, LogAwayError
from fastbandit.learning.catching_up import Join
from fastbandit.learning.learner import Learner
from fastbandit.learning.update import Teach, teach_here
from fastbandit.storage.snapshot_store import Reached, nothing_more

_POLL_SECONDS = 0.2
_TURN_SECONDS = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


def run_learner(
    config: Config,
    *,
    reached: Reached = nothing_more,
    once: bool = False,
    teach: Teach = teach_here,
    join: Join | None = None,
) -> None:
    """Learn as the log grows; with `once`, make what is due now and return.

    One learner at a time works on a data folder, and on a log: another waits. SIGTERM ends it
    at any moment; what it had not published is made again, and just so, by the next.
    """
    torch.set_num_threads(1)  # sums of several threads may differ in their last digits
    folder = Path(config.server.data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    with _ending(), _alone(folder / "learner.lock"):
        learner, pause = Learner(config, reached=reached, teach=teach, join=join), _FIRST_PAUSE
        while True:
            began = time.monotonic()
            try:
                while not learner.take_turn():
                    time.sleep(_TURN_SECONDS)
                learner.start()
                _work(learner, once=once)
                return
            except Exception as error:
                learner.tell("failed", error=" ".join(str(error).split()))
                if once or not isinstance(error, FastbanditError):
                    raise
                if isinstance(error, LogAwayError) or time.monotonic() - began > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE  # it is back any moment, or all went well for a while
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _work(learner: Learner, *, once: bool) -> None:
    while True:
        if learner.step().did != "waited":
            continue
        if once:
            return
        learner.audit()
        time.sleep(_POLL_SECONDS)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other learner works on the folder."""
    with path.open("w") as file:
        flock(file, LOCK_EX)
        yield


@contextmanager
def _ending() -> Iterator[None]:
    """Turn SIGTERM into an end of this process that tidies up."""

    def end(number: int, frame: Any) -> None:
        sys.exit(0)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
