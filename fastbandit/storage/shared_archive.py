"""The archive of a log that machines share: days in the store of the snapshots, listed in its log.

A day is uploaded under a name of its own, and then named by a row of `archived_days`: so the row
always names files that are whole. Each machine that reads the archive has a copy in its folder
`archive`, which follows the rows: a day that was written anew is fetched anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from fastbandit.errors import DataError
from fastbandit.files.atomic import making_folder, raising, sync_folders, write_atomic
from fastbandit.files.locks import locking
from fastbandit.settings.passwords import hide_password
from fastbandit.storage.archive import Archive
from fastbandit.storage.postgres_connection import Connection, Server, rows
from fastbandit.storage.shared_files import fetch, locate, upload

_SOURCE = "source"  # a file in a day that is here: where it was fetched from
_SECONDS = 10.0
_DAYS = "SELECT day, first, last, url, files FROM archived_days ORDER BY day"
_WRITE = """
INSERT INTO archived_days (day, first, last, url, files) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (day) DO UPDATE SET url = excluded.url, files = excluded.files
"""


class ArchivedDay(NamedTuple):
    """A day as the log names it; `files` holds the size and SHA-256 of each."""

    day: str
    first: int
    last: int
    url: str
    files: dict[str, tuple[int, str]]


class SharedArchive:
    """Days under `url`, and a copy of them in the data folder of this machine."""

    def __init__(self, log_url: str, url: str, folder: Path, *, schema: str = "fastbandit") -> None:
        self._server = Server(log_url, schema=schema, timeout_seconds=_SECONDS)
        self._url, self._lock = f"{url.rstrip('/')}/archive", folder / "archive.lock"
        self.local = Archive(folder / "archive")

    def followed(self) -> Archive:
        """Return the copy of this machine, brought in line with the days that the log names."""
        connect = self._server.connect
        with self._server.reporting("read"), closing(connect(is_reader=True)) as connection:
            self.follow(connection)
        return self.local

    def days(self, connection: Connection) -> dict[str, ArchivedDay]:
        """Return the days that the log names."""
        return {row[0]: ArchivedDay(*row) for row in rows(connection, _DAYS)}

    def follow(self, connection: Connection) -> None:
        """Bring the copy of this machine in line with the days that the log names."""
        with self._changing():
            days = self.days(connection)
            for path in self.local.folder.iterdir():
                if path.name not in days and (path / _SOURCE).exists():  # else it is being written
                    shutil.rmtree(path)
            for day in days.values():
                self._fetch(day)

    def _fetch(self, day: ArchivedDay) -> None:
        path = self.local.folder / day.day
        with suppress(OSError):
            if (path / _SOURCE).read_text(encoding="utf-8") == day.url:
                return
        shutil.rmtree(path, ignore_errors=True)
        with making_folder(path) as draft:
            for name, (size, digest) in day.files.items():
                fetch(f"{day.url}/{name}", draft / name, size=size, digest=digest)
            write_atomic(draft / _SOURCE, day.url.encode())
            sync_folders(draft)

    def publish(self, connection: Connection, day: str) -> None:
        """Upload a day of this machine's copy, and have the log name it in place of what it did."""
        with self._changing():
            self._publish(connection, day)

    def _publish(self, connection: Connection, day: str) -> None:
        before, path = self.days(connection).get(day), self.local.folder / day
        first, last = self.local.bounds(day)
        url = f"{self._url}/{day}-{token_hex(4)}"
        (path / _SOURCE).unlink(missing_ok=True)
        files = upload(path, url)
        connection.execute(_WRITE, (day, first, last, url, json.dumps(files)))
        write_atomic(path / _SOURCE, url.encode())
        if before is not None:
            self._remove(before.url)

    @contextmanager
    def rewriting(self, connection: Connection) -> Iterator[Callable[[str], None]]:
        """Yield what is called before a day is written anew here; then upload those days.

        Where that does not come to its end, they are fetched again, as they were. Until then no
        other process of this machine follows the log: it would fetch them meanwhile.
        """
        begun = set[str]()

        def begin(day: str) -> None:
            (self.local.folder / day / _SOURCE).unlink(missing_ok=True)
            begun.add(day)

        with self._changing():
            yield begin
            for day in sorted(begun):
                self._publish(connection, day)

    def remove_unnamed(self, connection: Connection) -> None:
        """Remove days of this machine's copy that were begun, and that the log never named."""
        with self._changing():
            self.local.remove_drafts()
            for day in {*self.local.days()} - {*self.days(connection)}:
                shutil.rmtree(self.local.folder / day)

    def _remove(self, url: str) -> None:
        system, path = locate(url)
        with suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Have this machine's copy alone; errors of the store become ours."""
        needs = f"An archive needs a store that can be used: {hide_password(self._url)} cannot"
        with raising(DataError, needs, fix="See that it is there, and can be written to."):
            self.local.folder.mkdir(parents=True, exist_ok=True)
            with locking(self._lock):
                yield
