"""The balancer's and Prometheus's files, as deployed, in front of real deciders.

Skipped where `haproxy` or `prometheus` is not installed; Debian has both.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from machines import Machines, Started, address, until

from fastbandit.client import Client
from tests.deploy.deployed import DEPLOY
from tests.serving.little_service import CONTEXT

HAPROXY, PROMETHEUS = (
    shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin")
    for name in ("haproxy", "prometheus")
)
DECIDERS = ("decider-1", "decider-2", "decider-3")


@pytest.fixture
def deciders(shared: Machines) -> Iterator[dict[str, Started]]:
    """Three deciders on one log."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(shared.started(name, "serve", "--no-learner"))
            for name in DECIDERS
        }


def hosts_of(deciders: dict[str, Started]) -> dict[str, str]:
    """Give where each decider is, once it is ready: host and port."""
    return {name: address(one).removeprefix("http://") for name, one in deciders.items()}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def balancer(hosts: dict[str, str], folder: Path) -> Iterator[str]:
    """Run HAProxy with its file, but for where the deciders and the balancer itself are."""
    port = free_port()
    told = (DEPLOY / "haproxy.cfg").read_text().replace("bind :8080", f"bind 127.0.0.1:{port}")
    for name, host in hosts.items():
        told = told.replace(f"{name} {name}:8080", f"{name} {host}")
    (folder / "haproxy.cfg").write_text(told)
    with running([str(HAPROXY), "-db", "-f", "haproxy.cfg"], folder):
        url = f"http://127.0.0.1:{port}"
        until(lambda: answers(f"{url}/ready"), said=folder / "said.txt")
        yield url


@pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
def test_behind_the_balancer_no_select_fails_while_a_decider_is_killed(
    deciders: dict[str, Started], shared: Machines, tmp_path: Path
) -> None:
    made = []
    with balancer(hosts_of(deciders), tmp_path) as url, Client(url) as client:
        for number in range(60):
            if number == 20:
                deciders["decider-2"].process.kill()
            made.append(client.select(CONTEXT).decision)

    assert sorted(shared.decisions()) == sorted(made)


@pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
def test_the_balancer_asks_only_deciders_that_are_ready(
    deciders: dict[str, Started], tmp_path: Path
) -> None:
    hosts = hosts_of(deciders)
    for name in DECIDERS[1:]:
        deciders[name].process.kill()
        deciders[name].process.wait()

    with balancer(hosts, tmp_path) as url:
        asked = [httpx.post(f"{url}/v1/select", json={"context": CONTEXT}) for _ in range(10)]

    assert [reply.status_code for reply in asked] == [200] * 10


@contextmanager
def prometheus(hosts: dict[str, str], folder: Path) -> Iterator[str]:
    """Run Prometheus with its file and its alerts, but for where the deciders and the key are."""
    told = (DEPLOY / "prometheus.yml").read_text()
    told = told.replace("/run/secrets/metrics-key", "metrics-key").replace("10s", "1s")
    for name, host in hosts.items():
        told = told.replace(f"{name}:8080", host)
    (folder / "prometheus.yml").write_text(told)
    (folder / "metrics-key").write_text("unused")  # deciders of a test ask for none
    shutil.copy(DEPLOY / "alerts.yml", folder)
    port = free_port()
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    options += [f"--web.listen-address=127.0.0.1:{port}"]
    with running([str(PROMETHEUS), *options], folder):
        url = f"http://127.0.0.1:{port}"
        until(lambda: answers(f"{url}/-/ready"), said=folder / "said.txt")
        yield url


def rules_of(url: str) -> list[dict[str, Any]]:
    groups = httpx.get(f"{url}/api/v1/rules").json()["data"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def value_of(url: str, query: str) -> float | None:
    found = httpx.get(f"{url}/api/v1/query", params={"query": query}).json()["data"]["result"]
    return float(found[0]["value"][1]) if found else None


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed")
def test_prometheus_sees_all_deciders_and_can_work_out_every_alert(
    deciders: dict[str, Started], tmp_path: Path
) -> None:
    hosts = hosts_of(deciders)
    for host in hosts.values():
        httpx.post(f"http://{host}/v1/select", json={"context": CONTEXT}).raise_for_status()

    with prometheus(hosts, tmp_path) as url:
        until(lambda: value_of(url, "sum(fastbandit_ready)") == 3)
        rules = until(lambda: [r for r in rules_of(url) if r["health"] != "unknown"])

    wanted = set(re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yml").read_text()))
    assert {rule["name"] for rule in rules} == wanted
    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed")
def test_prometheus_notices_that_a_decider_is_down(
    deciders: dict[str, Started], tmp_path: Path
) -> None:
    hosts = hosts_of(deciders)
    deciders["decider-3"].process.kill()

    with prometheus(hosts, tmp_path) as url:
        until(lambda: value_of(url, 'sum(up{job="fastbandit"})') == 2)
        down = until(
            lambda: [r for r in rules_of(url) if r["name"] == "DeciderDown" and r["alerts"]]
        )

    assert down[0]["alerts"][0]["labels"]["instance"] == hosts["decider-3"]
