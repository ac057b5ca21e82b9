"""Rewards that cannot be delivered are kept on the disk, in their order, until they are."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fastbandit.client import Reward
from fastbandit.client.spool import Spool
from fastbandit.errors import SpoolError, SpoolFull


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rewards.spool"


def rewards(*ids: str) -> list[Reward]:
    return [Reward(id, 1.0) for id in ids]


def kept(path: Path) -> list[Reward]:
    return [reward for _, reward in Spool(path).first(100)]


def test_rewards_are_stored_all_or_none(path: Path) -> None:
    spool = Spool(path, limit=2)

    with pytest.raises(SpoolFull):
        spool.store(rewards("a", "b", "c"))

    assert spool.count() == 0


def test_a_number_is_never_given_twice(path: Path) -> None:
    spool = Spool(path)
    spool.store(rewards("a"))
    ((first, _),) = spool.first(1)
    spool.remove([first])
    spool.store(rewards("b"))

    assert spool.first(1)[0][0] > first


def test_several_processes_share_a_spool(path: Path) -> None:
    code = (
        "import sys\n"
        "from fastbandit.client import Reward\n"
        "from fastbandit.client.spool import Spool\n"
        "for number in range(20):\n"
        "    Spool(sys.argv[1]).store([Reward(f'{sys.argv[2]}-{number}', 1.0)])\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")
    ]

    assert [process.wait(60) for process in started] == [0, 0, 0]
    found = [reward.decision for reward in kept(path)]
    for name in ("a", "b", "c"):
        assert [id for id in found if id[0] == name] == [f"{name}-{n}" for n in range(20)]


def test_what_was_stored_outlives_a_kill(path: Path) -> None:
    code = (
        "import sys\n"
        "from fastbandit.client import Reward\n"
        "from fastbandit.client.spool import Spool\n"
        "spool, number = Spool(sys.argv[1]), 0\n"
        "while True:\n"
        "    spool.store([Reward(f'{number}', 1.0)])\n"
        "    print(number, flush=True)\n"
        "    number += 1\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout]

    found = [int(reward.decision) for reward in kept(path)]
    assert found == list(range(len(found)))
    assert len(found) - len(told) in (0, 1)  # one may have been kept, and not told of


def test_the_database_of_another_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (number)")
    other.close()

    with pytest.raises(SpoolError, match="needs a file of its own"):
        Spool(path)


@pytest.mark.parametrize("name", [".", "no folder/rewards.spool"])
def test_a_file_that_cannot_be_written_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="can be written to"):
        Spool(tmp_path / name)


def test_a_damaged_file_is_an_error(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)

    with pytest.raises(SpoolError, match="not a database"):
        Spool(path)


def test_nobody_else_reads_a_spool(tmp_path: Path) -> None:
    Spool(tmp_path / "spool.db")

    assert (tmp_path / "spool.db").stat().st_mode & 0o777 == 0o600
