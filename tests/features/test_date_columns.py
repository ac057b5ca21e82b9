"""Dates: a trend, and where in the day, the week and the year they lie."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from fastbandit.errors import SettingError
from fastbandit.features.date_columns import Date
from fastbandit.features.tables import InUtc


def one(column: Date, value: object) -> list[float]:
    out = np.zeros(column.width, dtype=np.float32)
    column.writer(0)(value, out)
    return list(out.tolist())


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1970-01-02", 86_400.0),
        (date(1970, 1, 2), 86_400.0),
        (datetime(1970, 1, 1, 0, 0, 1, 500_000), 1.5),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -1.0),
        (np.datetime64("1970-01-01T00:01"), 60.0),
    ],
)
def test_dates_are_seconds_since_1970(value: object, seconds: float) -> None:
    assert Date("at").seconds(value) == seconds


def test_a_quarter_of_a_day_is_a_quarter_of_its_cycle() -> None:
    found = one(Date("at", cycles=("day",), std=86_400.0), "1970-01-01T06:00")

    assert found == pytest.approx([0.0, 0.25, 1.0, 0.0], abs=1e-6)


def test_a_date_without_a_zone_is_of_the_zone_declared() -> None:
    oslo = Date("at", zone="Europe/Oslo")

    assert oslo.seconds("2024-07-01T12:00") == oslo.seconds("2024-07-01T10:00Z")
    assert oslo.seconds("2024-01-01T12:00") == oslo.seconds("2024-01-01T11:00Z")


@pytest.mark.parametrize(
    ("zone", "winter"), [("Europe/Oslo", "2024-03-30T07:00Z"), ("UTC", "2024-03-30T06:00Z")]
)
def test_cycles_follow_the_clocks_of_the_zone_across_a_change(zone: str, winter: str) -> None:
    column = Date("at", zone=zone, cycles=("day",), std=1e9)

    before, after = one(column, winter), one(column, "2024-03-31T06:00Z")  # both at 8 in Oslo

    assert before[2:] == after[2:]


def test_a_table_and_a_row_have_the_same_clocks() -> None:
    oslo = Date("at", zone="Europe/Oslo", std=1e9)
    times = [f"2024-{month:02}-{day}T0{hour}:30Z" for month in (3, 10) for day in (26, 27, 31)
             for hour in range(4)]  # fmt: skip
    out = np.zeros((len(times), oslo.width), dtype=np.float32)

    oslo.fill(times, out)

    assert out.tolist() == [one(oslo, time) for time in times]


@pytest.mark.parametrize("seconds", [-1e15, 1e15])
def test_a_number_beyond_all_calendars_has_a_place_in_cycles(seconds: float) -> None:
    assert len(one(Date("at", zone="Europe/Oslo", unit="s"), seconds)) == 8


def test_days_of_a_zone_have_no_cycle_of_the_day() -> None:
    days = ["2024-01-01", "2024-07-05"]

    assert Date("at", zone="Europe/Oslo").fitted(days).cycles == ("week", "year")


def test_times_that_came_with_a_zone_are_in_utc() -> None:
    oslo, times = Date("at", zone="Europe/Oslo"), np.array(["2024-07-01T10:00"], "datetime64[s]")
    both = np.zeros((2, 1, oslo.width), dtype=np.float32)

    oslo.fill(times.view(InUtc), both[0])
    oslo.fill(["2024-07-01T12:00"], both[1])

    assert both[0].tobytes() == both[1].tobytes()


def test_numbers_are_dates_where_a_unit_says_so() -> None:
    assert Date("at", unit="ms").seconds(1500) == 1.5


def test_days_alone_have_no_cycle_of_the_day() -> None:
    assert Date("at").fitted(["2024-01-01", "2024-01-05"]).cycles == ("week", "year")


def test_an_unknown_cycle_is_refused() -> None:
    with pytest.raises(SettingError, match="'month'"):
        Date("at", cycles=("month",))
