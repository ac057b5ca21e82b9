"""An event log in PostgreSQL, to which any number of services append.

An append is one transaction. Its rows are copied into temporary tables; then it locks the one
row of `head`, which holds the last number and time, and numbers its events from there. So
numbers follow the order in which they can be seen, and who has read up to a number never
misses an event before it. SQL judges rewards, in the same transaction.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from uuid import uuid4

from fastbandit.errors import LogError, LogUnavailableError, SettingError
from fastbandit.storage import postgres_sql as sql
from fastbandit.storage.column_marks import NOTHING, Marks, SecretNames
from fastbandit.storage.event_rows import Find, to_change, to_decisions, to_events, to_tick
from fastbandit.storage.events import ArmsChanged, DecisionMade, Event, Outcome, TimePassed
from fastbandit.storage.log_clock import run_time
from fastbandit.storage.log_input import check_events
from fastbandit.storage.postgres_connection import (
    Connection,
    Pool,
    Server,
    copy_into,
    is_slow,
    is_unavailable,
    psycopg,
    rows,
    select,
)
from fastbandit.storage.postgres_days import DAY, make_days
from fastbandit.storage.postgres_rows import Staged, stage
from fastbandit.storage.postgres_schema import check_version, prepare
from fastbandit.storage.shared_clock import SharedClock

_MOST_STAGED = 8_000
_FEW = 8  # rewards for which arms are looked through while others wait
_READERS = 4  # connections that read at a time, besides the one that writes
_PAUSE = 60.0  # seconds until partitions that could not be made are tried again


class PostgresLog:
    """Remembers events in a schema of the database that `url` names; a reader cannot write.

    Appends are for one thread at a time; any may read. `clock` returns the time in microseconds:
    by default the server's, so that services on several machines share one; its steps are noticed
    by `run`, which returns for how many microseconds this machine has run. No answer of the
    server is waited for longer than `timeout_seconds`. `reached` is called at each step of an
    upgrade and an append. `secret` are columns that the log is to remember as such.

    It connects, and makes or checks its tables, when it is first used: a log may be opened while
    its server is unavailable.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "fastbandit",
        is_reader: bool = False,
        clock: Callable[[], int] | None = None,
        run: Callable[[], int] | None = None,
        timeout_seconds: float = 10.0,
        secret: SecretNames = NOTHING,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema):
            raise SettingError(
                f"A schema needs a name of small letters, digits and _: got {schema!r}. Name "
                f"another, such as fastbandit."
            )
        self._server = Server(url, schema=schema, timeout_seconds=timeout_seconds)
        self._is_reader, self.clock, self._reached = is_reader, clock, reached
        self._is_steady, self.steady = (
            clock is None or run is not None,
            SharedClock(run or run_time),
        )
        self._writer, self._appends = uuid4(), 0
        self._connection: Connection | None = None
        self._pool: Pool | None = self._server.pool(_READERS)
        self._seen = (0, 0)
        self._staged = 0
        self._day, self._try_days = -1, 0.0
        self._is_prepared, self._secret = False, secret

    # -- writing

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none: on return they outlive a power cut.

        Where the server is lost while it commits, and is not back in time, nobody knows
        whether they were written; the error says so.
        """
        check_events(events)
        staged = stage(events)
        if self._is_reader:
            raise LogError(
                f"Writing needs a log that was opened for it: {self._server.name} was opened to "
                f"be read. Open another."
            )
        if not events:
            return []
        with self._server.reporting("written to"):
            connection = self._opened_again()
            try:
                return self._attempt(connection, staged)
            except psycopg.Error as error:
                if connection.is_late or is_slow(error) or not is_unavailable(error):
                    raise
                return self._attempt(self._opened_again(), staged)  # nothing was written yet

    def _attempt(self, connection: Connection, staged: Staged) -> list[Outcome]:
        """Write all within one transaction, or raise and have written nothing."""
        try:
            last, at, outcomes = self._write(connection, staged)
            newest = max((it.seq for it in outcomes if it.status != "repeated"), default=last)
            if newest > last:
                self._commit(connection, newest, at)
            else:
                connection.execute("ROLLBACK")
        except BaseException as error:
            self._undo(connection, error)
            raise
        self._make_days(at)
        return outcomes

    def _write(self, connection: Connection, staged: Staged) -> tuple[int, int, list[Outcome]]:
        """Write the rows; return the last number and the time, and the outcome of each event.

        While it has the lock it sends one statement at a time: only then does the server put an
        end to a writer that stalls, and others wait for.
        """
        for hash, text in staged.lists.items():  # before anyone waits; alone they do no harm
            connection.execute(sql.INSERT_LIST, (hash, self._now() // DAY, text))
        self._begin(connection, staged.count)
        copy_into(connection, sql.COPY_DECISIONS, staged.decisions)
        copy_into(connection, sql.COPY_REWARDS, staged.rewards)
        if staged.rewards.count(b"\n") > _FEW:
            connection.execute(sql.FIND_ARMS)
        if staged.has_subjects_of_spool:
            connection.execute(sql.FORGET_STAGED)
        self._reached("copied")
        self.steady.begin()
        clock = None if self.clock is None else self.clock()
        found = rows(connection, sql.LOCK, staged.outage, staged.outage, clock)
        ((last, at, reading, steps, skew),) = found
        self.steady.notice(steps, skew)
        if self._is_steady and (step := self.steady.step_of(reading)):
            connection.execute("ROLLBACK")
            connection.execute(sql.STEP, (step, steps))  # unless another writer was faster
            return self._write(connection, staged)
        self.steady.keep(reading)
        known: dict[int, int] = {}
        if staged.decisions:
            count = connection.execute(sql.INSERT_DECISIONS).rowcount
            known = dict(rows(connection, sql.KNOWN)) if count < staged.made else {}
        came = rows(connection, sql.INSERT_REWARDS) if staged.rewards else []
        judged = {seq - last: status for seq, status in came}
        for change in staged.changes:
            connection.execute(sql.INSERT_CHANGE, change)
        for position in staged.ticks:
            connection.execute(sql.INSERT_TICK, (position, position == 1))
        self._reached("written")
        return last, at, staged.outcomes(last, known, judged)

    def _begin(self, connection: Connection, count: int) -> None:
        """Begin with empty staging tables.

        To truncate them costs another sync of the disk; to delete all rows leaves dead ones.
        """
        empty = "DELETE FROM staged_decisions", "DELETE FROM staged_rewards"
        if self._staged > _MOST_STAGED:
            self._staged, empty = 0, ("TRUNCATE staged_decisions", "TRUNCATE staged_rewards")
        self._staged += count
        with connection.pipeline():
            for query in ("BEGIN", *empty):
                connection.execute(query)

    def _commit(self, connection: Connection, last: int, at: int) -> None:
        """Commit; return only if that was done, raise only if it was not or nobody knows."""
        self._appends += 1
        try:
            self._reached("committing")
            with connection.pipeline():
                connection.execute(sql.MOVE_ON, (last,))
                connection.execute(sql.MARK, (self._writer, self._appends, at))
                connection.execute("COMMIT")
            self._reached("committed")
        except psycopg.Error as error:
            if not is_unavailable(error):
                raise
            self._drop()
            if connection.is_late:  # to ask it would take as long again
                raise self._unknown(error) from error
            if not self._was_committed():
                raise

    def _was_committed(self) -> bool:
        """Ask the server, once it is back, whether the last append was committed."""
        try:
            connection = self._opened()
            with connection.transaction():
                connection.execute("SELECT FROM head FOR UPDATE")  # until that append has ended
                found = rows(connection, sql.MARK_OF, self._writer)
        except psycopg.Error as error:
            raise self._unknown(error) from error
        return found == [(self._appends,)]

    def _unknown(self, error: psycopg.Error) -> LogUnavailableError:
        return LogUnavailableError(
            f"The event log needs its server to say what it wrote: {self._server.name} went "
            f"away ({type(error).__name__}) while it committed. Try again: whether these "
            f"events were written shows when it is back."
        )

    def _make_days(self, at: int) -> None:
        """Make partitions ahead, once a day; where that fails it is tried again later."""
        if at // DAY <= self._day or time.monotonic() < self._try_days:
            return
        self._try_days = time.monotonic() + _PAUSE
        with suppress(psycopg.Error):
            if make_days(self._opened(), at):
                self._day, self._try_days = at // DAY, 0.0

    # -- reading

    def decision(self, id: str) -> DecisionMade | None:
        with self._server.reporting("read"), self._reading() as connection:
            for position in rows(connection, sql.POSITION_OF, id):
                found = select(connection, sql.DECISION_AT, *position).fetchall()
                return next(iter(to_decisions(found, _found_in(connection))), None)
        return None

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        seq, at = self._seen
        since = at if after >= seq else 0  # leaves out the partitions of earlier days
        with self._server.reporting("read"), self._reading() as connection:
            with connection.pipeline():
                values = after, since, limit
                cursors = [select(connection, kind + sql.SOME, *values) for kind in sql.KINDS]
            kinds = [cursor.fetchall() for cursor in cursors]
            events = to_events(kinds, limit, _found_in(connection))
        if events:
            self._seen = events[-1].seq, events[-1].at
        return events

    def changes(self, *, after: int = 0) -> list[ArmsChanged]:
        query = sql.CHANGE + " WHERE seq > %s ORDER BY seq"
        with self._server.reporting("read"), self._reading() as connection:
            found = select(connection, query, after).fetchall()
        return [to_change(row) for row in found]

    def offers(self, *, after: int, until: int) -> list[DecisionMade]:
        query = sql.DECISION + " WHERE offered IS NOT NULL AND seq > %s AND seq <= %s ORDER BY seq"
        with self._server.reporting("read"), self._reading() as connection:
            found = select(connection, query, after, until).fetchall()
            return to_decisions(found, _found_in(connection))

    def outages(self, *, after: int = 0) -> list[TimePassed]:
        with self._server.reporting("read"), self._reading() as connection:
            return [*map(to_tick, rows(connection, sql.OUTAGES, after))]

    @property
    def identity(self) -> str:
        """A random name of this log, which no other has."""
        with self._server.reporting("read"), self._reading() as connection:
            return str(rows(connection, "SELECT id FROM identity")[0][0])

    def secret(self) -> SecretNames:
        with self._server.reporting("read"), self._reading() as connection:
            return SecretNames.read(rows(connection, sql.SECRET_COLUMNS))

    def marks(self) -> Marks:
        """Return what learners and copies of this log have to follow."""
        gone = self._number("SELECT gone FROM identity")
        with self._server.reporting("read"), self._reading() as connection:
            forgotten = frozenset(seq for (seq,) in rows(connection, sql.FORGOTTEN))
            return Marks(gone, forgotten, dict(rows(connection, sql.DROPPED)))

    @property
    def archived(self) -> int:
        """The number up to which events left for the archive, 0 where none did."""
        return self._number("SELECT coalesce(max(last), 0) FROM archived_days")

    def last_change(self) -> int:
        return self._number("SELECT coalesce(max(seq), 0) FROM changes")

    @property
    def last(self) -> int:
        return self._number("SELECT last FROM head")

    @property
    def last_at(self) -> int:
        return self._number("SELECT at FROM head")

    def _number(self, query: str) -> int:
        with self._server.reporting("read"), self._reading() as connection:
            return int(rows(connection, query)[0][0])

    # -- connections

    def close(self) -> None:
        connection, pool = self._connection, self._pool
        self._connection = self._pool = None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.execute(sql.FORGET, (self._writer, 7 * DAY))
            connection.close()
        if pool is not None:
            pool.close()

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect(self._prepare_to_write)
            self._is_prepared = True
            ((at,),) = rows(self._connection, "SELECT at FROM head")
            self._make_days(max(at, self._now()))
            self._read_clock(self._connection)
        return self._connection

    def _read_clock(self, connection: Connection) -> None:
        """Know the time from before the first append on."""
        self.steady.begin()
        clock = None if self.clock is None else self.clock()
        ((reading, steps, skew),) = rows(connection, sql.READ_CLOCK, clock)
        self.steady.notice(steps, skew)
        if self.steady.is_new:
            self.steady.keep(reading)

    def _now(self) -> int:
        return time.time_ns() // 1000 if self.clock is None else self.clock()

    def _opened_again(self) -> Connection:
        """Return the connection; tables that were right before are unavailable, not wrong."""
        try:
            return self._opened()
        except LogError as error:
            if not self._is_prepared:
                raise
            raise LogUnavailableError(str(error)) from error

    def _prepare_to_write(self, connection: Connection) -> None:
        prepare(connection, self._server, reached=self._reached)
        connection.execute(sql.STAGING, prepare=False)
        for row in self._secret.rows:
            connection.execute(sql.INSERT_SECRET, row)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._pool is None:
            raise LogError("Reading needs an open log: this one was closed. Open another.")
        if not self._is_prepared:
            self._prepare()
        with self._pool.connection() as connection:
            yield connection

    def _prepare(self) -> None:
        """Make the tables before they are first read; a reader only checks them."""
        with closing(self._server.connect(is_reader=self._is_reader)) as connection:
            if self._is_reader:
                check_version(connection, self._server)
            else:
                prepare(connection, self._server, reached=self._reached)
        self._is_prepared = True

    def _undo(self, connection: Connection, error: BaseException) -> None:
        """Leave no transaction behind after an error; where that is doubtful, no connection."""
        try:
            if is_unavailable(error) or not isinstance(error, psycopg.Error):
                self._drop()
            else:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _found_in(connection: Connection) -> Find:
    return lambda hashes: rows(connection, sql.LISTS, hashes)
