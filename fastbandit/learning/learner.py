"""The learner: reads the log as it grows, and publishes a version whenever one is due."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from fastbandit.bandit import Bandit
from fastbandit.config import Config
from fastbandit.errors import FastbanditError
from fastbandit.events import ArmsChanged, DecisionMade, Event, EventLog
from fastbandit.learning.auditing import is_plain, served_qualities
from fastbandit.learning.first import publish_first
from fastbandit.learning.joining import Joiner
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.learning.update import Lesson, held_out_of, publish, refusal, train
from fastbandit.storage.snapshot_store import Cut, Reached, Snapshot, SnapshotStore, nothing_more
from fastbandit.storage.sqlite_log import SqliteLog

_POLL_SECONDS = 0.2
_PAUSES = (1.0, 60.0)  # after a failure, the first and the longest
_AUDITED_AT_ONCE = 16
_READ = 10_000


@dataclass(frozen=True)
class Step:
    """What a step of the learner did; `version` is the one served after it."""

    did: Literal["waited", "published", "refused"]
    version: int | None
    reason: str = ""


class Learner:
    """Learns from the log in a config's data folder into the snapshots there.

    `reached` is told each step of making a version, once it is done.
    """

    def __init__(self, config: Config, *, reached: Reached = nothing_more) -> None:
        learn = config.learn
        self._config, self._reached = config, reached
        self._folder = Path(config.server.data_dir)
        self._store = SnapshotStore(self._folder / "snapshots")
        self._schedule = Schedule(learn.fresh, learn.growth, learn.seconds)
        self._log: EventLog | None = None
        self._place: _Place | None = None
        self._audits: _Audits | None = None
        self._seconds = 0.0
