"""Arms that come with a request: what they are called once they are learned from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

PLACEHOLDER = "\x1f"
"""The one arm of a catalogue that has none: all arms come with requests."""


def with_id(id: str | int, features: Any) -> dict[str, Any]:
    """Return features of any names with the id among them: what repeats is learned by it, too."""
    return {"id": id if isinstance(id, str) else str(id), **(features or {})}


def arm_count(bandit: Any) -> int:
    """Return how many arms a bandit can choose by itself: none where it has a placeholder."""
    return len(bandit) - (PLACEHOLDER in bandit)


def offer_name(id: str | int, features: Any) -> str | int:
    """Return the id under which an arm with these features is learned; its own if it has none.

    The same features have the same name, so an arm that is offered again is known again. No id of
    an arm is such a name: those have no control characters.
    """
    features = features.tolist() if hasattr(features, "tolist") else features
    if not features:
        return id
    written = json.dumps([id, features], sort_keys=True).encode()
    return f"{id}{PLACEHOLDER}{blake2b(written, digest_size=12).hexdigest()}"


def offered_ids(names: Iterable[Any]) -> frozenset[str]:
    """Return the ids, as text, of those among some names that are an `offer_name`."""
    ids = (one.rpartition(PLACEHOLDER) for one in names if isinstance(one, str))
    return frozenset(id for id, mark, _ in ids if mark)
