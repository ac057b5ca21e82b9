"""Commands while the database is unavailable: one line at once, and nothing that may be untrue."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from fastbandit.errors import LogUnavailableError
from fastbandit.storage.postgres_connection import Server

NOWHERE = "postgresql://127.0.0.1:1/none"  # a port that nobody listens on


@pytest.mark.parametrize("command", ["copy-log --out copied", "shadow", "promote", "rollback"])
def test_a_command_says_in_one_line_that_the_database_is_unavailable(
    command: str, tmp_path: Path
) -> None:
    settings = {
        "FASTBANDIT_LOG_URL": NOWHERE,
        "FASTBANDIT_SNAPSHOTS_URL": str(tmp_path / "shared"),
        "FASTBANDIT_SHADOW_BASELINE": "request",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }

    done = subprocess.run(
        [sys.executable, "-m", "fastbandit", *command.split()],
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("Error: The event log needs its server")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("done", "told"),
    [
        ("read", "nothing was written"),
        ("written to", "nothing was written"),
        ("used", "whether a change was made shows then"),
        ("pruned", "whether a change was made shows then"),
    ],
)
def test_nothing_was_written_is_said_only_where_that_is_known(done: str, told: str) -> None:
    server = Server(NOWHERE, schema="fastbandit", timeout_seconds=1.0)

    with pytest.raises(LogUnavailableError, match=told), server.reporting(done):
        raise psycopg.OperationalError("gone")
