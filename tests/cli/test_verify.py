"""The command that reads a whole service's data, and ends with 1 where something is damaged."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from fastbandit.cli.main import cli
from fastbandit.storage.archive import Archive
from fastbandit.storage.events import TimePassed
from fastbandit.storage.sqlite_log import SqliteLog


def write_log(folder: Path) -> None:
    log = SqliteLog(folder / "events.db")
    log.append([TimePassed()])
    log.close()


def test_a_whole_log_ends_with_0(tmp_path: Path) -> None:
    write_log(tmp_path)

    done = CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path)])

    assert (done.exit_code, done.stdout) == (0, "Nothing is damaged: the log, and the snapshots.\n")


def test_damage_is_named_and_ends_with_1(tmp_path: Path) -> None:
    write_log(tmp_path)
    content = bytearray((tmp_path / "events.db").read_bytes())
    content[5000] ^= 1
    (tmp_path / "events.db").write_bytes(content)

    done = CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "events.db: page 2: has a wrong checksum" in done.stdout
    done = CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path), "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["checksums"]
    assert found["damage"][0]["where"] == "page 2"


def test_damage_in_the_archive_is_named(tmp_path: Path) -> None:
    write_log(tmp_path)
    Archive(tmp_path / "archive").write_day("2026-01-31", (1, 1), lambda kind: ())
    (tmp_path / "archive" / "2026-01-31" / "rewards.parquet").write_bytes(b"")

    done = CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "archive/2026-01-31/rewards.parquet: the file: " in done.stdout
    assert done.stdout.endswith("1 damaged.\n")


def test_an_empty_folder_holds_nothing_damaged(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path), "--json"])

    assert json.loads(done.stdout) == {"log": False, "checksums": False, "damage": []}
