"""Durations as ISO 8601 writes them: P1DT2H3M4.5S."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?\Z"
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def seconds_of(text: str) -> float | None:
    """Return how long a duration is, None where that is none."""
    found = _FORM.match(text)
    if found is None or text.endswith(("P", "T")):
        return None
    return sum(float(found[name]) * size for name, size in _SECONDS.items() if found[name])


def duration_of(seconds: float) -> str:
    """Write so many seconds as a duration."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "H"), (minutes, "M"), (round(rest, 6), "S")]
    time = "".join(f"{size:g}{unit}" for size, unit in parts if size)
    return (
        f"P{f'{days:g}D' if days else ''}{f'T{time}' if time else ''}".removesuffix("P") or "PT0S"
    )
