"""A request that is sent again under the same id gets the answer of the first time."""

from __future__ import annotations

from typing import Any

from msgspec import json

from fastbandit.serving.problems import Rejection
from fastbandit.serving.shadow import named_arm
from fastbandit.storage.deferral import revealed
from fastbandit.storage.event_rows import arms_in
from fastbandit.storage.events import DecisionMade


def check_same_request(stored: DecisionMade, made: DecisionMade, *, is_named: bool) -> None:
    """Reject an id that stands for the decision of another request.

    Where callers name the arm of the baseline (`is_named`), that needs to be the same as well.
    """
    stored, made = revealed(stored), revealed(made)
    if not _ask_the_same(stored, made) or (is_named and named_arm(stored) != named_arm(made)):
        raise Rejection(
            409,
            "id taken",
            "This id stands for the decision of another request.",
            fix="Send an id of its own with each request; a retry sends the same one again.",
            field="id",
            value=made.id,
        )


def _ask_the_same(stored: DecisionMade, made: DecisionMade) -> bool:
    """Return whether two decisions answer one request; meanwhile arms may have come or gone."""
    before, now = stored.eligible, made.eligible
    if isinstance(before, list) and isinstance(now, list):
        is_part = set(before) <= set(now) or set(now) <= set(before)
    else:
        is_part = before == now
    return (
        is_part
        and all(getattr(stored, name) == getattr(made, name) for name in ("context", "explored"))
        and _offered(stored) == _offered(made)
        and len(stored.arms) == len(made.arms)
    )


def _offered(made: DecisionMade) -> Any:
    """Return the arms that came with a request, with features as they are read from a log."""
    return None if made.offered is None else arms_in(json.encode(made.offered).decode())
