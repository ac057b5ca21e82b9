"""Files of SQLite whose pages carry checksums: a bit that turned is an error, never an answer.

The checksums are those of SQLite's own extension cksumvfs, which the package apsw brings along
for most systems. A file has them from the start, by 8 bytes reserved in each page, or never.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from fastbandit.errors import LogError

RESERVED = 8
_RESERVED_AT = 20  # in the header of a file


@cache
def checksums() -> str | None:
    """Return the file system of SQLite that writes and checks checksums, None where there is none.

    It is loaded once for a process, and used only where it is named.
    """
    try:
        from apsw import sqlite_extra
    except ImportError:
        return None
    if sqlite_extra.has("cksumvfs") is None:
        return None
    load_checksums(sqlite_extra.path("cksumvfs"))
    return "cksmvfs"


def load_checksums(library: str) -> None:
    """Let a library with cksumvfs write through what is the default, which it stays."""
    default = apsw.vfs_names()[0]
    with closing(apsw.Connection(":memory:")) as loader:
        loader.enable_load_extension(True)
        loader.load_extension(library, "sqlite3_cksumvfs_init")
    apsw.set_default_vfs(default)  # files of others are none of our business


def connect(path: Path, *, is_reader: bool = False) -> apsw.Connection:
    """Open a file of SQLite; one that is new gets checksums where that can be."""
    writes = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    flags = apsw.SQLITE_OPEN_READONLY if is_reader else writes
    is_new = not path.exists() or path.stat().st_size == 0
    vfs = checksums()
    if vfs is None and not is_reader and not is_new and has_checksums(path):
        raise LogError(
            f"A file whose pages carry checksums needs SQLite's cksumvfs to be written: {path} has "
            f"them, and this build of apsw has no cksumvfs. Run: pip install -U apsw"
        )
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    if is_new and vfs is not None and not is_reader:
        connection.reserve_bytes("main", RESERVED)
    return connection


def all_rows(connection: apsw.Connection, query: str, *values: Any) -> list[Any]:
    return connection.execute(query, values).fetchall()


def has_checksums(path: Path) -> bool:
    """Return whether the pages of a file carry checksums."""
    with path.open("rb") as file:
        return file.read(_RESERVED_AT + 1)[_RESERVED_AT:] == bytes([RESERVED])


def is_damage(error: BaseException) -> bool:
    """Return whether an error of SQLite says that a file is not as it was written."""
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return True
    code = getattr(error, "extendedresult", 0)
    return code == apsw.SQLITE_IOERR_DATA
