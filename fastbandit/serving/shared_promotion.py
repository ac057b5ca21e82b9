"""Who decides in shadow mode for all who share a log, as a row in its database says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastbandit.errors import FastbanditError, LogUnavailableError
from fastbandit.serving.promotion import Promotion, store_promotion
from fastbandit.storage.events import Who
from fastbandit.storage.postgres_connection import Connection, Server, rows
from fastbandit.storage.postgres_schema import prepare

_FOLLOW_SECONDS = 1.0
_TIMEOUT_SECONDS = 3.0
_COLUMNS = "who, extract(epoch FROM since)::float, version"
_READ = f"SELECT {_COLUMNS} FROM decides"
_WRITE = f"""
UPDATE decides SET who = %s, since = now(), version = (SELECT version FROM pointer)
RETURNING {_COLUMNS}
"""


class SharedPromotion:
    """The row that says who decides; one thread at a time reads or writes it."""

    def __init__(self, url: str, *, schema: str = "fastbandit") -> None:
        self._server = Server(url, schema=schema, timeout_seconds=_TIMEOUT_SECONDS)
        self._connection: Connection | None = None

    def read(self) -> Promotion:
        """Read who decides: the baseline, until a promotion."""
        return self._ask(_READ)

    def write(self, decides: Who) -> Promotion:
        """Say who decides from now on; services that run follow within two seconds."""
        return self._ask(_WRITE, decides)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, query: str, *values: Any) -> Promotion:
        with self._server.reporting("used" if values else "read"):
            try:
                ((who, since, version),) = rows(self._opened(), query, *values)
            except BaseException:
                self.close()  # the next call connects anew
                raise
        return Promotion(who, round(since, 3), version)

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._server.connect()
            prepare(self._connection, self._server)
        return self._connection


class PromotionFollower:
    """Brings the file of who decides in line with the database; `problem` is why it cannot.

    While the database is unavailable the file stays as it is: what it says holds.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.problem: str | None = None
        self._shared, self._folder = SharedPromotion(url), folder

    async def follow(self) -> None:
        """Bring the file in line once."""
        try:
            store_promotion(self._folder, await asyncio.to_thread(self._shared.read))
            self.problem = None
        except LogUnavailableError:
            pass  # the log itself says so
        except FastbanditError as error:
            self.problem = " ".join(str(error).split())

    async def keep_following(self) -> None:
        """Bring it in line each second, until cancelled."""
        try:
            while True:
                await asyncio.sleep(_FOLLOW_SECONDS)
                await self.follow()
        finally:
            self._shared.close()
