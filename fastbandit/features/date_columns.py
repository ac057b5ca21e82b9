"""Columns of dates and times: a trend, and where in the day, the week and the year they lie."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import part, ranged, setting
from fastbandit.errors import SettingError, ValueOfColumnError
from fastbandit.features.columns import (
    ANY,
    CLIP,
    Row,
    Values,
    Write,
    is_missing,
    listed,
    read_each,
    to_float,
    wrong,
)
from fastbandit.features.tables import InUtc

_SECONDS = {"day": 86_400, "week": 604_800, "year": 31_556_952}
_STEPS = {"day": 1440, "week": 168, "year": 366}  # of a cycle: its table has so many
_QUARTER = 900.0  # seconds in which no zone changes its clocks twice
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITHOUT_ZONE = datetime(1970, 1, 1)


@part("column", name="date")
class Date:
    """A date or a time: a trend, and where in the day, the week and the year it lies.

    One without a zone counts as of `zone`, and cycles follow the clocks there. Numbers are no
    dates, unless `unit` says what they count since 1970: "s" or "ms".
    """

    name: str
    zone: str = "UTC"
    unit: str = setting(default="", choices=("", "s", "ms"))
    cycles: tuple[str, ...] = ("day", "week", "year")
    mean: float = ranged(ANY, default=0.0)
    std: float = setting(default=1.0, above=0)
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    def __post_init__(self) -> None:
        unknown = [cycle for cycle in self.cycles if cycle not in _SECONDS]
        if unknown:
            raise SettingError(
                f"The cycles of {self.name!r} need to be some of {', '.join(_SECONDS)}: got "
                f"{unknown[0]!r}. Name one of them."
            )
        self._place()

    @property
    def width(self) -> int:
        return 2 + 2 * len(self.cycles)

    def _place(self) -> Any:
        try:
            return UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise SettingError(
                f"The date {self.name!r} needs a zone such as 'Europe/Oslo': got {self.zone!r}. "
                f"Correct it, or leave it out for 'UTC'."
            ) from error

    def seconds(self, value: Any) -> float:
        """Return the seconds since 1970 in UTC, NaN where a value is missing."""
        if type(value) is str and value:
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise self._wrong(value) from None
        elif is_missing(value):
            return math.nan
        elif isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        elif isinstance(value, int | float) and not isinstance(value, bool) and self.unit:
            return float(value) / (1.0 if self.unit == "s" else 1000.0)
        if isinstance(value, datetime):
            if value.tzinfo is None and self.zone == "UTC":
                return _since(value)
            with_zone = value if value.tzinfo is not None else value.replace(tzinfo=self._place())
            return (with_zone - _EPOCH).total_seconds()
        if isinstance(value, date):
            return self.seconds(datetime(value.year, value.month, value.day))
        raise self._wrong(value)

    def _wrong(self, value: Any) -> ValueOfColumnError:
        fix = "Write it as 2024-12-31 or 2024-12-31T18:30:00+00:00."
        return wrong(self, "a date", value, fix)

    def _all(self, values: Values) -> NDArray[np.float64]:
        is_utc = self.zone == "UTC" or isinstance(values, InUtc)
        if isinstance(values, np.ndarray) and values.dtype.kind == "M" and is_utc:
            micros = np.asarray(values).astype("datetime64[us]")
            since = micros.astype(np.int64)
            return np.where(np.isnat(micros), np.nan, since / 1e6)
        return np.array(read_each(self.seconds, listed_dates(values)), dtype=np.float64)

    def _local(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return times as clocks in the zone show them."""
        if self.zone == "UTC":
            return seconds
        quarters, rows = np.unique(seconds // _QUARTER, return_inverse=True)
        return seconds + np.array([_offset(self.zone, one) for one in quarters.tolist()])[rows]

    def fitted(self, values: Values) -> Date:
        seconds = self._all(values)
        seconds = seconds[~np.isnan(seconds)]
        if not len(seconds):
            return self
        std = float(seconds.std())
        cycles = self.cycles
        local = self._local(seconds)
        if (local % 86_400 == local[0] % 86_400).all():
            cycles = tuple(cycle for cycle in cycles if cycle != "day")
        return replace(
            self, mean=float(seconds.mean()), std=std if std > 1e-3 else 1.0, cycles=cycles
        )

    def writer(self, at: int) -> Write:
        seconds, mean, std, zone = self.seconds, self.mean, self.std, self.zone
        tables = [
            (at + 2 + 2 * number, _SECONDS[one] / _STEPS[one], _STEPS[one], *_cycle(one).tolist())
            for number, one in enumerate(self.cycles)
        ]

        def write(value: Any, out: Row) -> None:
            found = seconds(value)
            if found != found:
                out[at] = 1.0
                return
            trend = (found - mean) / std
            out[at + 1] = CLIP if trend > CLIP else -CLIP if trend < -CLIP else trend
            if zone != "UTC":
                found += _offset(zone, found // _QUARTER)
            for place, step, steps, sines, cosines in tables:
                number = int(found // step) % steps
                out[place] = sines[number]
                out[place + 1] = cosines[number]

        return write

    def fill(self, values: Values, out: Row) -> None:
        seconds = self._all(values)
        gaps = np.isnan(seconds)
        known = np.where(gaps, self.mean, seconds)
        out[:, 1] = np.clip((known - self.mean) / self.std, -CLIP, CLIP)
        local = self._local(known)
        for number, one in enumerate(self.cycles):
            steps = (local // (_SECONDS[one] / _STEPS[one])).astype(np.int64) % _STEPS[one]
            for half, table in enumerate(_cycle(one)):
                out[:, 2 + 2 * number + half] = table[steps]
        if gaps.any():
            out[gaps] = 0.0
            out[:, 0] = gaps

    def from_text(self, text: str) -> Any:
        if not self.unit:
            return text
        found = to_float(text)
        return text if math.isinf(found) else found

    def shape(self) -> dict[str, Any]:
        if self.unit:
            return {"type": ["number", "null"]}
        return {"type": ["string", "null"], "format": "date-time"}

    def says(self) -> str:
        where = "" if self.zone == "UTC" else f" in {self.zone}"
        return f"trend; cycles of {', '.join(self.cycles)}{where}" if self.cycles else "trend"


def listed_dates(values: Values) -> list[Any]:
    """Return dates as a list; those of NumPy keep their type, in microseconds."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return list(values.astype("datetime64[us]"))
    return listed(values)


def _since(value: datetime) -> float:
    """Return the seconds since 1970 of a time in UTC that names no zone."""
    return (value - _WITHOUT_ZONE).total_seconds()


@lru_cache(2**16)
def _offset(zone: str, quarter: float) -> float:
    """Return how many seconds the clocks of a zone are ahead of UTC."""
    at = _EPOCH + timedelta(seconds=min(max(quarter * _QUARTER, -6e10), 2.5e11))
    return (at.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) - at).total_seconds()


@cache
def _cycle(name: str) -> NDArray[np.float64]:
    """Return the sine and the cosine of each step of a cycle."""
    angles = [2 * math.pi * step / _STEPS[name] for step in range(_STEPS[name])]
    return np.array([list(map(math.sin, angles)), list(map(math.cos, angles))])
