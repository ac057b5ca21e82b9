"""The one way to write a file or a folder: beside its place, whole, and then renamed to it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from fastbandit.errors import FastbanditError

_AT_ONCE = 2**20


def write_atomic(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file whole, in place of what is there; with `sync` it outlives a power cut."""
    with replacing(path, sync=sync) as beside:
        beside.write_bytes(content)


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` for a file, which then takes its place unless something raises."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield beside
        if sync:
            sync_path(beside)
        os.replace(beside, path)
        if sync:
            sync_path(path.parent)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def making_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`, which then takes its name unless something raises.

    Where `path` is there already, it needs to be an empty folder.
    """
    beside = path.with_name(f".{path.name}-{token_hex(4)}.part")
    try:
        beside.mkdir(parents=True)
        yield beside
        rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_synced(path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[int, str]:
    """Write and sync a file, or leave none; return its size and SHA-256."""
    size, synced, digest = 0, 0, hashlib.sha256()
    try:
        with path.open("wb") as file:
            for piece in _parts_of(pieces):
                size += file.write(piece)
                digest.update(piece)
                if size - synced >= _AT_ONCE:  # much at once holds up whoever syncs other files
                    sync_file(file)
                    synced = size
            sync_file(file)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return size, digest.hexdigest()


def rename(beside: Path, path: Path) -> None:
    """Rename a file or folder, such that its name outlives a power cut."""
    os.replace(beside, path)
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder, so that they outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(folder: Path) -> None:
    """Sync the names in a folder, and in all folders within it."""
    for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        sync_path(path)


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mark_of(path: Path) -> tuple[int, int] | None:
    """Return what changes whenever a file is written anew, at the cost of a stat; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


@contextmanager
def raising(
    kind: type[FastbanditError], needs: str, *, fix: str, is_typed: bool = False
) -> Iterator[None]:
    """Turn an error of the disk into one of ours: what needs what, the error, and what to do."""
    try:
        yield
    except FastbanditError:
        raise
    except OSError as error:
        said = f"{type(error).__name__}: {error}" if is_typed else error
        raise kind(f"{needs} ({said}). {fix}") from error


def _parts_of(pieces: Iterable[bytes | memoryview]) -> Iterator[memoryview]:
    for piece in pieces:
        whole = memoryview(piece)
        yield from (whole[first : first + _AT_ONCE] for first in range(0, len(whole), _AT_ONCE))


def sync_file(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
