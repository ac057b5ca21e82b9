"""A service of several workers: one log, one answer, and each process replaced when it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from fastbandit.errors import SettingError
from fastbandit.serving.learner_process import environment_of
from fastbandit.serving.worker_link import OF_CLIENT, Report
from fastbandit.serving.workers import Workers, _Worker
from fastbandit.settings.service import Config
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import CONTEXT, FEATURES, begin, config_in

PATIENCE = 120.0


class _Process:
    """A process that runs as long as its status is None."""

    def __init__(self, returncode: int | None = None) -> None:
        self.returncode = returncode


def _worker(connections: int, **more: Any) -> tuple[_Worker, socket.socket]:
    own, its = socket.socketpair(type=socket.SOCK_DGRAM)
    own.setblocking(False)
    report = Report(has_started=True, connections=connections)
    process = cast(Any, more.pop("process", _Process()))
    return _Worker(process, own, report, heard=time.monotonic(), **more), its


def test_a_connection_goes_to_the_worker_that_has_the_fewest(tmp_path: Path) -> None:
    service = Workers(config_in(tmp_path, server__workers=3))
    found = [_worker(5), _worker(2), _worker(0, process=_Process(-9))]
    service._workers = [worker for worker, _ in found]
    client, other = socket.socketpair()
    with client, other:
        assert [service._hand_over(client) for _ in range(4)] == [True] * 4
    said, numbers, _, _ = socket.recv_fds(found[1][1], 1, 1)
    assert (said, len(numbers)) == (OF_CLIENT, 1)
    os.close(numbers[0])
    assert [worker.handed for worker, _ in found] == [1, 3, 0]
    for worker, its in found:
        worker.handed_over.close()
        its.close()


def test_without_a_worker_no_connection_is_handed_over(tmp_path: Path) -> None:
    service = Workers(config_in(tmp_path, server__workers=2))
    with closing(socket.socket()) as client:
        assert not service._hand_over(client)


def test_a_shared_log_has_deciders_in_place_of_workers(tmp_path: Path) -> None:
    shared = {"log__url": "postgresql://host/db", "snapshots__url": str(tmp_path)}
    with pytest.raises(SettingError, match=r"server\.workers = 2 with log\.url"):
        config_in(tmp_path, server__workers=2, **shared)


def test_an_address_that_is_taken_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = config_in(
            tmp_path / "data", server__port=taken.getsockname()[1], server__workers=2
        )
        with pytest.raises(SettingError, match="Address already in use"):
            Workers(config).run()
    assert not (tmp_path / "data").exists()


def test_what_its_processes_write_is_private_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that it starts stands for the writer, the learner and what has days leave."""
    config = config_in(tmp_path / "data", server__port=0, server__workers=2)
    write = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('')"

    async def live(self: Workers) -> signal.Signals:
        subprocess.run([sys.executable, "-c", write, tmp_path / "data" / "events.db"], check=True)
        return signal.SIGTERM

    monkeypatch.setattr(Workers, "_live", live)
    before = os.umask(0o022)
    try:
        Workers(config).run()
    finally:
        os.umask(before)

    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "data", *tmp_path.rglob("*.db"))]
    assert modes == [0o700, 0o600]


