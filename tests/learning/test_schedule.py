"""When a new version is due."""

from __future__ import annotations

import pytest

from fastbandit.learning.schedule import Mark, Schedule

SCHEDULE = Schedule(fresh=100, growth=0.5, seconds=60.0)
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("fresh", "learned", "seconds", "is_due"),
    [
        (99, 0, 0, False),
        (100, 0, 0, True),
        (100, 1000, 0, False),
        (500, 1000, 0, True),
        (1, 1000, 60, True),
        (1, 1000, 59, False),
        (0, 0, 1000, False),
    ],
)
def test_a_version_is_due_after_enough_interactions_or_enough_time(
    fresh: int, learned: int, seconds: int, is_due: bool
) -> None:
    at = 7 + seconds * SECOND

    assert SCHEDULE.is_due(Mark(3, 7), fresh=fresh, learned=learned, at=at) is is_due


def test_after_a_refusal_time_alone_is_not_enough() -> None:
    assert not SCHEDULE.is_due(Mark(3, None), fresh=99, learned=0, at=10**15)
    assert SCHEDULE.is_due(Mark(3, None), fresh=100, learned=0, at=0)
