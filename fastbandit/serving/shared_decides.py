"""Who decides in shadow mode for all who share a log, as a row in its database says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastbandit.errors import FastbanditError, LogUnavailableError
from fastbandit.serving.decides import Decides, keep_decides
from fastbandit.storage.events import Who
from fastbandit.storage.postgres_connection import Connection, Server, rows
from fastbandit.storage.postgres_schema import prepare

_FOLLOW_SECONDS = 1.0
_TIMEOUT_SECONDS = 3.0
_TOLD = "who, extract(epoch FROM since)::float, version"
_READ = f"SELECT {_TOLD} FROM decides"
_WRITE = f"""
UPDATE decides SET who = %s, since = now(), version = (SELECT version FROM pointer)
RETURNING {_TOLD}
"""


class SharedDecides:
    """The row that says who decides; one thread at a time reads or writes it."""

    def __init__(self, url: str, *, schema: str = "fastbandit") -> None:
        self._server = Server(url, schema=schema, timeout_seconds=_TIMEOUT_SECONDS)
        self._connection: Connection | None = None

    def read(self) -> Decides:
        """Read who decides: the baseline, until someone says otherwise."""
        return self._ask(_READ)

    def write(self, decides: Who) -> Decides:
        """Say who decides from now on; services that run follow within two seconds."""
        return self._ask(_WRITE, decides)

    def close(self) -> None:
        """Let go of the database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, query: str, *values: Any) -> Decides:
        with self._server.reporting("used" if values else "read"):
            try:
                ((who, since, version),) = rows(self._opened(), query, *values)
            except BaseException:
                self.close()  # the next call connects anew
                raise
        return Decides(who, round(since, 3), version)

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._server.connect()
            prepare(self._connection, self._server.schema, name=self._server.name)
        return self._connection


class DecidesFollower:
    """Keeps the file of who decides in line with the database; `trouble` is why it cannot.

    While the database is away the file stays as it is: what was told last holds.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.trouble: str | None = None
        self._shared, self._folder = SharedDecides(url), folder

    async def follow(self) -> None:
        """Bring the file in line once."""
        try:
            keep_decides(self._folder, await asyncio.to_thread(self._shared.read))
            self.trouble = None
        except LogUnavailableError:
            pass  # the log itself says so
        except FastbanditError as error:
            self.trouble = " ".join(str(error).split())

    async def keep_following(self) -> None:
        """Bring it in line each second, until cancelled."""
        try:
            while True:
                await asyncio.sleep(_FOLLOW_SECONDS)
                await self.follow()
        finally:
            self._shared.close()
