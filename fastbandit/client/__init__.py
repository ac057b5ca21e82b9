"""A client of the decision service: deadlines, safe retries, a fallback and a spool.

Needs the extra `fastbandit[client]`, and neither torch nor NumPy.
"""

from __future__ import annotations

from fastbandit.errors import MissingExtraError

try:
    from fastbandit.client.calls import Fallback
    from fastbandit.client.client import AsyncClient, Client
    from fastbandit.client.delivery import NOT_SENT, SPOOLED, Flushed
    from fastbandit.client.retries import Retries
    from fastbandit.client.shapes import (
        ArmUpsert,
        Baseline,
        DiscardArmsAnswer,
        Reward,
        Selected,
        UpsertArmsAnswer,
    )
    from fastbandit.client.spool import Spool
except ModuleNotFoundError as error:
    if error.name not in {"httpx", "msgspec"}:
        raise
    raise MissingExtraError(
        f"The client needs {error.name}, which is not installed. Run: "
        f"pip install 'fastbandit[client]'"
    ) from error

__all__ = [
    "NOT_SENT",
    "SPOOLED",
    "ArmUpsert",
    "AsyncClient",
    "Baseline",
    "Client",
    "DiscardArmsAnswer",
    "Fallback",
    "Flushed",
    "Retries",
    "Reward",
    "Selected",
    "Spool",
    "UpsertArmsAnswer",
]
