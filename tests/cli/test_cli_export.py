"""The command `export`: decisions with their rewards, as a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from little_data import fill, invoke

from fastbandit.cli.export import command
from fastbandit.errors import SettingError


def test_a_row_for_each_decision_is_written(tmp_path: Path) -> None:
    folder, out = fill(tmp_path / "data"), tmp_path / "rows.jsonl"

    done = invoke(command, "--out", out, "--data-dir", folder)

    assert done.stdout.splitlines() == ["2 decisions", str(out)]
    assert [json.loads(line)["decision"] for line in out.read_text().splitlines()] == ["one", "two"]


@pytest.mark.parametrize("named", ["data/exports", "elsewhere"])
def test_an_export_in_the_data_folder_is_private(tmp_path: Path, named: str) -> None:
    folder, out, before = fill(tmp_path / "data"), tmp_path / named, os.umask(0o022)
    try:
        invoke(command, "--out", out, "--resume", "--data-dir", folder)
    finally:
        os.umask(before)

    assert out.stat().st_mode & 0o777 == (0o755 if named == "elsewhere" else 0o700)


def test_a_bound_needs_to_be_a_number_or_a_time(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="--since needs an event number, or a time"):
        invoke(command, "--out", tmp_path / "rows.jsonl", "--since", "yesterday")


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()

    with pytest.raises(SettingError, match="--replace"):
        invoke(command, "--out", tmp_path / "rows.jsonl", "--data-dir", tmp_path)
