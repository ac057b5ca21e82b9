"""The command `init`: a file of settings to start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import invoke

from fastbandit.cli.init import command
from fastbandit.errors import SettingError
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config


def test_what_is_written_reads_as_the_defaults(tmp_path: Path) -> None:
    done = invoke(command, tmp_path / "new.toml")

    assert done.exit_code == 0
    assert read_config(tmp_path / "new.toml", environ={}) == Config()


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("# mine\n")

    with pytest.raises(SettingError, match="--force"):
        invoke(command, path)
    assert path.read_text() == "# mine\n"

    invoke(command, path, "--force")
    assert "[server]" in path.read_text()
