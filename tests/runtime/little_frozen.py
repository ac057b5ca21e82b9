"""Small frozen bandits for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakes import vectors_of

from fastbandit import Bandit, FrozenBandit

CONTEXTS = vectors_of(30, 4, seed=2)


def frozen_bandit(**changes: Any) -> FrozenBandit:
    """Freeze a bandit after one update on a few contexts of 4 features."""
    bandit = Bandit(**{"context": 4, "reward": "real", "seed": 3, **changes})
    taken = bandit.select(CONTEXTS)
    bandit.update(contexts=CONTEXTS, arms=taken.arms, rewards=CONTEXTS[:, 0])
    return bandit.freeze()


def arrays_of(folder: Path) -> Path:
    """Return the file of arrays in a folder that holds a frozen bandit."""
    (path,) = folder.glob("arrays*")
    return path


def fresh(frozen: FrozenBandit) -> FrozenBandit:
    """Return a frozen bandit in the same state that goes its own way (its parts never change)."""
    return FrozenBandit(*frozen.parts)
