"""A service by name that clients of Personalizer can ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastbandit.settings.service import Config
from tests.serving.little_named import by_name


@pytest.fixture
def make(named_folder: Path, tmp_path: Path) -> Callable[..., Config]:
    """Return what makes the config of a service, with settings of one's own."""

    def made(**settings: Any) -> Config:
        if not (tmp_path / "snapshots").exists():
            (tmp_path / "snapshots").symlink_to(named_folder / "snapshots")
        own = {"personalizer__enabled": True, "reward__kind": "real", "arms__file": ""}
        return by_name(tmp_path, **own | settings)

    return made


@pytest.fixture
def config(make: Callable[..., Config]) -> Config:
    return make()
