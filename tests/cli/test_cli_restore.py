"""The command `restore`: a backup becomes a data folder again."""

from __future__ import annotations

from pathlib import Path

from little_data import fill, invoke

from fastbandit.cli.backup import command as backup_command
from fastbandit.cli.restore import command
from fastbandit.storage.data_folder import LOG_FILE


def test_what_was_backed_up_is_there_again(tmp_path: Path) -> None:
    invoke(backup_command, tmp_path / "copy", "--data-dir", fill(tmp_path / "data"))

    done = invoke(command, tmp_path / "copy", "--data-dir", tmp_path / "new")

    assert done.stdout.startswith("Restored 2 decisions, 1 rewards and no snapshot")
    assert (tmp_path / "new" / LOG_FILE).exists()
