"""PostgreSQL restored to a moment holds exactly the events until then, and takes new ones."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg")

from fastbandit.storage.events import DecisionMade, Event, RewardCame  # noqa: E402
from fastbandit.storage.postgres_log import PostgresLog  # noqa: E402
from lab.postgres_server import (  # noqa: E402
    LittleServer,
    find_programs,
    little_server,
)

ARCHIVE = "test ! -f {0}/%f && cp %p {0}/%f.part && sync {0}/%f.part && mv {0}/%f.part {0}/%f"
"""As deploy/compose.yaml has it."""


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that the user of the server may write to, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="fastbandit-pitr-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def events(first: int, count: int) -> list[Event]:
    """Make decisions with a reward each."""
    made: list[Event] = []
    for number in range(first, first + count):
        made.append(
            DecisionMade(f"visit-{number}", [0.5, number], ["a"], [0.1], number, 1, 0, wait=10**9)
        )
        made.append(RewardCame(f"visit-{number}", 1.0))
    return made


def asked(url: str, query: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        (value,) = connection.execute(query).fetchone() or (None,)
    return str(value)


def wait_for(said: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not said():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def copy_base(server: LittleServer, target: Path) -> None:
    """Take a base backup, as the user that the server runs as."""
    programs = find_programs()
    assert programs is not None
    host = server.url.rpartition("=")[2]
    user = pwd.getpwuid(os.stat(f"{host}/data").st_uid)
    other = {"user": user.pw_uid, "group": user.pw_gid} if os.getuid() == 0 else {}
    command = [
        programs / "pg_basebackup",
        "-D",
        target,
        "-h",
        host,
        "-U",
        "fastbandit",
        "-c",
        "fast",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60, **other)  # type: ignore[call-overload]


def archive_rest(url: str, archive: Path) -> None:
    """Close the file that is being written, and wait until it is archived."""
    last = asked(url, "SELECT pg_walfile_name(pg_current_wal_lsn())")
    asked(url, "SELECT pg_switch_wal()")
    wait_for(lambda: (archive / last).exists(), f"{last} in the archive")


def test_a_log_restored_to_a_moment_holds_the_events_until_then(room: Path) -> None:
    archive = room / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    settings = ("archive_mode=on", f"archive_command={ARCHIVE.format(archive)}")
    with little_server(*settings) as server:
        log = PostgresLog(server.url)
        log.append(events(0, 3))
        copy_base(server, room / "data")
        log.append(events(3, 4))
        kept = log.read()
        moment = asked(server.url, "SELECT clock_timestamp()")
        log.append(events(7, 5))  # the mistake that is to be undone
        log.close()
        archive_rest(server.url, archive)

    (room / "data" / "recovery.signal").touch()
    recovery = (
        f"restore_command=cp {archive}/%f %p",
        f"recovery_target_time={moment}",
        "recovery_target_action=promote",
        f"archive_command={ARCHIVE.format(archive)}",
    )
    programs = find_programs()
    assert programs is not None
    again = LittleServer(programs, room, settings=recovery)
    try:
        again.start()
        wait_for(lambda: asked(again.url, "SELECT pg_is_in_recovery()") == "False", "its end")
        log = PostgresLog(again.url)
        assert log.read() == kept
        assert log.last == len(kept) == 14
        (outcome,) = log.append(events(7, 1)[:1])
        assert (outcome.seq, outcome.status) == (15, "written")
        log.close()
    finally:
        again.kill()
