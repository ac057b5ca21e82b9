"""Decisions that nobody may see: stored, and learned from only once they are activated.

A deferred decision stands in the log without arms, so that no reward is waited for, and under a
name that no caller can send. Activated it is appended once more, whole and under its own id: the
time for its rewards begins then. Of one that never is, nothing is learned.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from fastbandit.storage.events import DecisionMade

_NAME = "deferred"
_HIDDEN = ("id", "arms", "eligible", "decided_by", "other")


def deferred_id(name: str) -> str:
    """Return the id under which a deferred decision stands in the log: no id has a space."""
    return f"{_NAME} {name}"


def deferred(made: DecisionMade, name: str) -> DecisionMade:
    """Return a decision as it stands in the log, under a name, until it is activated."""
    hidden = {field: getattr(made, field) for field in _HIDDEN}
    return structs.replace(
        made,
        id=deferred_id(name),
        arms=[],
        eligible={_NAME: hidden},
        decided_by="bandit",
        other=None,
    )


def activated(stored: DecisionMade) -> DecisionMade:
    """Return a deferred decision as it is learned from; `made_at` is when it was made."""
    hidden: dict[str, Any] = stored.eligible[_NAME]
    return structs.replace(stored, **hidden, seq=0, at=0, made_at=stored.made_at or stored.at)


def revealed(made: DecisionMade) -> DecisionMade:
    """Return a decision with its arms, deferred or not."""
    is_deferred = not made.arms and isinstance(made.eligible, dict) and _NAME in made.eligible
    return activated(made) if is_deferred else made
