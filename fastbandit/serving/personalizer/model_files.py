"""The model in service as one file, and what is known of it."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from fastbandit.serving.personalizer.schemas import ModelProperties
from fastbandit.storage.snapshot_version import Snapshot


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
    return ModelProperties(_made_at(first.folder), _made_at(snapshot.folder))


def _made_at(folder: Path) -> str:
    at = datetime.fromtimestamp((folder / "snapshot.json").stat().st_mtime, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
