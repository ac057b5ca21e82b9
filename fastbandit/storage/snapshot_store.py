"""Versions of a bandit in one folder, each whole or not there, and a pointer to one of them.

A version is drafted in a folder of its own, synced, sealed with the hash of all it holds, and
renamed to its number; only then the pointer moves. So whatever happens in between, the pointer
names a version that is whole. What is refused leaves a report, and its number is not used
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import (
    MANIFEST,
    SNAPSHOT,
    read_manifest,
    seal,
    sync_folder,
    write_json,
    write_manifest,
)
from fastbandit.storage.deltas import Delta, DeltaFiles

FORMAT = 1
PARTS = ("bandit", "frozen")
NOTES = "snapshot.json"
POINTER = "current.json"
REPORTS = 100
"""So many reports of refused versions are kept."""

Reached = Callable[[str], None]
"""Told the name of each step, once it is done."""


def nothing_more(step: str) -> None:
    """Do nothing at a step."""


@dataclass(frozen=True)
class Cut:
    """How far into the log a version has learned.

    Everything up to event `seq`, at the time `at`, was looked at. The first `pairs` pairs were
    learned; `held` more were ready and come next. `since` is the number before the oldest
    decision that is not done with: reading on from there gives all the rest.
    """

    seq: int = 0
    at: int = 0
    since: int = 0
    pairs: int = 0
    held: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A version that is whole: what it came from, what it learned, and where it lies.

    `hash` is told by its content alone. `fell_back` says why it stands in for another.
    """

    version: int
    parent: int | None
    cut: Cut
    hash: str
    notes: dict[str, Any]
    folder: Path
    fell_back: str = ""

    @property
    def bandit(self) -> Path:
        """The folder for `Bandit.load`."""
        return self.folder / "bandit"

    @property
    def frozen(self) -> Path:
        """The folder for `FrozenBandit.load`."""
        return self.folder / "frozen"


