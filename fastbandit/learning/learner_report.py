"""What a learner says of itself: in its data folder, and to all machines while it leads."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastbandit.files.atomic import write_atomic
from fastbandit.storage.data_folder import CHECKPOINTS

REPORT = "learner.json"
OTHER_LEADS = "Another learner holds the lease; this one waits for it."
_LOGGER = logging.getLogger("fastbandit.learning")
_STILL_SECONDS = 45.0  # without a checkpoint, of which there is one a second or so
_LEAST_SECONDS, _TIMES = 300.0, 5.0  # without progress, or times the last version took


class LearnerReport:
    """The report of a learner, and how long ago it made progress.

    Another may lead once a version makes none for several times what the last one took, from its
    training to its publishing. Where none was made, how long one takes is not known.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._checkpoints = folder / REPORT, folder / CHECKPOINTS
        self._notes: dict[str, Any] = {}
        self._is_written = False
        self._began = self._progressed = time.monotonic()
        self._took: float | None = None
        self._logged = 0.0

    def write(self, notes: dict[str, Any]) -> None:
        """Write down what the learner is doing, where that changed."""
        if notes == self._notes and self._is_written:
            return
        now = self._progressed = time.monotonic()
        if self._notes.get("state") == "training":
            is_made = notes["state"] != "failed" and notes["seconds"] is not None
            self._took = now - self._began if is_made else None
        self._began, self._notes, self._is_written = now, notes, False
        with suppress(OSError):  # where it finds no room, learning goes on
            write_atomic(self._path, json.dumps(notes).encode(), sync=False)
            self._is_written = True

    def progressed(self) -> None:
        """Note that the version being made came a step further."""
        self._progressed = time.monotonic()

    def to_others(self) -> dict[str, Any] | None:
        """Return what others hear of the leader; None while another should lead.

        It is empty where there is nothing to say yet.
        """
        notes = self._notes
        if self._is_hung():
            if self._logged != self._progressed:
                _LOGGER.error("the training stands still: the lease is not renewed")
            self._logged = self._progressed
            return None
        if not notes or notes["error"] == OTHER_LEADS:
            return {}
        due = {} if notes["measured_at"] is None else {"measured_at": time.monotonic()}
        still = {"stands_still": True} if stands_still(self._checkpoints) else {}
        return {**aged(notes), **due, **still}

    def _is_hung(self) -> bool:
        if self._took is None or self._notes.get("state") != "training":
            return False
        return time.monotonic() - self._progressed > max(_LEAST_SECONDS, _TIMES * self._took)


def aged(notes: dict[str, Any]) -> dict[str, Any]:
    """Return what a learner said; a version that is due got later meanwhile."""
    found = dict(notes)
    if (measured_at := found.pop("measured_at", None)) is not None:
        since = max(0.0, time.monotonic() - measured_at)  # one clock for all processes
        found["lag_seconds"] = round(found["lag_seconds"] + since, 3)
    return found


def stands_still(checkpoints: Path) -> bool:
    """Return whether a training that wrote checkpoints has written none for a while."""
    try:
        times = [one.stat().st_mtime for one in checkpoints.iterdir()]
    except OSError:  # there are none, or they are being removed
        return False
    return bool(times) and abs(time.time() - max(times)) > _STILL_SECONDS
