"""The units of systemd are accepted by systemd, and give a process no more than it needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.deployed import DEPLOY, unit_lines

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
HARDENED = ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "PrivateDevices", "LockPersonality")


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not installed")
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_a_unit(path: Path, analyze: str, tmp_path: Path) -> None:
    """The program that it starts is put in place: nothing is installed here."""
    binary = tmp_path / "fastbandit"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    unit = tmp_path / path.name
    unit.write_text(path.read_text().replace("/opt/fastbandit/bin/fastbandit", str(binary)))

    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_hardened(path: Path) -> None:
    for key in HARDENED:
        assert unit_lines(path, key) == ["yes"]
    assert unit_lines(path, "ProtectSystem") == ["strict"]
    assert unit_lines(path, "CapabilityBoundingSet") == [""]
    assert unit_lines(path, "User") == ["fastbandit"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_process_that_ends_is_started_again(path: Path) -> None:
    assert unit_lines(path, "Restart") == ["always"]
    assert unit_lines(path, "StartLimitIntervalSec") == ["0"]


def test_each_process_has_a_data_folder_that_it_may_write_to() -> None:
    for path in UNITS:
        (state,) = unit_lines(path, "StateDirectory")
        told = [line for line in unit_lines(path, "Environment") if "DATA_DIR" in line]
        assert told == [f"FASTBANDIT_SERVER_DATA_DIR=%S/{state}"]


def test_numba_may_write_what_it_compiled() -> None:
    for path in UNITS:
        (cache,) = unit_lines(path, "CacheDirectory")
        assert any(
            f"NUMBA_CACHE_DIR=%C/{cache}" in line for line in unit_lines(path, "Environment")
        )
