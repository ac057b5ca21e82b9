"""Connections to PostgreSQL that give up in time, and errors that name no password."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fastbandit.errors import LogError, LogTooSlowError, LogUnavailableError
from fastbandit.packages import missing

try:
    import psycopg as psycopg
    import psycopg_pool
    from psycopg import sql as sql
except ModuleNotFoundError as error:
    raise missing(error.name or "psycopg", what="A log in PostgreSQL") from error

if TYPE_CHECKING:
    from psycopg.abc import PQGen

Pool: TypeAlias = "psycopg_pool.ConnectionPool[Connection]"
_Found = TypeVar("_Found")
_OLDEST = 130_000
_UNAVAILABLE = frozenset(
    {
        "25006",  # a standby: whoever wrote before was replaced
        "25P03",  # we held the lock of the log for too long
        "53300",  # too many connections
        "55P03",  # a lock was not given in time
        "57014",  # a statement took too long
        "57P01",  # stopped by hand
        "57P02",  # another process of the server crashed
        "57P03",  # starting up, or shutting down
        "57P05",  # idle for too long
    }
)
"""What a server says of itself while it cannot be used, besides saying nothing."""
_OF_EVENTS = ("22", "23", "54")  # what is wrong with what came, by the first two characters

logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # our errors say the same


class TooLate(psycopg.OperationalError):
    """No answer came in time."""


class Connection(psycopg.Connection[Any]):
    """A connection on which nothing waits longer than `limit` seconds.

    The server's own timeouts do not help where its process, or its disk, hangs. Once an answer
    was too late, `is_late`, the connection is closed: what comes next on it is not known.
    """

    limit = 10.0
    is_late = False

    def wait(
        self, gen: PQGen[_Found], interval: float = 0.1, timeout: float | None = None
    ) -> _Found:
        """Let the connection work until an answer is there, or it is too late."""
        try:
            return super().wait(_within(self.limit, gen), interval)
        except TooLate:
            self.is_late = True
            self.close()
            raise


def _within(seconds: float, gen: PQGen[_Found]) -> PQGen[_Found]:
    deadline = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise TooLate(f"no answer within {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as done:
        found: _Found = done.value
        return found


class Server:
    """A database and a schema in it, as a URL names them.

    `timeout_seconds` is how long a connection, and each answer, may take.
    """

    def __init__(self, url: str, *, schema: str, timeout_seconds: float) -> None:
        self.schema, self.timeout_seconds = schema, timeout_seconds
        try:
            parts = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # whose text may hold the URL, with its password
            parts = {}
        if not parts:
            raise LogError(
                "A log in PostgreSQL needs a URL: what came cannot be read as one. Name "
                "one such as postgresql://user@host:5432/database."
            )
        self._settings: dict[str, Any] = {
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": int(1000 * timeout_seconds),
            **parts,
            "connect_timeout": max(2, round(timeout_seconds)),
            "application_name": parts.get("application_name", "fastbandit"),
        }
        host = str(parts.get("host", parts.get("hostaddr", "localhost")))
        self.name = f"{host}:{parts.get('port', 5432)}/{parts.get('dbname', '')}, {schema}"

    def connect(
        self, prepare: Callable[[Connection], object] = id, *, is_reader: bool = False
    ) -> Connection:
        """Make one connection, at once, and prepare it; a writer's commits are durable."""
        target = {} if is_reader else {"target_session_attrs": "read-write"}
        settings = {**target, **self._settings}
        connection = Connection.connect(**settings, autocommit=True, prepare_threshold=0)
        try:
            self._configure(connection)
            if not is_reader:
                _check_durable(connection, self.name)
            prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def pool(self, most: int) -> Pool:
        """Make a pool of connections that only read, each page of them at one moment."""

        def configure(connection: Connection) -> None:
            self._configure(connection)
            connection.autocommit = False
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        return psycopg_pool.ConnectionPool(
            kwargs={**self._settings, "autocommit": True, "prepare_threshold": 0},
            connection_class=Connection,
            configure=configure,
            check=psycopg_pool.ConnectionPool.check_connection,
            min_size=0,
            max_size=most,
            timeout=self.timeout_seconds,
            reconnect_timeout=self.timeout_seconds,
            open=True,
        )

    @contextmanager
    def reporting(self, done: str) -> Iterator[None]:
        """Turn what psycopg says into our errors.

        Of what is "used" or "pruned", the answer to a commit may be what was lost. A server that is
        there and has no room, or no such table, is unavailable too: only what it says of events
        themselves stays wrong when it is mended.
        """
        try:
            yield
        except psycopg.Error as error:
            said = " ".join((error.diag.message_primary or str(error)).split())  # no row's content
            if is_unavailable(error):
                is_known = done in ("read", "written to")
                fate = "nothing was written" if is_known else "whether a change was made shows then"
                kind = LogTooSlowError if is_slow(error) else LogUnavailableError
                raise kind(
                    f"The event log needs its server to be {done}: {self.name} cannot be "
                    f"reached ({type(error).__name__}: {said}). See that it runs and takes "
                    f"connections; {fate}."
                ) from error
            is_of_events = (error.sqlstate or "").startswith(_OF_EVENTS)
            raise (LogError if is_of_events else LogUnavailableError)(
                f"The event log needs tables that can be {done}: those at {self.name} cannot "
                f"({type(error).__name__}: {said}). Mend that; nothing that was acknowledged "
                f"is lost."
            ) from error

    def _configure(self, connection: Connection) -> None:
        connection.limit = self.timeout_seconds
        milliseconds = int(1000 * self.timeout_seconds)
        settings: dict[str, str] = {
            "search_path": self.schema,
            "statement_timeout": f"{milliseconds}",
            "idle_in_transaction_session_timeout": f"{milliseconds // 2}",  # others wait for us
            "client_min_messages": "warning",
            "default_transaction_isolation": "read committed",  # sees what it waited for
            "jit": "off",
        }
        with connection.pipeline():
            for name, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error says that a server cannot be used now."""
    if isinstance(error, psycopg.InterfaceError):
        return True
    is_silent = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return is_silent or state in _UNAVAILABLE or (state or "").startswith("08")


def is_slow(error: BaseException) -> bool:
    slow = (TooLate, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
    return isinstance(error, slow)


@contextmanager
def taking_its_time(connection: Connection) -> Iterator[None]:
    """Do within one transaction what may take as long as it will."""
    limit, connection.limit = connection.limit, inf
    try:
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            yield
    finally:
        connection.limit = limit


def rows(connection: Connection, query: Any, *values: Any) -> list[tuple[Any, ...]]:
    return connection.execute(query, values or None).fetchall()


def select(connection: Connection, query: str, *values: Any) -> psycopg.Cursor[Any]:
    """Ask for rows, whose values come in binary."""
    cursor = connection.cursor(binary=True)
    return cursor.execute(query, values)


def copy_into(connection: Connection, query: str, block: bytes) -> None:
    """Copy rows as text into a table, if there are any."""
    if block:
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.write(block)


def _check_durable(connection: Connection, name: str) -> None:
    """Raise unless what is committed outlives a power cut."""
    if connection.info.server_version < _OLDEST:
        raise LogError(
            f"The event log needs PostgreSQL 13 or newer: {name} is of version "
            f"{connection.info.server_version / 10_000:g}. Upgrade it."
        )
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        ((value,),) = rows(connection, "SELECT current_setting(%s)", setting)
        if value == "off":
            raise LogError(
                f"The event log needs a server that syncs what it commits: {name} has {setting} "
                f"= off. Set it to on, for this role and database as well."
            )
