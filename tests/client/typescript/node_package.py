"""The client in TypeScript, built in a folder of its own: the checkout stays as it is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.release import npm_package
from scripts.release.building import ReleaseError

ROOT = Path(__file__).parents[3]
PACKAGE = npm_package.PACKAGE
DOCUMENT = ROOT / "tests" / "serving" / "openapi-v1.json"
SECONDS = 300


@dataclass(frozen=True)
class Service:
    """A service that runs, and a key that opens all of it."""

    url: str
    key: str


def must_run(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a program that must not fail, and give what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
    return done.stdout


def build_in(folder: Path) -> Path:
    """Build the package in a folder as a release does; skip where that cannot be done."""
    if why := npm_package.why_not():
        pytest.skip(why)
    try:
        return npm_package.build(folder)
    except ReleaseError as error:
        if any(
            sign in str(error) for sign in ("ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNREFUSED")
        ):
            pytest.skip("npm cannot reach its registry")
        raise
