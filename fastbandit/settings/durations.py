"""Durations as ISO 8601 writes them: P1DT2H3M4.5S, P2W."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?\Z"
)
_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def seconds_of(text: str) -> float | None:
    """Return how long a duration is, None where that is none."""
    found = _FORM.match(text)
    if found is None or text.endswith(("P", "T")):
        return None
    return sum(float(found[name]) * size for name, size in _SECONDS.items() if found[name])


def duration_of(seconds: float) -> str:
    """Write so many seconds as a duration."""
    days, rest = divmod(round(seconds, 6), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "H"), (minutes, "M"), (rest, "S")]
    sizes = [(f"{size:.6f}".rstrip("0").rstrip("."), unit) for size, unit in parts]
    time = "".join(f"{size}{unit}" for size, unit in sizes if size != "0")
    found = f"P{days:.0f}DT{time}".replace("P0D", "P")
    return found.removesuffix("T") if found != "PT" else "PT0S"
