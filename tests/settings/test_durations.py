"""Durations are read and written as ISO 8601 has them."""

from __future__ import annotations

import pytest

from fastbandit.settings.durations import duration_of, seconds_of


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "PT0S"),
        (5, "PT5S"),
        (600, "PT10M"),
        (86_400, "P1D"),
        (90_061.5, "P1DT1H1M1.5S"),
        (0.00001, "PT0.00001S"),
        (59.123456, "PT59.123456S"),
        (2e11, "P2314814DT19H33M20S"),
    ],
)
def test_a_duration_is_read_as_it_is_written(seconds: float, text: str) -> None:
    assert duration_of(seconds) == text
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(("text", "days"), [("P1W", 7), ("P2W", 14), ("P1W1D", 8)])
def test_weeks_are_read(text: str, days: int) -> None:
    assert seconds_of(text) == days * 86_400


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "ten minutes", "PT-5S", "PT5M "])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert seconds_of(text) is None
