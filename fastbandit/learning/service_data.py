"""The log and the snapshots of a service, as a learner reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fastbandit.settings.service import Config
from fastbandit.storage.events import Event
from fastbandit.storage.log_file import LOG_FILE
from fastbandit.storage.shared import AnyLog, open_log, open_store

_PAGE = 10_000


class ServiceData:
    """A data folder with its snapshot store, and its log once there is one."""

    def __init__(self, config: Config) -> None:
        self.folder = Path(config.server.data_dir)
        self.store = open_store(config.log.url, config.snapshots.url, self.folder)
        self._url = config.log.url
        self._log: AnyLog | None = None

    @property
    def log(self) -> AnyLog | None:
        """The log, opened when it is first found."""
        if self._log is None and (self._url or (self.folder / LOG_FILE).exists()):
            self._log = open_log(self._url, self.folder, is_reader=True)
        return self._log

    def events(
        self, *, after: int, until: int | None = None, most: int | None = None
    ) -> Iterator[Event]:
        """Read events in pages, up to event `until`; no page begins after `most` events."""
        log = self.log
        while log is not None and (until is None or after < until):
            events = log.read(after=after, limit=_PAGE)
            yield from (event for event in events if until is None or event.seq <= until)
            most = None if most is None else most - len(events)
            if not events or (most is not None and most <= 0):
                return
            after = events[-1].seq

    def pointer(self) -> tuple[int, int] | None:
        """Return what differs whenever a version was published; None before the first."""
        try:
            found = os.stat(self.store.pointer)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino

    def close(self) -> None:
        """Let go of the log and the store."""
        self.store.close()
        if self._log is not None:
            self._log.close()
