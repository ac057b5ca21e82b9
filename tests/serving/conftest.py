"""A service whose first snapshot is made once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_console import LoggedService
from tests.serving.little_named import by_name
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


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LoggedService]:
    """A log and the figures of the console, without a service around them."""
    service = LoggedService(tmp_path)
    yield service
    service.log.close()
    service.figures.close()


@pytest.fixture(scope="session")
def named_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    publish_initial_version(by_name(folder), SnapshotStore(folder / "snapshots"))
    return folder


@pytest.fixture
def named(named_folder: Path, tmp_path: Path) -> Config:
    (tmp_path / "snapshots").symlink_to(named_folder / "snapshots")
    return by_name(tmp_path)
