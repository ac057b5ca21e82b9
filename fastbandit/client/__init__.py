"""A client of the decision service: deadlines, safe retries, a fallback and a spool.

Needs the extra `fastbandit[client]`, and neither torch nor NumPy.
"""

from __future__ import annotations

from fastbandit.errors import MissingExtraError

try:
    from fastbandit.client.calls import Fallback
    from fastbandit.client.clients import AsyncClient, Client
    from fastbandit.client.delivery import NOT_SENT, SPOOLED, Flushed
    from fastbandit.client.retries import Retries
    from fastbandit.client.shapes import (
        ArmToPut,
        Baseline,
        DeleteArmsAnswer,
        PutArmsAnswer,
        Reward,
        Selected,
    )
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
    "ArmToPut",
    "AsyncClient",
    "Baseline",
    "Client",
    "DeleteArmsAnswer",
    "Fallback",
    "Flushed",
    "PutArmsAnswer",
    "Retries",
    "Reward",
    "Selected",
]
