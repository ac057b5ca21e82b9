"""Shadow mode as a user runs it: a service learns beside a baseline, is promoted, and stays so."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.client import Baseline, Client
from tests.serving.little_service import write_arms

pytestmark = pytest.mark.slow

PATIENCE = 120.0
ARMS = 6
CONFIG = """
[server]
port = 0
[context]
features = 2
[arms]
file = "arms.csv"
columns = ["price", "colour"]
[reward]
wait_seconds = 1000
[select]
preset = "short.toml"
[learn]
fresh = 300
growth = 10.0
seconds = 1000
min_quality = 0
[shadow]
baseline = "request"
"""
SHORT = """format = 1
[training.reward]
iterations = 400
[training.generator]
iterations = 100
"""


class Shop:
    """A caller with a policy of its own: it takes any arm, cheap ones more often."""

    def __init__(self, numbers: np.random.Generator) -> None:
        self._numbers = numbers
        self._shares = np.arange(ARMS, 0, -1) / np.arange(1, ARMS + 1).sum()

    def serve(self, client: Client, count: int) -> list[str]:
        """Ask and tell so often; give who decided each time. Dear arms are what pays."""
        who = []
        for _ in range(count):
            context = self._numbers.normal(size=2).round(3).tolist()
            row = int(self._numbers.choice(ARMS, p=self._shares))
            own = Baseline(f"arm-{row}", float(self._shares[row]))
            chosen = client.select(context, baseline=own)
            is_good = chosen.arm in ("arm-4", "arm-5")
            client.reward(chosen, float(self._numbers.uniform() < (0.9 if is_good else 0.1)))
            assert (chosen.arm if chosen.decided_by == "baseline" else chosen.other) == own.arm
            who.append(chosen.decided_by)
        return who


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_arms(tmp_path, arms=ARMS)
    (tmp_path / "fastbandit.toml").write_text(CONFIG)
    (tmp_path / "short.toml").write_text(SHORT)
    return tmp_path


def told(folder: Path, *args: str) -> Any:
    """Run a command in a folder; give the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fastbandit", *args, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@contextmanager
def service(folder: Path) -> Iterator[Client]:
    """Serve, and give a client that can reach it."""
    said = folder / "said.txt"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "fastbandit", "serve"],
            cwd=folder,
            stderr=file,
            env=environment(),
        )
    try:
        address = re.compile(r"serves on (http://\S+)")
        url = wait_for(lambda: address.search(said.read_text()), said)[1]
        with Client(url, deadline_seconds=10.0) as client:
            wait_for(lambda: client.status()["ready"], said)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for(found: Callable[[], Any], said: Path) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(0.1)
    raise AssertionError(said.read_text()[-2000:])


def test_a_bandit_learns_beside_a_baseline_and_is_promoted(
    folder: Path, numbers: np.random.Generator
) -> None:
    shop, said = Shop(numbers), folder / "said.txt"
    with service(folder) as client:
        assert set(shop.serve(client, 300)) == {"baseline"}
        wait_for(lambda: client.status()["version"] == 1, said)
        assert set(shop.serve(client, 500)) == {"baseline"}

        (found,) = told(folder, "shadow")["evidence"]
        assert found["decided_by"] == "baseline"
        assert found["difference"]["low"] > 0.0

        assert told(folder, "promote")["decides"] == "bandit"
        wait_for(lambda: client.status()["decides"] == "bandit", said)
        assert set(shop.serve(client, 20)) == {"bandit"}

    with service(folder) as client:
        assert set(shop.serve(client, 5)) == {"bandit"}
        assert told(folder, "promote", "--back")["decides"] == "baseline"
        wait_for(lambda: client.status()["decides"] == "baseline", said)
        assert set(shop.serve(client, 5)) == {"baseline"}
        sides = [one["decided_by"] for one in told(folder, "shadow")["evidence"]]
        assert sides == ["bandit", "baseline"]
