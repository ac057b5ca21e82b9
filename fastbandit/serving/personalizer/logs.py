"""What a log holds: from when to when, and how much."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastbandit.serving.personalizer.schemas import DateRange, LogsProperties
from fastbandit.serving.problems import Rejection
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.log_reader import one_moment_of

_RANGE = """
SELECT min(at), max(at), count(*), (SELECT count(*) FROM rewards) FROM decisions WHERE arms <> '[]'
"""


def log_properties(folder: Path) -> LogsProperties:
    """Return the time that the decisions of a log span, and the counts of its events."""
    with one_moment_of(folder / LOG_FILE) as log:
        row: Any = next(iter(log.execute(_RANGE)))
    first, last, decisions, rewards = row
    if not decisions:
        raise Rejection(404, "no logs", "The log holds no events yet.", fix="Send a rank first.")
    return LogsProperties(DateRange(_written(first), _written(last)), decisions, rewards)


def _written(at: int) -> str:
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
