"""What a test module's own `bandit` gives: the same frozen, and a folder that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hardly_trained import HARDLY_ANY

from fastbandit import Bandit, FrozenBandit


@pytest.fixture
def frozen(bandit: Bandit) -> FrozenBandit:
    return bandit.freeze()


@pytest.fixture
def saved(frozen: FrozenBandit, tmp_path: Path) -> Path:
    """A folder that holds a frozen bandit."""
    frozen.save(tmp_path / "frozen")
    return tmp_path / "frozen"


@pytest.fixture(scope="module")
def hardly_any_training() -> Iterator[None]:
    """Leave networks about as they begin, which need not be good, and let torch decide."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbandit.runtime.freezing.COMPILED_ABOVE", 10**9)
        patch.setattr("fastbandit.settings.presets._training", lambda *_, **__: HARDLY_ANY)
        yield
