"""What is known of the log and of the model in service, and the model as one file."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from fastbandit.serving.personalizer.schemas import DateRange, LogsProperties, ModelProperties
from fastbandit.serving.problems import Rejection
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.snapshot_version import Snapshot
from fastbandit.storage.sqlite_files import all_rows

_RANGE = """
SELECT min(at), max(at), count(*), (SELECT count(*) FROM rewards WHERE status <> 'unknown')
FROM decisions WHERE arms <> '[]'
"""  # without arms are those that are deferred, whose rewards are of unknown events


def log_properties(folder: Path) -> LogsProperties:
    """Return the time that the decisions of a log span, and the counts of its events."""
    with one_moment_of(folder / LOG_FILE) as log:
        ((first, last, decisions, rewards),) = all_rows(log, _RANGE)
    if not decisions:
        raise Rejection(404, "no logs", "The log holds no events yet.", fix="Send a rank first.")
    span = DateRange(_written(first / 1e6), _written(last / 1e6))
    return LogsProperties(span, decisions, rewards)


def archive_of(snapshot: Snapshot) -> bytes:
    """Return the frozen bandit of a version as a ZIP file, to unpack and load."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(snapshot.frozen.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(snapshot.frozen))
    return held.getvalue()


def properties_of(snapshot: Snapshot, first: Snapshot) -> ModelProperties:
    """Return when a version was made, and the oldest that is still here."""
    made = [(one.folder / "snapshot.json").stat().st_mtime for one in (first, snapshot)]
    return ModelProperties(*map(_written, made))


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
