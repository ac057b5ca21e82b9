"""What each worker of a service counts, sent to one owner and added up there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fastbandit.serving.metrics import WINDOW_SECONDS, Histogram, Metrics, Window

Counts = dict[str, Any]
"""Every count of some metrics as JSON holds it, by name."""


def counts_of(metrics: Metrics) -> Counts:
    """Return all that metrics count; windows, which are times, are sent on their own."""
    found: Counts = {}
    for name, value in vars(metrics).items():
        if name.startswith("_"):
            continue
        if isinstance(value, int):
            found[name] = value
        elif isinstance(value, Counter):
            found[name] = list(value.items())
        elif isinstance(value, Histogram):
            found[name] = [value.counts, value.total]
    return found


def add_counts(metrics: Metrics, counts: Counts) -> None:
    """Add what another process counted, which may be of JSON."""
    for name, came in counts.items():
        own = getattr(metrics, name)
        if isinstance(own, int):
            setattr(metrics, name, own + came)
        elif isinstance(own, Counter):
            for value, count in came:
                own[tuple(value) if isinstance(value, list | tuple) else value] += count
        else:
            own.counts = [a + b for a, b in zip(own.counts, came[0], strict=True)]
            own.total += came[1]


def joined_windows(windows: Iterable[Window]) -> list[Window]:
    """Return one window for all that began in the same seconds, oldest first."""
    found: dict[int, Window] = {}
    for one in windows:
        at = int(one.at // (1000 * WINDOW_SECONDS))
        other = found.get(at)
        found[at] = one if other is None else _both(one, other)
    return [found[at] for at in sorted(found)]


def _both(one: Window, other: Window) -> Window:
    selects = one.selects + other.selects
    p50 = (one.selects * one.p50_s + other.selects * other.p50_s) / selects
    return Window(min(one.at, other.at), selects, p50, max(one.p99_s, other.p99_s))
