"""Machines that share a log and snapshots: services asked in-process, or processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from fastbandit.serving.app import App
from fastbandit.serving.server import key_ring
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.events import ArmsChanged, DecisionMade, Event, RewardCame
from fastbandit.storage.postgres_log import PostgresLog
from lab.postgres_server import LittleServer
from tests.serving.little_service import Caller, write_arms

PATIENCE = 60.0
_ROOT = str(Path(__file__).parents[2])
_SHORT = """format = 1
[training.reward]
iterations = 20
batch = 16
[training.generator]
iterations = 10
batch = 16
pairs = 32
sample = 16
"""
_Told = TypeVar("_Told")
Story = Callable[..., Awaitable[_Told]]


@dataclass(frozen=True)
class Machines:
    """Machines on one database; each has a folder of its own."""

    url: str
    folder: Path

    def settings(self, name: str, **more: Any) -> dict[str, Any]:
        """Give the settings of a machine by name; further ones are named section__key."""
        (self.folder / "short.toml").write_text(_SHORT)
        own = {
            "server.data_dir": str(self.folder / name),
            "server.port": 0,
            "context.features": 3,
            "arms.file": str(write_arms(self.folder)),
            "arms.columns": ["price", "colour"],
            "select.preset": str(self.folder / "short.toml"),
            "learn.fresh": 4,
            "learn.growth": 0.0,
            "learn.held_out": 0.0,
            "learn.min_quality": 0.0,
            "log.url": self.url,
            "snapshots.url": f"file://{self.folder}/shared",
        }
        return own | {key.replace("__", "."): value for key, value in more.items()}

    def config(self, name: str, **more: Any) -> Config:
        """Give the config of a machine."""
        return read_config(None, environ={}, overrides=self.settings(name, **more))

    def run(self, story: Story[_Told], *names: str, **more: Any) -> _Told:
        """Start a service on each machine, let a story happen, and stop them."""

        async def live() -> _Told:
            services = [Service(self.config(name, **more)) for name in names]
            try:
                for service in services:
                    await service.start()
                return await story(*(Caller(App(it, key_ring(it.config))) for it in services))
            finally:
                for service in services:
                    await service.stop()

        return asyncio.run(live())

    def events(self) -> list[Event]:
        """Give all events of the log."""
        log = PostgresLog(self.url, is_reader=True)
        try:
            return log.read(limit=10**6)
        finally:
            log.close()

    def decisions(self) -> list[str]:
        """Give the ids of all decisions in the log, in its order."""
        return [event.id for event in self.events() if isinstance(event, DecisionMade)]

    def rewards(self) -> list[RewardCame]:
        """Give all rewards in the log."""
        return [event for event in self.events() if isinstance(event, RewardCame)]

    def changes(self) -> list[ArmsChanged]:
        """Give all changes of the arms in the log."""
        return [event for event in self.events() if isinstance(event, ArmsChanged)]

    @contextmanager
    def started(self, name: str, *args: str, **more: Any) -> Iterator[Started]:
        """Run a command of fastbandit on a machine, and kill it in the end."""
        environ = {
            f"FASTBANDIT_{key.replace('.', '_').upper()}": _written(value)
            for key, value in self.settings(name, **more).items()
        }
        said = self.folder / f"{name}-{time.monotonic_ns()}.txt"
        with said.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "fastbandit", *args],
                cwd=self.folder,
                stdout=file,
                stderr=file,
                env={**os.environ, "PYTHONPATH": _ROOT, **environ},
            )
        try:
            yield Started(process, said, self.folder / name)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Started:
    """A process, the file of what it says, and its data folder."""

    process: subprocess.Popen[bytes]
    file: Path
    folder: Path

    @property
    def said(self) -> str:
        return self.file.read_text()

    def wait_for(self, found: Callable[[], _Told]) -> _Told:
        """Ask until there is an answer, or the process has ended."""
        return until(found, is_over=lambda: self.process.poll() is not None, said=self.file)

    def state(self) -> dict[str, Any]:
        """Give what the learner there says of itself."""
        try:
            return dict(json.loads((self.folder / "learner.json").read_text()))
        except (OSError, ValueError):
            return {}


def address(one: Started) -> str:
    """Give the URL of a service that is ready."""

    def ready() -> str:
        found = re.search(r"serves on (http://\S+)", one.said)
        try:
            return found[1] if found and httpx.get(f"{found[1]}/ready").status_code == 200 else ""
        except httpx.HTTPError:
            return ""

    return one.wait_for(ready)


def until(
    found: Callable[[], _Told],
    *,
    is_over: Callable[[], bool] = lambda: False,
    said: Path | None = None,
) -> _Told:
    """Ask until there is an answer."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not is_over():
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError("no answer in time" if said is None else said.read_text()[-3000:])


@contextmanager
def stopped(server: LittleServer) -> Iterator[None]:
    """Stop a server for a while."""
    server.stop()
    try:
        yield
    finally:
        server.start()


async def soon(holds: Callable[[], Any]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it does not hold in time"
        await asyncio.sleep(0.02)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
