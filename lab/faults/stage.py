"""A service for campaigns: its folder, its process on this machine, and a connection to ask it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import LogError, ServiceUnavailable
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config, written
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog

HOST = "127.0.0.1"
STEP_SECONDS = 0.01
_PATIENCE_SECONDS = 180.0  # for a start, which no bar of these campaigns is about
_BREAKS = (OSError, HTTPException, ValueError)
_T = TypeVar("_T")
_LITTLE_TRAINING = """\
format = 1
base = "default"

[training.reward]
iterations = 40
batch = 64

[training.generator]
iterations = 40
batch = 64
pairs = 128
sample = 64
"""
_SETTINGS: dict[str, Any] = {
    "reward.kind": "real",
    "learn.min_quality": 0.0,
    "learn.held_out": 0.0,
    "server.log_level": "warning",
}
"""Campaigns judge what is stored and published: no version is refused for its little training."""


class Reply(NamedTuple):
    """An answer over HTTP: its status, its kind, and what it says."""

    status: int
    kind: str
    content: Any


@dataclass(frozen=True)
class Stage:
    """A folder with all that a service needs; its arms are those of a synthetic environment."""

    home: Path
    environment: Synthetic
    port: int

    @property
    def data(self) -> Path:
        """The data folder of the service."""
        return self.home / "data"

    @property
    def journal(self) -> Path:
        """What the service and its learner wrote to stderr."""
        return self.home / "journal.txt"

    @property
    def store(self) -> SnapshotStore:
        """The snapshots of the service."""
        return SnapshotStore(self.data / "snapshots")

    @property
    def config(self) -> Config:
        """The settings of the service."""
        return read_config(self.home / "fastbandit.toml", environ={})

    def start(self, *options: str, command: str = "serve") -> Running:
        """Start the service, or another command, as a process of its own."""
        return Running(self, *options, command=command)

    def events(self) -> list[Event]:
        """Return all that the log holds."""
        log = SqliteLog(self.data / LOG_FILE, is_reader=True)
        try:
            return log.read(limit=2**31)
        finally:
            log.close()

    def decisions(self) -> dict[str, DecisionMade]:
        """Return the decisions in the log by their ids."""
        return {one.id: one for one in self.events() if isinstance(one, DecisionMade)}

    def check_log(self) -> None:
        """Raise unless SQLite finds the log whole."""
        path = self.data / LOG_FILE
        connection = connect(path, is_reader=True)
        rows = connection.execute("PRAGMA integrity_check").fetchall()
        connection.close()
        if rows != [("ok",)]:
            raise LogError(f"An event log needs to be whole: {path} has {rows[:3]}. Restore it.")

    def learner_state(self) -> dict[str, Any]:
        """Return what the learner last said of itself."""
        try:
            return dict(json.loads((self.data / "learner.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}


def set_stage(home: Path, environment: Synthetic, settings: Mapping[str, Any]) -> Stage:
    """Write arms, settings and a first snapshot into a folder; training there takes a blink."""
    from fastbandit.learning.initial_version import publish_initial_version

    stage = write_stage(home, environment, settings)
    publish_initial_version(stage.config, stage.store)
    return stage


def write_stage(home: Path, environment: Synthetic, settings: Mapping[str, Any]) -> Stage:
    """Write arms and settings into a folder, and no snapshot."""
    stage = Stage(home, environment, free_port())
    stage.data.mkdir(parents=True, exist_ok=True)
    np.save(home / "arms.npy", environment.arms)
    (home / "training.toml").write_text(_LITTLE_TRAINING, encoding="utf-8")
    own = {
        "server.port": stage.port,
        "server.data_dir": str(stage.data),
        "context.features": environment.dim,
        "arms.file": str(home / "arms.npy"),
        "select.preset": str(home / "training.toml"),
    }
    (home / "fastbandit.toml").write_text(_toml({**_SETTINGS, **own, **settings}), "utf-8")
    return stage


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


def wait_for(
    found: Callable[[], _T], *, seconds: float, what: str, step: float = STEP_SECONDS
) -> _T:
    """Look for something again and again until it is true, and return it."""
    until = time.monotonic() + seconds
    while True:
        if it := found():
            return it
        if time.monotonic() > until:
            raise ServiceUnavailable(
                f"A campaign needs {what} within {seconds:g} seconds: it did not come. See the "
                f"service's journal."
            )
        time.sleep(step)


class Running:
    """A service that runs. It and its learner are a process group, which `end` leaves empty."""

    def __init__(self, stage: Stage, *options: str, command: str = "serve") -> None:
        self.stage, self.began, self.ended = stage, time.monotonic(), 0.0
        environ = {k: v for k, v in os.environ.items() if not k.startswith("FASTBANDIT_")}
        arguments = [sys.executable, "-m", "fastbandit", command]
        arguments += ["--config", str(stage.home / "fastbandit.toml"), *options]
        with stage.journal.open("ab") as journal:
            self.process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=journal,
                stderr=journal,
                env=environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id of the service."""
        return self.process.pid

    @property
    def learner(self) -> int | None:
        """The process id of the learner, None while there is none."""
        return next(iter(self.children("learn")), None)

    def children(self, role: str) -> list[int]:
        """Return the process ids of the children with this argument: learn, or their module."""
        try:
            found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return []
        return [int(child) for child in found if _has_argument(child, role)]

    @property
    def is_alive(self) -> bool:
        """Whether the service has not ended."""
        return self.process.poll() is None

    def has_left_over(self) -> bool:
        """Return whether any process of the group, such as the learner, outlives the service."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def first_answer(self, *, seconds: float = _PATIENCE_SECONDS) -> float:
        """Wait for the first decision; return the seconds since the process was started."""
        context = self.stage.environment.contexts(0, 1)[0].tolist()

        def decided() -> bool:
            self._check_alive()
            return _asked_once(self.stage.port, "/v1/select", {"context": context}).status == 200

        try:
            wait_for(decided, seconds=seconds, what="a first decision")
        except ServiceUnavailable as error:
            raise ServiceUnavailable(f"{error} {self.last_output()}") from error
        return time.monotonic() - self.began

    def _check_alive(self) -> None:
        if not self.is_alive:
            raise ServiceUnavailable(
                f"A campaign needs a service that runs: it ended with status "
                f"{self.process.returncode}. See the service's journal."
            )

    def last_output(self) -> str:
        """Return the end of the journal, and what the service says of itself."""
        said = " ".join(self.stage.journal.read_text(encoding="utf-8")[-500:].split())
        return f"It ends with: {said} /ready says: {self.readiness().content}"

    def readiness(self) -> Reply:
        """Ask whether the service is ready, and why not."""
        return _asked_once(self.stage.port, "/ready")

    def wait_until(self, is_ready: bool, *, seconds: float = _PATIENCE_SECONDS) -> Reply:
        """Wait until the service says that it is ready, or not; return what it says."""
        wanted = 200 if is_ready else 503
        found: list[Reply] = []

        def said() -> bool:
            found[:] = [self.readiness()]
            return found[0].status == wanted

        wait_for(
            said, seconds=seconds, what="a service that is" + " not" * (not is_ready) + " ready"
        )
        return found[0]

    def memory(self) -> dict[str, int]:
        """Return the memory of the service in bytes, total and anonymous, and its mappings."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        lines = dict(line.split(":", 1) for line in text.splitlines())
        rss, anonymous = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon"))
        mappings = Path(f"/proc/{self.pid}/maps").read_bytes().count(b"\n")
        return {"rss": rss, "anonymous": anonymous, "mappings": mappings}

    def kill(self) -> None:
        """Kill the service, as if it had crashed; its learner is left to itself."""
        self.process.kill()
        self.process.wait()
        self.ended = time.monotonic()

    def stop(self, *, seconds: float = 30.0) -> int:
        """Ask the service to end; return its exit status."""
        self.process.terminate()
        return self.process.wait(seconds)

    def end(self) -> None:
        """End whatever still runs."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(stage: Stage, *options: str) -> Iterator[Running]:
    """Run a service that decides; end it at last, however that comes."""
    service = stage.start(*options)
    try:
        service.first_answer()
        yield service
    finally:
        service.end()


class Caller:
    """A connection to a service, opened anew after it broke; for one thread."""

    def __init__(self, port: int, *, seconds: float = 10.0) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=seconds)

    def ask(self, path: str, content: Any = None) -> Reply | None:
        """Post JSON, or get where there is none; None where no whole answer came."""
        body = None if content is None else json.dumps(content)
        headers = {} if content is None else {"content-type": "application/json"}
        try:
            self._connection.request("GET" if content is None else "POST", path, body, headers)
            answer = self._connection.getresponse()
            text = answer.read()
            return Reply(answer.status, answer.headers.get_content_type(), json.loads(text))
        except _BREAKS:
            self._connection.close()
            return None

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _asked_once(port: int, path: str, content: Any = None) -> Reply:
    """Ask over a connection of its own; a status of 0 stands for no answer."""
    caller = Caller(port)
    try:
        return caller.ask(path, content) or Reply(0, "", None)
    finally:
        caller.close()


def _has_argument(pid: str, argument: str) -> bool:
    try:
        return argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _toml(settings: Mapping[str, Any]) -> str:
    sections: dict[str, list[str]] = {}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        sections.setdefault(section, []).append(f"{key} = {written(value)}")
    return "\n".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())