class SnapshotStore:
    """Keeps versions in a folder. Any number may read; writers take turns."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.pointer = self.folder / POINTER
        self.deltas = DeltaFiles(self.folder / "deltas")

    # -- reading

    def current(self) -> Snapshot | None:
        """Give the version to serve, or the newest older one that is whole where it is not."""
        pointed = self._pointed()
        try:
            return None if pointed is None else self.get(pointed)
        except SnapshotError as error:
            why = str(error)
        refused = self._refused_versions()
        for version in reversed(self.versions()):
            if version < (pointed or 0) and version not in refused:
                with suppress(SnapshotError):
                    return replace(self.get(version), fell_back=why)
        raise SnapshotError(why)

    def get(self, version: int) -> Snapshot:
        """Give a version, or say why it cannot be trusted."""
        folder = self._folder_of(version)
        told = read_manifest(folder / NOTES, kind=SNAPSHOT, format=FORMAT)
        for part in PARTS:
            _check_part(folder / part, told.get(part))
        return _to_snapshot(folder, told)

    def list(self) -> Sequence[Snapshot]:
        """Give all versions that are whole, oldest first."""
        found = []
        for version in self.versions():
            with suppress(SnapshotError):
                found.append(self.get(version))
        return found

    def versions(self) -> Sequence[int]:
        """Give the numbers of all versions that lie there, whole or damaged, in order."""
        return sorted(int(path.name) for path in self.folder.glob("[0-9]*") if path.is_dir())

    def refused(self) -> Sequence[dict[str, Any]]:
        """Give the reports of the versions that were refused, oldest first."""
        found = []
        for version in sorted(self._refused_versions()):
            with suppress(OSError, ValueError):
                found.append(json.loads(self._report_of(version).read_text(encoding="utf-8")))
        return found

    def next_version(self) -> int:
        """Give the number of the next version: one that none ever had."""
        return max([-1, *self.versions(), *self._refused_versions()]) + 1

    def newest_delta(self, snapshot: Snapshot) -> Delta | None:
        """Return the newest delta that was published for a version."""
        return self.deltas.read(snapshot.version, snapshot.hash)

    def has_delta(self) -> bool:
        """Tell whether a delta of the version to serve is here."""
        version = self._pointed()
        return version is not None and self.deltas.mark(version) != (0, 0)

    # -- sharing, which a store of one machine has nothing to do for

    def take_turn(self) -> bool:
        """Become the one who publishes; tell whether that is so."""
        return True

    def follow(self) -> None:
        """Take over what others published."""

    def follow_delta(self) -> None:
        """Take over the newest delta that others published."""

    def close(self) -> None:
        """Let go of what is held open."""

    # -- writing

    @contextmanager
    def drafting(self) -> Iterator[Path]:
        """Give a folder to draft a version in; it goes away unless it is published."""
        with _reporting(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self.folder / f".draft-{os.getpid()}-{secrets.token_hex(4)}"
            draft.mkdir()
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def publish(
        self,
        draft: Path,
        notes: dict[str, Any],
        *,
        version: int,
        parent: Snapshot | None,
        cut: Cut,
        reached: Reached = nothing_more,
    ) -> Snapshot:
        """Make a draft that holds a bandit and a frozen one the version to serve."""
        told = {"version": version, "parent": parent and parent.version, "cut": asdict(cut)}
        with _reporting(self.folder), self._writing():
            self._check_still_current(parent)
            sealed = {part: _sealed(draft / part) for part in PARTS}
            all_told = {**told, "notes": notes, **sealed}
            write_manifest(draft / NOTES, all_told, kind=SNAPSHOT, format=FORMAT)
            sync_folder(draft)
            reached("sealed")
            draft.rename(self._folder_of(version))
            sync_folder(self.folder)
            reached("renamed")
            self._point(version)
            reached("published")
        return self.get(version)

    def publish_delta(self, delta: Delta) -> None:
        """Make a delta the one to be applied to its version."""
        self.deltas.write(delta)

    def recover(self) -> None:
        """Finish what a writer that died left half-done, and sweep away its drafts."""
        with _reporting(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with self._writing():
                pointed, refused = self._pointed(), self._refused_versions()
                whole = [found for found in self.list() if found.version not in refused]
                if whole and whole[-1].parent == pointed and whole[-1].version != pointed:
                    self._point(whole[-1].version)

    def rollback(self, version: int | None = None) -> Snapshot:
        """Serve an older version (None: the parent) from now on; younger ones are refused."""
        self._check_there(version)
        with _reporting(self.folder), self._writing():
            snapshot = self.get(self._parent() if version is None else version)
            refused = self._refused_versions()
            for younger in self.list():
                if younger.version > snapshot.version and younger.version not in refused:
                    self.refuse(younger.version, _rolled_back(younger, to=snapshot.version))
            self._point(snapshot.version)
            self._report_of(snapshot.version).unlink(missing_ok=True)
        return snapshot

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        """Keep the reason why a version is not to be served."""
        with _reporting(self.folder):
            self._report_of(version).parent.mkdir(parents=True, exist_ok=True)
            write_json(self._report_of(version), {**report, "version": version})

    def prune(self, keep: int) -> Sequence[int]:
        """Remove all but the newest versions; the current one, its parent and younger ones stay."""
        current = self.current()
        if current is None:
            return []
        older = [version for version in self.versions() if version < current.version]
        spare = older[: max(0, len(older) + 1 - keep)]
        gone = [version for version in spare if version != current.parent]
        for version in gone:  # renamed first: no version is ever seen half-removed
            going = self.folder / f".gone-{version}"
            self._folder_of(version).rename(going)
            shutil.rmtree(going, ignore_errors=True)
        for version in sorted(self._refused_versions())[:-REPORTS]:
            self._report_of(version).unlink(missing_ok=True)
        return gone

    # -- files

    def _folder_of(self, version: int) -> Path:
        return self.folder / f"{version:06d}"

    def _report_of(self, version: int) -> Path:
        return self.folder / "refused" / f"{version:06d}.json"

    def _refused_versions(self) -> set[int]:
        return {int(path.stem) for path in (self.folder / "refused").glob("[0-9]*.json")}

    def _pointed(self) -> int | None:
        """Give the version that the pointer names, or else the newest there is."""
        try:
            return int(json.loads(self.pointer.read_text(encoding="utf-8"))["version"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            whole = [
                version for version in self.versions() if version not in self._refused_versions()
            ]
            return max(whole, default=None)

    def _point(self, version: int) -> None:
        write_json(self.pointer, {"version": version})

    def _parent(self) -> int:
        current = self.current()
        if current is None or current.parent is None:
            raise SnapshotError(
                f"A rollback needs an older version: the one in {self.folder} is the first. Name "
                f"another version."
            )
        return current.parent

    def _check_there(self, version: int | None) -> None:
        """Raise where there is no version at all, or none of that number."""
        versions = self.versions()
        if not versions:
            raise SnapshotError(
                f"A rollback needs versions to choose from: {self.folder} holds none. Name the "
                f"data folder of a service, with --data-dir or --config."
            )
        if version is not None and version not in versions:
            raise SnapshotError(
                f"A rollback needs a version that is there: got {version}, and {self.folder} holds "
                f"{', '.join(map(str, versions))}. Name one of them."
            )

    def _check_still_current(self, parent: Snapshot | None) -> None:
        current = self.current()
        if (current and current.version) != (parent and parent.version):
            raise SnapshotError(
                f"A new version needs to follow the current one: it was made from "
                f"{parent and parent.version}, and {current and current.version} is served by "
                f"now. Make it again."
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let writers take turns."""
        with (self.folder / ".lock").open("w") as file:
            flock(file, LOCK_EX)
            yield

    def _sweep(self) -> None:
        for path in [*self.folder.glob(".draft-*"), *self.folder.glob(".gone-*")]:
            if path.name.startswith(".gone-") or not _is_drafting(path):
                shutil.rmtree(path, ignore_errors=True)


