"""Disks that take nothing: full ones, files that cannot be written to, and how to mend them."""

from __future__ import annotations

import errno
import resource
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fastbandit.errors import SettingError


class NotPermittedError(SettingError):
    """A disk that cannot be staged here."""


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[None]:
    """Mount a file system of its own in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "fastbandit-chaos", str(folder))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def fill(folder: Path) -> None:
    """Write a file until the disk is full."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def make_room(folder: Path) -> None:
    """Remove the file that fills a disk."""
    (folder / "filler").unlink()


def limit_files(pid: int, size: int) -> None:
    """Let a process write no file beyond a size, from now on."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def set_immutable(paths: Iterable[Path], is_immutable: bool) -> None:
    """Make files immutable, even for those that have them open; or writable again."""
    there = [str(path) for path in paths if path.exists()]
    if there:
        _run("chattr", "+i" if is_immutable else "-i", *there)


def why_not_immutable(home: Path) -> str:
    """Say why files cannot be marked here so that open ones refuse to be written to."""
    path = home / "trial"
    try:
        with path.open("wb", buffering=0) as file:
            set_immutable([path], True)
            try:
                file.write(b"x")
            except PermissionError:
                return ""
            finally:
                set_immutable([path], False)
    except NotPermittedError as error:
        return str(error)
    return "The file system here lets immutable files be written to that are open."


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotPermittedError(
            f"This needs the program {command[0]}, which is not there."
        ) from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        raise NotPermittedError(f"`{command[0]}` is not permitted here: {said}") from error
