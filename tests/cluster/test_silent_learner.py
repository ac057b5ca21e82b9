"""A learner whose machine falls silent, in a network namespace of its own, loses its lease."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastbandit.storage.snapshot_registry import SnapshotRegistry
from lab.postgres_server import LittleServer, little_server

HERE, THERE = "10.77.0.1", "10.77.0.2"
PATIENCE = 30.0
LEARNER = """
import sys, time
from fastbandit.storage.snapshot_registry import SnapshotRegistry
registry = SnapshotRegistry(sys.argv[1], sys.argv[2])
print(registry.acquire_lease(), flush=True)
time.sleep(120)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def machine() -> Iterator[str]:
    """Another machine, with a cable to this one: the name of its namespace."""
    name, cable = f"fb{os.getpid()}", f"fbv{os.getpid()}"
    if shutil.which("ip") is None or os.getuid() != 0:
        pytest.skip("a machine of one's own needs iproute2 and root")
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no namespace can be made here: {error.stderr.decode().strip()}")
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{HERE}/24", "dev", cable)
        ip("link", "set", cable, "up")
        ip("-n", name, "addr", "add", f"{THERE}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextmanager
def reachable_server() -> Iterator[LittleServer]:
    """A server that the other machine reaches as well."""
    with little_server(f"listen_addresses={HERE}") as server:
        folder = Path(server.url.partition("host=")[2])
        with (folder / "data" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {THERE}/32 trust\n")
        os.kill(server.process, signal.SIGHUP)
        yield server


@contextmanager
def learner_on(machine: str, folder: str) -> Iterator[subprocess.Popen[str]]:
    url = f"postgresql://fastbandit@{HERE}:5432/postgres"
    command = ["ip", "netns", "exec", machine, sys.executable, "-c", LEARNER, url, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_another_learner_takes_over_from_a_machine_that_falls_silent(
    machine: str, tmp_path: Path
) -> None:
    folder = f"file://{tmp_path}"
    with reachable_server() as server, learner_on(machine, folder) as first:
        assert first.stdout is not None
        assert first.stdout.readline().strip() == "True"
        second = SnapshotRegistry(server.url, folder)
        assert not second.acquire_lease()

        ip("-n", machine, "link", "set", "eth0", "down")

        deadline = time.monotonic() + PATIENCE
        while not (has_lease := second.acquire_lease()) and time.monotonic() < deadline:
            time.sleep(0.5)
        second.close()
    assert has_lease
