"""Work on many workers: processes of one machine, or of a Ray cluster.

What scores contexts is imported when it is first used: a command that only names an engine starts
at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastbandit.cluster.engine import Engine, News, SerialEngine, make_engine

if TYPE_CHECKING:
    from fastbandit.cluster.scoring import Scored, ScoringSettings, score_contexts

__all__ = [
    "Engine",
    "News",
    "Scored",
    "ScoringSettings",
    "SerialEngine",
    "make_engine",
    "score_contexts",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.scoring"), name)
