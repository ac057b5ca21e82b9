"""The log and the snapshots of a service, as a learner reads them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path

from fastbandit.settings.service import Config
from fastbandit.storage.archive import Archive
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import Event, EventLog
from fastbandit.storage.log_match import check_log
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
        self._url, self._store_url = config.log.url, config.snapshots.url
        self.reward, self.declared = config.reward, config.context.read_schema()
        self._log: AnyLog | None = None

    @property
    def log(self) -> AnyLog | None:
        """The log, opened when it is first found; raises where it is not that of the snapshots."""
        if self._log is None and (self._url or (self.folder / LOG_FILE).exists()):
            log = open_log(self._url, self.folder, is_reader=True)
            check_log(log, self.store, self.folder)
            self.store.name_log(log.identity)
            self._log = log
        return self._log

    def events(self, *, after: int, until: float = inf, most: float = inf) -> Iterator[Event]:
        """Read events after one and up to another; no page is read after `most` events.

        Those that left the log are read from its archive.
        """
        if self.log is None:
            return
        archive = self._archive_after(after)
        last = 0 if archive is None else archive.last
        if archive is not None and after < last:
            yield from archive.events(after=after, until=until)
        yield from read_events(self.log, max(after, last), until, most=most)

    def _archive_after(self, seq: int) -> Archive | None:
        """Return the archive, whole where it holds events after a number; None where none do."""
        archived = getattr(self.log, "archived", None)
        if archived is None:
            return Archive(self.folder / "archive")
        if seq >= archived:
            return None
        from fastbandit.storage.shared_archive import SharedArchive

        return SharedArchive(self._url, self._store_url, self.folder).followed()

    def pointer(self) -> tuple[int, int] | None:
        """Return what differs whenever a version was published; None before the first."""
        return self.store.mend_pointer()

    def close(self) -> None:
        self.store.close()
        if self._log is not None:
            self._log.close()