def read_snapshot(folder: Path) -> Snapshot:
    """Read what a version tells of itself, whether its parts are there or not."""
    return _to_snapshot(folder, read_manifest(folder / NOTES, kind=SNAPSHOT, format=FORMAT))


def _sealed(folder: Path) -> dict[str, Any]:
    """Give what tells a part from others: the hash of its manifest, and its arrays' file."""
    manifest = (folder / MANIFEST).read_bytes()
    entry = json.loads(manifest)["arrays"]
    digest = hashlib.sha256(manifest).hexdigest()
    return {"manifest": digest, "arrays": entry["file"], "bytes": entry["bytes"]}


def _check_part(folder: Path, told: Any) -> None:
    """Check that a manifest is the one that was sealed, and its arrays have their size.

    The manifest is not parsed: it may hold millions of ids, and a service does this as it
    serves.
    """
    try:
        digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
        arrays = folder / Path(str(told["arrays"])).name
        is_whole = digest == told["manifest"] and arrays.stat().st_size == int(told["bytes"])
    except (OSError, ValueError, LookupError, TypeError):
        is_whole = False
    if not is_whole:
        raise SnapshotError(
            f"A snapshot needs to be as it was sealed: {folder} is not. Roll back to an older "
            f"one, or restore it from a backup."
        )


def _to_snapshot(folder: Path, told: dict[str, Any]) -> Snapshot:
    try:
        parent = None if told["parent"] is None else int(told["parent"])
        cut, notes = Cut(**told["cut"]), dict(told["notes"])
        return Snapshot(int(told["version"]), parent, cut, seal(told), notes, folder)
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"The snapshot in {folder} does not fit together ({type(error).__name__}: {error}). "
            f"Roll back to an older one."
        ) from error


def _rolled_back(snapshot: Snapshot, *, to: int) -> dict[str, Any]:
    """Word the report on a version that was served, and is no longer wanted."""
    return {
        "parent": snapshot.parent,
        "cut": asdict(snapshot.cut),
        "reason": f"Rolled back to version {to}.",
        **snapshot.notes,
    }


def _is_drafting(draft: Path) -> bool:
    """Tell whether another process that lives may write into a draft."""
    try:
        process = int(draft.name.split("-")[1])
        if process == os.getpid():
            return False
        os.kill(process, 0)
    except (ValueError, IndexError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _reporting(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into ours."""
    try:
        yield
    except SnapshotError:
        raise
    except OSError as error:
        raise SnapshotError(
            f"Snapshots need a folder that can be written to: {folder} cannot ({error}). Make "
            f"room there, or let it be written to."
        ) from error
