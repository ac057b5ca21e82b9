"""What a test module's own `bandit` gives: the same frozen, and a folder that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit import Bandit, FrozenBandit


@pytest.fixture
def frozen(bandit: Bandit) -> FrozenBandit:
    return bandit.freeze()


@pytest.fixture
def saved(frozen: FrozenBandit, tmp_path: Path) -> Path:
    """A folder that holds a frozen bandit."""
    frozen.save(tmp_path / "frozen")
    return tmp_path / "frozen"
