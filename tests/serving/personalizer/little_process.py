"""A service with the routes of Personalizer in a process of its own, on a port of loopback."""

from __future__ import annotations

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
from urllib.error import URLError
from urllib.request import urlopen

from fastbandit.settings.service import Config, all_settings

PATIENCE = 120.0


@contextmanager
def served(config: Config, folder: Path) -> Iterator[str]:
    """Serve, and return the address."""
    said = folder / "said.txt"
    with said.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "fastbandit", "serve", "--port", "0"],
            cwd=folder,
            stderr=file,
            env=environment(config),
        )
    try:
        address = re.compile(r"serves on (http://\S+)")
        url = str(wait_for(lambda: address.search(said.read_text()), said)[1])
        wait_for(lambda: is_ready(url), said)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()


def environment(config: Config) -> dict[str, str]:
    """Return the settings of a service as its environment."""
    root = {"PYTHONPATH": str(Path(__file__).parents[3])}
    own = {one.variable: getattr(getattr(config, one.section), one.key) for one in all_settings()}
    texts = {name: _text(value) for name, value in own.items() if value not in ("", ())}
    return {**os.environ, **root, **texts}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def wait_for(found: Callable[[], Any], said: Path) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(0.1)
    raise AssertionError(said.read_text()[-2000:])
