"""What an event of Personalizer is called in the log."""

from __future__ import annotations

import re
from hashlib import blake2b

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")  # without a colon, which a slot's id has
_OF_SLOT = re.compile(r"(?=.{1,128}\Z)[A-Za-z0-9._-]+:[A-Za-z0-9._-]{1,64}\Z")


def decision_id(event: str) -> str:
    """Return the id of the decision of an event: its own, or a hash where that is too odd."""
    return event if _PLAIN.match(event) else _hashed(event, b"event")


def slot_id(event: str, slot: str) -> str:
    """Return the id of the decision of one slot of an event: that of no other event or slot."""
    own = f"{event}:{slot}"
    return own if _OF_SLOT.match(own) else _hashed(f"{event}\n{slot}", b"slot")


def _hashed(text: str, person: bytes) -> str:
    """Return a hash as an id with two colons, which no other id of an event has."""
    found = blake2b(text.encode("utf-8", "replace"), digest_size=20, person=person)
    return f"event::{found.hexdigest()}"
