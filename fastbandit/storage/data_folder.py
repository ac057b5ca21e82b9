"""Folders that hold data on this machine: a service's, datasets, and copies of shared logs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LOG_FILE = "events.db"
"""The log in every data folder of a service."""
CHECKPOINTS = "training"
"""The folder there with checkpoints of an update that is under way."""


def data_folder(data: Path | None) -> Path:
    """Return the folder that holds data: the one named, else FASTBANDIT_DATA, else a cache."""
    named = data or os.environ.get("FASTBANDIT_DATA")
    return Path(named).expanduser() if named else _cache_folder()


def _cache_folder() -> Path:
    variable, usual = "XDG_CACHE_HOME", ".cache"
    if sys.platform == "win32":
        variable, usual = "LOCALAPPDATA", "AppData/Local"
    elif sys.platform == "darwin":
        variable, usual = "", "Library/Caches"
    return Path(os.environ.get(variable) or Path.home() / usual) / "fastbandit"
