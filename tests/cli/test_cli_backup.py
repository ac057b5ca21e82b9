"""The command `backup`: a copy of a data folder, told in a line or in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from little_data import fill, invoke

from fastbandit.cli.backup import command
from fastbandit.errors import SettingError


def test_it_says_what_was_copied_and_where(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data")

    done = invoke(command, tmp_path / "copy", "--data-dir", folder)

    first, last = done.stdout.splitlines()
    assert first.startswith("Backed up 2 decisions, 1 rewards and no snapshot")
    assert last == str(tmp_path / "copy")


def test_json_has_the_counts(tmp_path: Path) -> None:
    done = invoke(command, tmp_path / "copy", "--data-dir", fill(tmp_path / "data"), "--json")

    report = json.loads(done.stdout)
    assert (report["counts"]["decisions"], report["version"]) == (2, None)


def test_a_shared_log_is_backed_up_by_its_database(tmp_path: Path) -> None:
    settings = tmp_path / "fastbandit.toml"
    settings.write_text('[log]\nurl = "postgresql://x/y"\n[snapshots]\nurl = "s3://bucket/x"\n')

    with pytest.raises(SettingError, match="A backup is of a log in a file"):
        invoke(command, tmp_path / "copy", "--config", settings)
