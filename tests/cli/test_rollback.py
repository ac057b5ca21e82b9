"""The command `rollback`: an earlier version is served again."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import invoke

from fastbandit.cli.rollback import command
from fastbandit.errors import SnapshotError


def test_a_folder_without_versions_has_none_to_go_back_to(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        invoke(command, "--data-dir", tmp_path)
