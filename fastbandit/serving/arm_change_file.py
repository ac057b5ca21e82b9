"""Changes of the arms as this machine knows them, in a file: a start may find no log."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import DecodeError, Struct, json

from fastbandit.files.atomic import replacing, write_synced
from fastbandit.storage.events import ArmsChanged

_LOGGER = logging.getLogger("fastbandit.serving")


class KnownChanges(Struct, frozen=True):
    """All changes after the number `after`, up to the last that was known: `catalogue`."""

    after: int
    catalogue: int
    changes: list[ArmsChanged] = []


class ArmChangeFile:
    """Stores what is known in a file of lines: what it begins with, then a change in each.

    Where it cannot be written there is no file, rather than one that lacks a change.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> KnownChanges | None:
        """Read what is known; None where nothing was stored. A line that was cut off never was."""
        try:
            first, *lines = self._path.read_bytes().split(b"\n")[:-1]
            found = json.decode(first, type=KnownChanges)
        except (OSError, ValueError):
            return None
        changes = []
        for line in lines:
            try:
                changes.append(json.decode(line, type=ArmsChanged))
            except DecodeError:
                break  # of the last add, which was not synced
        catalogue = max([found.catalogue, *(change.seq for change in changes)])
        return KnownChanges(found.after, catalogue, changes)

    def write(self, known: KnownChanges) -> None:
        """Store this in place of what is there."""
        lines = [
            json.encode(KnownChanges(known.after, known.catalogue)),
            *map(json.encode, known.changes),
        ]
        try:
            with replacing(self._path) as beside:
                write_synced(beside, [line + b"\n" for line in lines])
        except OSError as error:
            self._forget(error)

    def add(self, changes: Sequence[ArmsChanged]) -> None:
        """Store changes that come after all that are stored; on return they are synced."""
        try:
            with self._path.open("rb+") as file:
                file.seek(0, os.SEEK_END)
                file.writelines(json.encode(change) + b"\n" for change in changes)
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            return  # it could not be written: the next snapshot begins it anew
        except OSError as error:
            self._forget(error)

    def _forget(self, error: OSError) -> None:
        self._path.unlink(missing_ok=True)
        _LOGGER.error("changes of the arms cannot be stored here", extra={"reason": str(error)})
