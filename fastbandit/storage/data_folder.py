"""Folders that hold data on this machine: a service's, datasets, and copies of shared logs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LOG_FILE = "events.db"
"""The log in every data folder of a service."""


def data_folder(data: Path | None) -> Path:
    """Return the folder that holds data: the one named, else FASTBANDIT_DATA, else a cache."""
    if data is not None:
        return Path(data).expanduser()
    named = os.environ.get("FASTBANDIT_DATA")
    return Path(named).expanduser() if named else _cache_folder()


def _cache_folder() -> Path:
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA")
        return (Path(cache) if cache else Path.home() / "AppData" / "Local") / "fastbandit"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fastbandit"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "fastbandit"
