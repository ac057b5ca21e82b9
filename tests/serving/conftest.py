"""A service whose first snapshot is made once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.settings.service import Config
from tests.serving.little_service import begin, config_in


@pytest.fixture(scope="session")
def first_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    begin(folder)
    return folder


@pytest.fixture
def config(first_folder: Path, tmp_path: Path) -> Config:
    """A service whose snapshots are shared with other tests, and whose log is its own."""
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")
    return config_in(tmp_path)
