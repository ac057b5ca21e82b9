"""Work on many workers: processes of one machine, or of a Ray cluster.

Names are imported when they are first used: a command that only names an engine starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastbandit.cluster.engine import Engine as Engine
    from fastbandit.cluster.engine import News as News
    from fastbandit.cluster.engine import SerialEngine as SerialEngine
    from fastbandit.cluster.engine import make_engine as make_engine
    from fastbandit.cluster.scoring import Scored as Scored
    from fastbandit.cluster.scoring import ScoringSettings as ScoringSettings
    from fastbandit.cluster.scoring import score_contexts as score_contexts

_HOMES = {
    "Engine": "engine",
    "SerialEngine": "engine",
    "News": "engine",
    "Scored": "scoring",
    "ScoringSettings": "scoring",
    "make_engine": "engine",
    "score_contexts": "scoring",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
