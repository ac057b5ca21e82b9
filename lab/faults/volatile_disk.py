"""A disk that forgets what was not synced: a file system for SQLite that can lose its power.

Files are real, and everything is passed on to them. Beside them, the disk remembers what of
each would outlive a power cut: its bytes at the last sync, the writes and truncations since,
and the names in the folder when that was last synced. A cut keeps, drops or tears each write
since by a choice of its own, so later writes can survive earlier ones.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from apsw import sqlite_extra

from fastbandit.storage.sqlite_files import checksums, load_checksums

_SECTOR = 512
_SYNCS_FOLDER = (  # SQLite syncs the folder when it first syncs such a file
    apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
)


class PowerCutError(apsw.IOError):
    """The disk has no power: nothing is written any more."""


@dataclass
class _Stored:
    """What would be found of a file: its bytes when it was synced, and what came since."""

    synced: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes | None]] = field(default_factory=list)  # None cuts it there

    def sync(self) -> None:
        for offset, data in self.since:
            _put(self.synced, offset, data)
        self.since = []

    def after_cut(self, rng: np.random.Generator) -> bytes:
        """Return the bytes that a power cut could leave."""
        found = bytearray(self.synced)
        for offset, data in self.since:
            if data is not None:
                _put_some(found, offset, data, len(self.synced), rng=rng)
            elif rng.random() < 0.5:
                _put(found, offset, None)
        return bytes(found)


class VolatileDisk:
    """The files of one folder, which this process writes through SQLite; logs as always.

    `doing` is what the cut is said to have interrupted. `steps_left` counts the writes, syncs,
    creations and removals up to the one at which the power fails; None stands for never.
    """

    def __init__(self, folder: Path, *, steps_left: int | None = None) -> None:
        self.doing, self.has_power = "opening", True
        self.interrupted, self.steps_left = "", steps_left
        self._folder = folder
        self._files = {path.name: _Stored(bytearray(path.read_bytes())) for path in _files(folder)}
        self._names = dict(self._files)  # those that would be found after a cut
        self._index: dict[str, bytes] = {}
        _system().disks[folder] = self

    def cut(self, target: Path, *, rng: np.random.Generator) -> None:
        """Take the power away, and write the files as they could be found into a new folder."""
        self._lose_power("")
        target.mkdir(parents=True)
        for name in sorted(self._names.keys() | self._files.keys()):
            found = [names.get(name) for names in (self._names, self._files)]
            file = found[int(rng.integers(2))]
            if file is not None:
                (target / name).write_bytes(file.after_cut(rng))
        for name, data in self._index.items():
            if rng.random() < 0.5:
                (target / name).write_bytes(data)

    def close(self) -> None:
        """Be an ordinary folder again."""
        del _system().disks[self._folder]

    # -- called by the file system

    def step(self, name: str, note: Callable[[], None] = lambda: None) -> None:
        """Count a step that changes the disk; `note` it, for it may have half happened."""
        if self.has_power:
            note()
            if self.steps_left is not None:
                self.steps_left -= 1
                if self.steps_left <= 0:
                    self._lose_power(name)
        if not self.has_power:
            raise PowerCutError("the disk has no power")

    def created(self, name: str) -> None:
        self._files.setdefault(name, _Stored())

    def write(self, name: str, offset: int, data: bytes | None) -> None:
        self.step(name, lambda: self._files[name].since.append((offset, data)))

    def sync(self, name: str, *, with_folder: bool) -> None:
        self.step(name)
        self._files[name].sync()
        if with_folder:
            self._names = dict(self._files)

    def removed(self, name: str, *, with_folder: bool) -> None:
        self._files.pop(name, None)
        if with_folder:
            self._names = dict(self._files)

    def _lose_power(self, name: str) -> None:
        if not self.has_power:
            return
        self.has_power = False
        is_checkpoint = self.doing == "appending" and name and not name.endswith("-wal")
        self.interrupted = "checkpointing" if is_checkpoint else self.doing
        for path in self._folder.glob("*-shm"):  # never synced, found in any state
            self._index[path.name] = path.read_bytes()


@cache
def _system() -> _System:
    """Put a file system of ours below the one that writes checksums: another copy of that.

    From now on, until `leave`, SQLite finds the copy by the name. What belongs to no disk is
    passed on.
    """
    system = _System()
    _load_copy(system.name)
    return system


def leave() -> None:
    """Let SQLite write checksums past our file system again, which threads cannot share."""
    if _system.cache_info().currsize:
        _load_copy(apsw.vfs_names()[0])
        _system.cache_clear()


def _load_copy(below: str) -> None:
    """Have another copy of what writes checksums do so through a file system."""
    default, name = apsw.vfs_names()[0], checksums()
    assert name is not None
    apsw.unregister_vfs(name)
    with tempfile.TemporaryDirectory() as folder:
        library = shutil.copy(sqlite_extra.path("cksumvfs"), folder)
        apsw.set_default_vfs(below)
        load_checksums(library)
        apsw.set_default_vfs(default)


class _System(apsw.VFS):
    """The file system that SQLite is given, with the disks whose power may fail, by folder."""

    name = "volatile"

    def __init__(self) -> None:
        self.disks: dict[Path, VolatileDisk] = {}
        super().__init__(self.name, "unix")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = Path("" if name is None else _filename(name))
        disk = self.disks.get(path.parent)
        if disk is None:
            return super().xOpen(name, flags)
        if flags[0] & apsw.SQLITE_OPEN_CREATE and not path.exists():
            disk.step(path.name, lambda: disk.created(path.name))
        return _File(disk, name, path.name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        name, disk = Path(filename).name, self.disks.get(Path(filename).parent)
        if disk is not None:
            disk.step(name, lambda: disk.removed(name, with_folder=False))
        super().xDelete(filename, syncdir)
        if disk is not None:
            disk.removed(name, with_folder=syncdir)


def _filename(name: Any) -> str:
    return name.filename() if isinstance(name, apsw.URIFilename) else name


class _File(apsw.VFSFile):
    """A real file whose changes the disk records."""

    def __init__(self, disk: VolatileDisk, path: Any, name: str, flags: list[int]) -> None:
        super().__init__("unix", path, flags)
        self._disk, self._name = disk, name
        self._syncs_folder = bool(flags[0] & _SYNCS_FOLDER)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.write(self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.write(self._name, newsize, None)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync(self._name, with_folder=self._syncs_folder)
        self._syncs_folder = False
        super().xSync(flags)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.endswith(("-shm", "-lock"))]


def _put(found: bytearray, offset: int, data: bytes | None) -> None:
    """Write into bytes, with zeros up to there, or cut them off."""
    found.extend(bytes(max(0, offset - len(found))))
    if data is None:
        del found[offset:]
    else:
        found[offset : offset + len(data)] = data


def _put_some(
    found: bytearray, offset: int, data: bytes, size: int, *, rng: np.random.Generator
) -> None:
    """Write all, nothing, the head or the tail, or let a file grow by bytes of any kind."""
    tear = int(rng.integers(offset // _SECTOR, (offset + len(data)) // _SECTOR + 1)) * _SECTOR
    tear = min(max(tear - offset, 0), len(data))
    match rng.integers(6):
        case 0 | 1:
            _put(found, offset, data)
        case 2:
            _put(found, offset, data[:tear])
        case 3:
            _put(found, offset + tear, data[tear:])
        case 4 if offset >= size:
            _put(found, offset, rng.bytes(len(data)))
