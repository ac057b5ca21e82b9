"""One moment of a log, to be read in any number of steps while the service writes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from fastbandit.errors import LogError
from fastbandit.storage.log_schema import version_of
from fastbandit.storage.sqlite_files import connect


@contextmanager
def one_moment_of(path: Path) -> Iterator[apsw.Connection]:
    """Open a log such that all that is read is of the moment at which it was opened."""
    if not path.exists():
        raise LogError(
            f"A data folder needs a log named {path.name}: found none in {path.parent}. Name the "
            f"folder that the service writes to."
        )
    try:
        with closing(connect(path, is_reader=True)) as connection:
            connection.set_busy_timeout(5_000)
            connection.execute("BEGIN")
            version_of(connection, path)
            yield connection
    except apsw.Error as error:
        raise LogError(
            f"The event log needs a file that can be read: {path} cannot "
            f"({type(error).__name__}: {error}). Let it be read, or restore a backup of it."
        ) from error


def check_integrity(path: Path) -> None:
    """Raise unless SQLite finds nothing wrong in the whole of a log."""
    with one_moment_of(path) as connection:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    if found != ["ok"]:
        raise LogError(
            f"A log needs to be whole: SQLite says of {path}: {'; '.join(found)}. Restore "
            f"a backup from before the damage."
        )