class _Service:
    """A service of two workers that runs."""

    def __init__(self, config: Config, said: Path) -> None:
        self.url, self.said = f"http://127.0.0.1:{config.server.port}", said
        with said.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fastbandit", "serve", "--no-learner"],
                stderr=file,
                env=environment_of(config),
            )

    def children(self, module: str) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids = path.read_text().split()
        return [int(it) for it in pids if module in Path(f"/proc/{it}/cmdline").read_text()]

    def ask(self, method: str, path: str, told: Any = None) -> httpx.Response | None:
        """Ask over a connection of its own, which any worker may get."""
        try:
            return httpx.request(method, self.url + path, json=told, timeout=30)
        except httpx.HTTPError:
            return None

    def is_whole(self) -> bool:
        said = self.ask("GET", "/ready")
        return said is not None and said.status_code == 200 and not said.json()["reasons"]

    def wait(self, found: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if it := found():
                return it
            time.sleep(0.05)
        raise AssertionError(self.said.read_text()[-2000:])

    def ready(self, *, status: int) -> bool:
        said = self.ask("GET", "/ready")
        return said is not None and said.status_code == status


@pytest.fixture
def running(tmp_path: Path) -> Iterator[_Service]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = begin(tmp_path / "data", server__port=port, server__workers=2)
    service = _Service(config, tmp_path / "said.txt")
    try:
        service.wait(service.is_whole)
        yield service
    finally:
        service.process.kill()
        service.process.wait()


@pytest.mark.slow
def test_workers_share_a_log_and_answer_for_all(running: _Service, tmp_path: Path) -> None:
    answers = []
    for number in range(12):
        asked = {"context": CONTEXT, "id": f"d{number}"}
        for _ in range(2):  # each on a connection of its own
            reply = running.ask("POST", "/v1/select", asked)
            assert reply is not None
            answers.append(reply.json())
    assert answers[::2] == answers[1::2]

    arm = {"id": "new", "features": [0.0] * FEATURES, "columns": {"price": 1, "colour": "red"}}
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "data").glob("events.db*")}
    assert modes == {0}
    for method, told in (("PUT", {"arms": [arm]}), ("DELETE", {"ids": ["arm-0"]})):
        assert running.ask(method, "/v1/arms", told).status_code == 200  # type: ignore[union-attr]
    for _ in range(8):  # whichever worker answers knows both, within a moment

        def has_changed() -> bool:
            reply = running.ask("POST", "/v1/select", {"context": CONTEXT, "k": 99})
            arms = [] if reply is None else reply.json()["arms"]
            return "new" in arms and "arm-0" not in arms

        running.wait(has_changed)

    def counts_all() -> bool:
        reply = running.ask("GET", "/v1/status")
        return reply is not None and reply.json()["serving"]["selects"] >= 24 + 8

    running.wait(counts_all)
    metrics = running.ask("GET", "/metrics")
    assert metrics is not None
    assert "fastbandit_workers_running 2.0" in metrics.text
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0
    with closing(SqliteLog(tmp_path / "data" / "events.db")) as log:  # no writer is left
        assert all(log.decision(f"d{number}") for number in range(12))


@pytest.mark.slow
def test_what_is_killed_is_replaced_and_nothing_is_lost(running: _Service, tmp_path: Path) -> None:
    writer, workers = "log_writer_process", "fastbandit.serving.worker"
    first = running.ask("POST", "/v1/select", {"context": CONTEXT, "id": "before"})
    assert first is not None

    (pid,) = running.children(writer)
    os.kill(pid, signal.SIGSTOP)  # then none can be acknowledged
    os.kill(pid, signal.SIGKILL)
    running.wait(lambda: running.children(writer) not in ([], [pid]))
    running.wait(running.is_whole)
    again = running.ask("POST", "/v1/select", {"context": CONTEXT, "id": "before"})
    assert again is not None
    assert again.json() == first.json()

    killed = running.children(workers)
    for one in killed:
        os.kill(one, signal.SIGKILL)
    running.wait(lambda: running.ready(status=503) or running.is_whole())
    running.wait(lambda: len(set(running.children(workers)) - set(killed)) == 2)
    running.wait(running.is_whole)
    again = running.ask("POST", "/v1/select", {"context": CONTEXT, "id": "before"})
    assert again is not None
    assert again.json() == first.json()
    lines = [json.loads(it) for it in running.said.read_text().splitlines() if it.startswith("{")]
    ended = [line["message"] for line in lines if line["level"] == "error"]
    assert ended.count("a writer ended") == 1
    assert ended.count("a worker ended") == 2


@pytest.mark.slow
def test_a_data_folder_in_use_is_said(tmp_path: Path) -> None:
    config = begin(tmp_path / "data", server__port=0, server__workers=2)
    with closing(SqliteLog(tmp_path / "data" / "events.db")):
        service = _Service(config, tmp_path / "said.txt")
        assert service.process.wait(PATIENCE) == 2
    assert "Error: An event log needs to have one writer" in (tmp_path / "said.txt").read_text()
