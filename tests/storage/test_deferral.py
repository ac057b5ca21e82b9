"""Deferred decisions: hidden in the log until they are activated."""

from __future__ import annotations

import pytest
from msgspec import structs

from fastbandit.storage.deferral import activated, deferred
from fastbandit.storage.events import DecisionMade

MADE = DecisionMade("d", [0.5], ["x", "y"], [1.0, 0.5], 1, 0, 0, 9, eligible=["x", "y"], other="y")


@pytest.mark.parametrize(("spooled_at", "made_at"), [(None, 20), (7, 7)])
def test_an_activated_one_is_whole_and_has_the_time_it_was_made_at(
    spooled_at: int | None, made_at: int
) -> None:
    stored = structs.replace(deferred(MADE, "d"), seq=3, at=20, made_at=spooled_at)

    assert (stored.arms, stored.other) == ([], None)
    assert activated(stored) == structs.replace(MADE, made_at=made_at)
