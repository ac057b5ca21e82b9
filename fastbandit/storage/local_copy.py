"""A shared log as a file of this machine: same numbers, times and statuses.

Events are written as they were judged, not judged anew: so a copy of a log whose oldest days
were dropped is right too. Each page is one transaction; a copy that is broken off goes on.

The copy stands in the folder `copy` of a data folder. One process at a time brings it up to date;
the others wait for that, or take what is there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from math import inf
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import NamedTuple

import apsw

from fastbandit.errors import LogError, LogUnavailableError
from fastbandit.files.atomic import raising
from fastbandit.files.private import privately
from fastbandit.progress import Progress, silent
from fastbandit.storage.column_marks import NOTHING, Marks, MarksColumns
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.dropping import Range, drop_rows
from fastbandit.storage.events import Event, EventLog
from fastbandit.storage.forgetting import empty_wal, forget_seqs
from fastbandit.storage.log_schema import NewerLogError
from fastbandit.storage.retention import changing
from fastbandit.storage.shared import open_log
from fastbandit.storage.sqlite_files import is_damage
from fastbandit.storage.sqlite_log import SqliteLog

_LOGGER = logging.getLogger("fastbandit.storage")
COPY = "copy"
_WHOLE = "whole"  # an empty file in the copy: written to whenever nothing was missing
_PAUSE, _WAIT_SECONDS = 0.1, 5.0
_ROOM = 2**30  # bytes that are left free: a decider's spool is on the same disk
_UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


class OtherLogError(LogError):
    """A folder holds the copy of another log, or of what this one was before a restore."""


class Copied(NamedTuple):
    """The file, how many events came into it just now, its last number, and those missing yet."""

    file: Path
    events: int
    last: int
    behind: int


@privately()
def copy_log(
    source: EventLog,
    folder: str | Path,
    *,
    page: int = 5_000,
    seconds: float = inf,
    progress: Progress = silent,
) -> Copied:
    """Copy all events that a folder's log does not hold yet, up to those there are now.

    After so many seconds it leaves the rest for the next time.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    path, end, count, until = Path(folder) / LOG_FILE, source.last, 0, time.monotonic() + seconds
    secret = source.secret() if isinstance(source, MarksColumns) else NOTHING
    with closing(SqliteLog(path, secret=secret)) as copy:  # nobody else writes meanwhile
        last = copy.last
        if last and (last > end or _event(source, last) != _event(copy, last)):
            raise OtherLogError(
                f"A copy goes on from a copy of the same log: event {last:,} of the folder is not "
                f"the one of the log, which ends at {end:,}. Name an empty folder."
            )
        behind = end - last
        while behind and (not count or time.monotonic() < until):
            events = [one for one in source.read(after=last, limit=page) if one.seq <= end]
            copy.copy(events)
            last, count = copy.last, count + len(events)
            behind = end - last if events else 0  # the last days may have been dropped
            progress(last, end, f"event {last:,}")
    if isinstance(source, MarksColumns):
        _follow_marks(source.marks(), Path(folder), path)
    return Copied(path, count, last, behind)


def _follow_marks(marks: Marks, folder: Path, path: Path) -> None:
    """Forget and drop in a copy what was forgotten and dropped in its log since."""
    with closing(SqliteLog(path, is_reader=True)) as copy:
        own = copy.marks()
    fresh = sorted(marks.forgotten - own.forgotten)
    late = {n: Range(own.dropped.get(n, 0), until) for n, until in marks.dropped.items()}
    late = {name: some for name, some in late.items() if some.until > some.after}
    if fresh or late:
        with changing(folder, path) as connection:
            forget_seqs(connection, fresh)
            for name, some in late.items():
                drop_rows(connection, name, some)
            empty_wal(connection)


def _event(log: EventLog, seq: int) -> list[Event]:
    return log.read(after=seq - 1, limit=1)


@privately()
def local_copy(
    url: str,
    folder: Path,
    *,
    seconds: float = inf,
    wait_seconds: float = 60.0,
    fresh_seconds: float = 300.0,
    timeout_seconds: float = 10.0,
    warn: Callable[[str], None] = lambda note: None,
    progress: Progress = silent,
) -> Path:
    """Bring the copy of the log at a URL up to date, and return its file.

    It copies for so many seconds at most. Where another process copies for longer than
    `wait_seconds`, what is there is taken if it is fresh enough; where no answer of the database
    comes within `timeout_seconds`, however old it is. `warn` is called with a sentence on what the
    copy lacks. A folder that is not there yet is made such that only this user can read it.
    """
    copy = folder / COPY
    needs = f"The copy of a shared log needs a folder that can be written to: {folder} cannot"
    fix = "Let it be written to, or name another data folder."
    try:
        with raising(LogError, needs, fix=fix), _writing(folder, wait_seconds) as is_ours:
            if is_ours:
                opened = open_log(url, folder, is_reader=True, timeout_seconds=timeout_seconds)
                with closing(opened) as source:
                    shown = _with_room(folder, progress)
                    _copy(source, copy, seconds=seconds, warn=warn, progress=shown)
            else:
                age = time.time() - (_whole_at(copy) or -inf)
                if age > fresh_seconds or not (copy / LOG_FILE).exists():
                    raise LogError(
                        f"Reading a shared log needs a copy of it: another process makes the one "
                        f"in {copy}, and what is there is {_age(copy)}. Try again when it is done."
                    )
                warn(f"Another process copies the shared log: this is {_age(copy)}.")
    except LogUnavailableError:
        if not (copy / LOG_FILE).exists():
            raise
        warn(f"The database is unavailable: this is {_age(copy)}.")
    return copy / LOG_FILE


