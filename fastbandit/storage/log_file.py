"""What the file of a log is called, in every data folder."""

from __future__ import annotations

LOG_FILE = "events.db"
