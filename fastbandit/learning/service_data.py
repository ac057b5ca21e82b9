"""The log and the snapshots of a service, as a learner reads them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path

from fastbandit.files.atomic import mark_of
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import Event, EventLog
from fastbandit.storage.shared import AnyLog, open_log, service_store

_PAGE = 10_000


def read_events(log: EventLog, after: int, until: float, *, most: float = inf) -> Iterator[Event]:
    """Read a log in pages, after one event and up to another."""
    while after < until and most > 0:
        events = log.read(after=after, limit=_PAGE)
        yield from (event for event in events if event.seq <= until)
        if not events:
            return
        after, most = events[-1].seq, most - len(events)


class ServiceData:
    """A data folder with its snapshot store, and its log once there is one."""

    def __init__(self, config: Config) -> None:
        self.folder = Path(config.server.data_dir)
        self.store = service_store(config)
        self._url = config.log.url
        self._log: AnyLog | None = None

    @property
    def log(self) -> AnyLog | None:
        """The log, opened when it is first found."""
        if self._log is None and (self._url or (self.folder / LOG_FILE).exists()):
            self._log = open_log(self._url, self.folder, is_reader=True)
        return self._log

    def events(self, *, after: int, until: float = inf, most: float = inf) -> Iterator[Event]:
        """Read events after one and up to another; no page is read after `most` events."""
        return iter(()) if self.log is None else read_events(self.log, after, until, most=most)

    def pointer(self) -> tuple[int, int] | None:
        """Return what differs whenever a version was published; None before the first."""
        return mark_of(self.store.pointer)

    def close(self) -> None:
        self.store.close()
        if self._log is not None:
            self._log.close()