def change_copy(folder: Path, change: Callable[[apsw.Connection], None]) -> None:
    """Change what the copy of a log in a data folder holds, if there is one.

    One of an older version is upgraded first. One that cannot be used is removed, with all that it
    holds: it is made anew when it is next read. So is what a copying that was broken off left.
    """
    copy, path = folder / COPY, folder / COPY / LOG_FILE
    if not any(one.exists() for one in (path, *_beside(copy))):
        return
    with _writing(folder, _WAIT_SECONDS) as is_ours:
        for one in _beside(copy) if is_ours else ():  # else who writes it follows the log
            _remove(one)
        if not path.exists():
            return
        try:
            if is_ours:  # else who writes it has upgraded it
                SqliteLog(path).close()
                _remove_older(copy)
            with changing(copy, path) as connection:
                change(connection)
        except LogError as error:
            if not is_ours or not (error.__cause__ is None or is_damage(error.__cause__)):
                raise
            rmtree(copy)
            said = "the copy of a shared log could not be used and was removed: it is made anew"
            _LOGGER.warning(said, extra={"copy": str(copy), "reason": str(error)})


def _beside(copy: Path) -> tuple[Path, Path]:
    """Return where a copy is made anew, and where the one of before stands meanwhile."""
    return copy.with_name(f"{copy.name}.new"), copy.with_name(f"{copy.name}.old")


def _remove(folder: Path) -> None:
    if folder.exists():
        rmtree(folder)


def _remove_older(copy: Path) -> None:
    """Remove what an upgrade left beside a copy: it may hold what is forgotten later."""
    for older in copy.glob(f"{LOG_FILE}.version-*"):
        _LOGGER.info("the copy of a shared log was upgraded", extra={"copy": str(copy)})
        older.unlink()


def _copy(
    source: EventLog, copy: Path, *, seconds: float, warn: Callable[[str], None], progress: Progress
) -> None:
    """Go on with the copy, or with a new one beside it where it is of another log."""
    draft, old = _beside(copy)
    if draft.exists() and not copy.exists():
        draft.rename(copy)
    _remove(old)
    made = _go_on(source, copy, seconds, progress)
    if made is None:
        made = _go_on(source, draft, seconds, progress)
        if made is None:
            rmtree(draft)
            made = copy_log(source, draft, seconds=seconds, progress=progress)
        if made.behind:
            warn(
                f"The shared log is another one than before: this is {_age(copy)}, and "
                f"{made.behind:,} events are to be copied anew."
            )
            return
        copy.rename(old)
        draft.rename(copy)
        rmtree(old)
    else:
        _remove(draft)
    if made.behind:
        warn(f"The copy of the shared log is {made.behind:,} events behind.")
    else:
        (copy / _WHOLE).touch()


def _with_room(folder: Path, progress: Progress) -> Progress:
    """Return a progress that raises where the disk is nearly full; what was copied stays."""

    def show(done: int, steps: int, doing: str) -> None:
        progress(done, steps, doing)
        free = disk_usage(folder).free
        if free < _ROOM:
            raise LogError(
                f"The copy of a shared log leaves {_ROOM / 2**30:g} GiB of the disk free: "
                f"{folder} has {free / 2**30:.1f} GiB. Make room, or read the log on another "
                f"machine."
            )

    return show


def _go_on(source: EventLog, folder: Path, seconds: float, progress: Progress) -> Copied | None:
    """Copy on, or return None where a folder holds something else, or of a newer version."""
    try:
        made = copy_log(source, folder, seconds=seconds, progress=progress)
        _remove_older(folder)
        return made
    except (OtherLogError, NewerLogError):
        return None
    except LogError as error:
        if error.__cause__ is not None and is_damage(error.__cause__):
            return None
        raise


@contextmanager
def _writing(folder: Path, wait_seconds: float) -> Iterator[bool]:
    """Wait until no other process writes the copy; yield whether that is so."""
    deadline, is_ours = time.monotonic() + wait_seconds, False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / f"{COPY}.lock").open("a") as file:
        while not is_ours:
            with suppress(BlockingIOError):
                flock(file, LOCK_EX | LOCK_NB)
                is_ours = True
            if is_ours or time.monotonic() >= deadline:
                break
            time.sleep(_PAUSE)
        yield is_ours


def _age(copy: Path) -> str:
    whole = _whole_at(copy)
    if whole is None:
        return "a copy that was never whole"
    made, seconds = datetime.fromtimestamp(whole, UTC), max(0.0, time.time() - whole)
    unit, name = next((unit, name) for unit, name in _UNITS if seconds >= 2 * unit or unit == 1)
    return f"the copy of {made:%Y-%m-%d %H:%M:%S} UTC, {seconds / unit:,.0f} {name} old"


def _whole_at(copy: Path) -> float | None:
    """Return the time at which a copy lacked nothing, None where it never did."""
    with suppress(FileNotFoundError):
        return (copy / _WHOLE).stat().st_mtime
    return None
