"""Cores for a service, and one for its load, so that neither takes the time of the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def cores_apart() -> tuple[set[int], set[int]] | None:
    """Return the cores of a service and the one of its load; None where there are no two."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    *own, last = sorted(os.sched_getaffinity(0))
    return ({*own}, {last}) if own else None


@contextmanager
def on_cores(cores: set[int] | None) -> Iterator[None]:
    """Let this thread, and the processes that it starts, run on these cores alone, or on all."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
