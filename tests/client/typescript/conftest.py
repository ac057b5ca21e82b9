"""The client as it is built, a service that runs, an app in front of it, and a browser."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsers import launched
from little_app import App, serving_app
from node_package import Service, build_in

from fastbandit.learning.learner import Learner
from fastbandit.serving.keys import create_key, keys_path
from fastbandit.serving.learner_process import environment_of
from fastbandit.settings.service import Config
from tests.serving.little_service import Caller, begin, run

PATIENCE = 90.0


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in a folder outside of the checkout, compiled."""
    return build_in(tmp_path_factory.mktemp("npm") / "fastbandit")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with keys, in a process of its own."""
    folder = tmp_path_factory.mktemp("service")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = learned_once(folder, port)
    key, _ = create_key(keys_path(config.server), name="tests", scopes=["admin"])
    said = folder / "said.txt"
    with said.open("w") as file:
        command = [sys.executable, "-m", "fastbandit", "serve", "--no-learner"]
        process = subprocess.Popen(command, stderr=file, env=environment_of(config))
    try:
        running = Service(f"http://127.0.0.1:{port}", key)
        _wait_until_ready(running, process, said)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def learned_once(folder: Path, port: int) -> Config:
    """Make the data of a service whose model has had one short update: it can explain itself."""
    (folder / "short.toml").write_text("format = 1\n[training.reward]\niterations = 20\n")
    short = {"select__preset": str(folder / "short.toml"), "learn__fresh": 20}
    checks = {"learn__min_quality": 0.0, "learn__held_out": 0.0}
    config = begin(folder / "data", server__port=port, **short, **checks)
    learner = Learner(config)
    learner.start()

    async def story(ask: Caller) -> None:
        for n in range(24):
            made = await ask.select()
            await ask("POST", "/v1/reward", {"decision": made["decision"], "value": n % 2})

    run(config, story)
    assert learner.step().version == 1
    return config


def _wait_until_ready(service: Service, process: subprocess.Popen[Any], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{service.url}/ready").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(said.read_text()[-2000:])


@pytest.fixture
def app(built: Path, service: Service) -> Iterator[App]:
    """A web application that has the client, and the service behind its own address."""
    with serving_app(built / "dist", service) as running:
        yield running


@pytest.fixture(scope="module")
def browser(service: Service) -> Iterator[Any]:
    """A browser, once the service runs: Playwright holds the event loop while it is there."""
    with launched() as browser:
        yield browser
