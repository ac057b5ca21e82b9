"""What a check says: how it stands with one thing, why that matters, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["ok", "slow", "broken", "missing"]
"""Fine; works, but slower than it could; does not work; not there, and only some need it."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. What is fine needs no `why` and no `fix`."""

    name: str
    state: State
    found: str
    why: str = ""
    fix: str = ""


def fine(name: str, found: str) -> Finding:
    """Say that nothing is wrong."""
    return Finding(name, "ok", found)
