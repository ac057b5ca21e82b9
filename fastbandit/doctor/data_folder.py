"""Checks of a service's data folder: its file system, how fast it syncs, and the log in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from fastbandit.doctor.finding import Finding, State, fine
from fastbandit.errors import FastbanditError

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre")
_FORGETFUL = ("tmpfs", "ramfs")
_FULL, _NEARLY_FULL = 100 * 2**20, 2**30
_SYNCS, _SLOW_SYNC = 20, 0.010


def check_data_folder(folder: Path) -> Iterator[Finding]:
    """Look at a folder, and what is in it; one that cannot be written to is not looked at on."""
    first = check_writable(folder)
    yield first
    if first.state == "broken":
        return
    yield finding_for_space(shutil.disk_usage(folder).free)
    yield finding_for_kind(kind_of(folder))
    yield finding_for_syncs(sync_seconds(folder))
    yield check_sqlite_version()
    yield check_log(folder)


def check_writable(folder: Path) -> Finding:
    """Look at whether files can be made in a folder."""
    name = "data folder"
    if not folder.is_dir():
        fix = f"Run: mkdir -p {folder}"
        return Finding(name, "broken", f"{folder} is no folder", "Nothing can be kept.", fix)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return fine(name, f"{folder} can be written to")
    except OSError as error:
        return Finding(
            name,
            "broken",
            f"{folder} cannot be written to ({error.strerror})",
            "A decision is answered only after it was written down.",
            "Let the user of the service write to it, or name another folder.",
        )


def finding_for_space(free: int) -> Finding:
    """Say whether so many free bytes are enough."""
    found = f"{free / 2**30:.1f} GiB free"
    if free >= _NEARLY_FULL:
        return fine("space", found)
    why = "A full disk stops all decisions; a million of them take about half a GiB."
    state: State = "broken" if free < _FULL else "slow"
    return Finding("space", state, found, why, "Free some, or move the data folder.")


# -- the file system


def kind_of(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Give the kind of file system that a folder lies on, "" where that is not told."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    whole, found = folder.resolve(), ("", "")
    for line in lines:
        _, place, kind, *_ = line.split()
        place = place.replace("\\040", " ")
        if whole.is_relative_to(place) and len(place) >= len(found[0]):
            found = (place, kind)
    return found[1]


def finding_for_kind(kind: str) -> Finding:
    """Say whether a log can be kept on a kind of file system."""
    name = "file system"
    if kind in NETWORK or kind.startswith("fuse.sshfs"):
        why = "SQLite's log ahead needs shared memory and locks, which networks do not give."
        fix = "Keep the data folder on a disk of this machine."
        return Finding(name, "broken", f"{kind}, a network's", why, fix)
    if kind in _FORGETFUL:
        why = "What was acknowledged is gone when the machine stops."
        return Finding(name, "broken", f"{kind}, in memory", why, "Keep the data folder on a disk.")
    if kind == "overlay":
        return fine(name, "overlay: as long as its container lives; mount a volume to keep it")
    return fine(name, kind or "not told on this system")


def sync_seconds(folder: Path) -> list[float]:
    """Time some writes that are synced, as each group of decisions is."""
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        seconds = []
        for _ in range(_SYNCS):
            started = perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            seconds.append(perf_counter() - started)
    return seconds


def finding_for_syncs(seconds: list[float]) -> Finding:
    """Say whether a disk syncs quickly enough."""
    middle = median(seconds)
    found = f"{1e3 * middle:.2f} ms, the median of {len(seconds)}; at most {1e3 * max(seconds):.1f}"
    if middle <= _SLOW_SYNC:
        return fine("sync", found)
    why = "Every answer waits for one sync; those that arrive together share it."
    return Finding("sync", "slow", found, why, "Use an SSD, best one with a protected cache.")


# -- the log


def check_sqlite_version() -> Finding:
    """Look at whether SQLite is one that loses nothing."""
    try:
        import apsw

        from fastbandit.storage.sqlite_log import check_sqlite
    except ModuleNotFoundError as error:
        return Finding(
            "SQLite",
            "missing",
            f"{error.name} is not installed",
            "The log of a service is a file of SQLite.",
            "Run: pip install 'fastbandit[serve]'",
        )
    try:
        check_sqlite()
    except FastbanditError as error:
        return Finding("SQLite", "broken", str(error), fix="Run: pip install -U apsw")
    return fine("SQLite", apsw.sqlite_lib_version())


def check_log(folder: Path) -> Finding:
    """Look at the version of the log in a folder, or of the copy of a shared one."""
    try:
        from fastbandit.storage.local_copy import COPY
        from fastbandit.storage.log_file import LOG_FILE
        from fastbandit.storage.log_reader import one_moment_of
        from fastbandit.storage.log_schema import VERSION, version_of
    except ModuleNotFoundError as error:
        return Finding("log", "missing", f"not read: {error.name} is not installed")
    path, of = folder / LOG_FILE, ""
    if not path.exists() and (folder / COPY / LOG_FILE).exists():
        path, of = folder / COPY / LOG_FILE, "the copy of a shared log: "
    if not path.exists():
        return fine("log", f"none yet; a new one gets version {VERSION}")
    try:
        with one_moment_of(path) as connection:
            found = version_of(connection, path)
    except FastbanditError as error:
        why = "A service does not start on a log that it cannot read."
        fix = "Do as it says, or restore a backup."
        if of:
            why = "The console and the commands that read a shared log read this copy."
            fix = f"Remove the folder {path.parent}: it is copied anew."
        return Finding("log", "broken", str(error), why, fix)
    older = "" if found == VERSION else f", brought to {VERSION} when a service starts"
    return fine("log", f"{of}version {found}{older}")
