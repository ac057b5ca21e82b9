"""Data folders that only their owner can read: contexts, rewards and keys are nobody else's."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOGGER = logging.getLogger("fastbandit.files")
_OTHERS = 0o077
_FILES = ("events.db*", "spool.db*", "keys.json*", "learner*", "audits.json", "*.lock")
_FOLDERS = ("archive", "copy", "deltas", "history", "receipts", "snapshots", "training")


def make_private(folder: Path) -> None:
    """Make a data folder of a service that nobody else reads; tighten the one that is there.

    From now on all that this process writes, and those that it starts, is its user's alone.
    """
    write_privately()
    folder.mkdir(parents=True, exist_ok=True)
    tightened = 0
    for path in _parts(folder):
        try:
            mode = path.lstat().st_mode & 0o7777
            if mode & _OTHERS:
                path.chmod(mode & ~_OTHERS)
                tightened += 1
        except FileNotFoundError:
            continue  # a draft that is gone
        except OSError as error:
            said = "other users may read what is in the data folder"
            _LOGGER.warning(said, extra={"path": str(path), "error": str(error)})
    if tightened:
        said = "other users could read what is in the data folder, and can no more"
        _LOGGER.warning(said, extra={"folder": str(folder), "count": tightened})


def write_privately() -> None:
    """Have all that this process writes from now on be its user's alone."""
    os.umask(_OTHERS)


@contextmanager
def privately() -> Iterator[None]:
    """Have all that this process writes meanwhile be its user's alone."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def private_file(path: Path) -> None:
    """Make an empty file that nobody else reads, unless there is one."""
    with suppress(OSError):  # whoever opens it says why not
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _parts(folder: Path) -> Iterator[Path]:
    """Return a data folder and what a service has written there, but links."""
    yield folder
    for path in (one for pattern in (*_FILES, *_FOLDERS) for one in folder.glob(pattern)):
        if not path.is_symlink():
            yield path
            if path.is_dir():
                yield from (one for one in path.rglob("*") if not one.is_symlink())
