"""The learner beside a service: a process that is started again whenever it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from msgspec import json

from fastbandit.errors import SettingError
from fastbandit.files.atomic import mark_of
from fastbandit.learning.arm_file import check_arm_file
from fastbandit.learning.learner_report import REPORT, aged, stands_still
from fastbandit.serving.metrics import Metrics
from fastbandit.serving.schemas import Reason
from fastbandit.settings.service import Config, all_settings
from fastbandit.storage.data_folder import CHECKPOINTS
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.standing_requests import DELETION_FILE

_LOGGER = logging.getLogger("fastbandit.serving")
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LONGEST_OF_WORKING = 2.0  # one that had begun to work goes on with what it began
MEND = "Mend it; the learner tries again."
_REFUSALS = 3  # versions refused in a row that are a problem
_RETAIN_SECONDS, _LOOK_SECONDS = 3600.0, 1.0
BEHIND = "learner behind"
_LEAST_LAG, _LATE = 30.0, 3.0  # so many seconds, or times the last training, are too late


class LearnerProcess:
    """Runs `command` with the settings of a config, None for no learner here.

    `leader` returns what the learner that leads all machines says, nothing where none has.
    """

    def __init__(
        self,
        config: Config,
        command: Sequence[str] | None,
        *,
        metrics: Metrics,
        leader: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._config, self._metrics, self._leader = config, metrics, leader
        self._command = None if command is None else list(command)
        self._process: asyncio.subprocess.Process | None = None
        folder = Path(config.server.data_dir)
        self._report, self._checkpoints = folder / REPORT, folder / CHECKPOINTS

    @property
    def is_wanted(self) -> bool:
        """Whether one should run here."""
        return self._command is not None

    @property
    def is_down(self) -> bool:
        """Whether one should run here, and does not."""
        is_running = self._process is not None and self._process.returncode is None
        return self.is_wanted and not is_running

    def problems(self, refusals: Sequence[str]) -> list[Reason]:
        """Return why what serves gets old: it does not learn, or versions are refused or late."""
        found, state = [], self.state()
        if self.is_down:
            fix = "It is started again; see logs."
            found.append(Reason("learner", "The learner is not running.", fix))
        if state.get("state") == "failed":
            found.append(Reason("learner", str(state.get("error")), MEND))
        if len(refusals) >= _REFUSALS:
            text = f"{len(refusals)} versions were refused in a row, the last because: "
            fix = "See fastbandit snapshots; the version in service goes on until one passes."
            found.append(Reason("refused", text + refusals[-1], fix))
        return found + self._lateness(state)

    def _lateness(self, state: dict[str, Any]) -> list[Reason]:
        """Return that a version is late: training cannot keep up, or stands still."""
        lag, limit = float(state.get("lag_seconds") or 0.0), self.lag_limit(state)
        if lag <= limit:
            return []
        took, is_still = state.get("seconds"), self._stands_still(state)
        text = f"A version has been due for {lag:.0f} s, more than {limit:.0f} s"
        text += "; its training stands still" if is_still else ""
        text += "." if took is None else f"; the last training took {took:.0f} s."
        fix = "Give the learner more cores, train for fewer steps, or raise learn.seconds."
        fix = "End its process; it is started again, and goes on." if is_still else fix
        return [Reason(BEHIND, text, fix)]

    def state(self) -> dict[str, Any]:
        """Return what the learner reports of itself; a version that is due gets later meanwhile.

        On many machines that is the one that leads, unless the one here failed.
        """
        state: dict[str, Any] = {}
        with suppress(OSError, ValueError, TypeError, LookupError):
            state = aged(json.decode(self._report.read_bytes()))
        leader = self._leader()
        return aged(leader) if leader and state.get("state") != "failed" else state

    def lag_limit(self, state: dict[str, Any]) -> float:
        """Return for how many seconds a version may be due before that is a problem.

        A training that goes on may take as long as is usual; one that stands still, no longer.
        """
        took = 0.0 if self._stands_still(state) else float(state.get("seconds") or 0.0)
        return max(_LEAST_LAG, _LATE * took)

    def _stands_still(self, state: dict[str, Any]) -> bool:
        return bool(state.get("stands_still")) or stands_still(self._checkpoints)

    async def keep_running(self) -> None:
        """Start it, and start it again when it ends, ever more slowly where it does not work.

        Kills cannot keep one that works from working: what it began is resumed within seconds.
        """
        assert self._command is not None
        with suppress(OSError):  # what an earlier one reported is over
            self._report.unlink()
        pause = _PAUSE
        while True:
            began, reported = time.monotonic(), self._reported_at()
            self._metrics.learner_starts += 1
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                env=environment_of(self._config),
            )
            status = await self._process.wait()
            name = signal.Signals(-status).name if status < 0 else str(status)
            _LOGGER.error("the learner ended", extra={"status": name})
            has_worked = self._reported_at() != reported and self.state().get("state") != "failed"
            longest = _LONGEST_OF_WORKING if has_worked else _LONGEST_PAUSE
            pause = _PAUSE if time.monotonic() - began > 60 else min(2 * pause, longest)
            await asyncio.sleep(pause)

    def _reported_at(self) -> int:
        """Return when a learner wrote its report last, in nanoseconds; 0 for never."""
        try:
            return self._report.stat().st_mtime_ns
        except OSError:
            return 0

    def restart(self, config: Config) -> None:
        """End it, so that it is started again with other settings."""
        self._config = config
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()


def check_startup(config: Config) -> None:
    """Raise what the learner would raise of a preset or a file of arms that it cannot start with.

    Where there is a snapshot, here or perhaps with others, neither is needed.
    """
    if config.log.url or SnapshotStore(Path(config.server.data_dir) / "snapshots").versions():
        return
    preset = config.select.preset
    if preset.endswith(".toml") and not Path(preset).is_file():
        raise SettingError(
            f"A preset needs to be a file that exists, or a name: found none at {preset}. Correct "
            f"select.preset."
        )
    if config.arms.file:
        check_arm_file(config.arms)


def learner_command() -> list[str]:
    """Return the command that runs a learner of this process, with settings in its environment."""
    return [sys.executable, "-m", "fastbandit", "learn", "--parent", str(os.getpid())]


async def keep_retaining(config: Config, *, is_regular: bool = True) -> None:
    """Let old days leave the log, now and every hour, in a process of its own.

    The same deletes what a client asked to delete, soon after; where it is not regular, only that.
    """
    command = [sys.executable, "-m", "fastbandit", "retain", "--json"]
    asked, tried = Path(config.server.data_dir) / DELETION_FILE, -inf
    seen: tuple[int, int] | None = None
    while True:
        found, is_due = mark_of(asked), time.monotonic() - tried >= _RETAIN_SECONDS
        if found in (None, seen) and not (is_due and (is_regular or found)):
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        seen, tried = found, time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment_of(config),
        )
        try:
            said, error = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        if process.returncode:
            reason = error.decode(errors="replace").strip()[-500:]
            _LOGGER.error("days could not leave the log", extra={"reason": reason})
        else:
            left = json.decode(said)
            if left["days"]:
                _LOGGER.info("days left the log", extra={"days": left["days"], **left["counts"]})
            if any(any(counts.values()) for counts in left["dropped"].values()):
                _LOGGER.info("values left the log", extra={"dropped": left["dropped"]})
            if any(left["deleted"].values()):
                _LOGGER.info("events were deleted as asked", extra=left["deleted"])


def environment_of(config: Config) -> dict[str, str]:
    """Return this process's environment, with all settings in it: a child reads the same config."""
    settings = {
        setting.variable: _written(getattr(getattr(config, setting.section), setting.key))
        for setting in all_settings()
    }
    return {**os.environ, **settings}


def _written(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        value = dict(value)  # numbers by name, as a table is read
    return value if isinstance(value, str) else json.encode(value).decode()
