"""Versions of a bandit in one folder, each whole or not there, and a pointer to one of them.

A version is drafted in a folder of its own, noted with the hash of all it holds, synced, and
renamed to its number; only then the pointer moves. So whatever happens in between, the pointer
names a version that is whole. What is refused leaves a report, and its number is not used
again. One that is damaged later is set aside under another name, with the reason beside it, and
the newest whole one stands in.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fastbandit.errors import SettingError, SnapshotError
from fastbandit.files.atomic import mark_of, raising, rename, sync_path
from fastbandit.files.locks import is_used, locking
from fastbandit.files.manifest import write_json
from fastbandit.files.signing import Keys
from fastbandit.storage.deltas import Delta, DeltaFiles
from fastbandit.storage.snapshot_version import (
    LOST_POINTER,
    NOTES,
    POINTER,
    Cut,
    Snapshot,
    check_follows,
    damage_in,
    damaged_in,
    is_damage,
    move_aside,
    read_pointer,
    read_snapshot,
    sign_notes,
    write_notes,
    write_pointer,
)

LOG_NAME = "log.json"
REPORTS = 100
"""So many reports of refused versions stay."""
_ROLLED_BACK = "Rolled back"

Mark: TypeAlias = tuple[int, int] | None
_Read = TypeVar("_Read")
Check: TypeAlias = Callable[[Snapshot], _Read]
"""Reads a version, or raises SnapshotError: see `fastbandit.runtime.servable`."""
Reached = Callable[[str], None]
"""Called with the name of each step, once it is done."""


def nothing_read(snapshot: Snapshot) -> None:
    """Take a version as it is."""


def nothing_more(step: str) -> None:
    """Do nothing at a step."""


class SnapshotStore:
    """Stores versions in a folder. Any number may read; writers wait for one another."""

    def __init__(self, folder: str | Path, *, keys: Keys = ()) -> None:
        self.folder, self.keys = Path(folder), keys
        self.pointer = self.folder / POINTER
        self.deltas = DeltaFiles(self.folder / "deltas", keys=keys)

    # -- reading

    def current(self, check: Check[Any] = nothing_read) -> Snapshot | None:
        """Return the version to serve, or the newest older one that is whole where it is not.

        One is whole if `check`, called with it, raises no SnapshotError.
        """
        found = self._newest(check)[0]
        return found and found[0]

    def load(self, read: Check[_Read]) -> tuple[Snapshot, _Read] | None:
        """Return the version to serve with what `read` made of it, or the newest older one.

        Those that `read` finds damaged are set aside, if one is left.
        """
        self.mend_pointer()
        found, errors = self._newest(read)
        for version, (error, mark) in errors.items():
            if is_damage(error):
                self.set_aside(version, str(error), mark=mark)
        return found

    def _newest(
        self, read: Check[_Read]
    ) -> tuple[tuple[Snapshot, _Read] | None, dict[int, tuple[SnapshotError, Mark]]]:
        """Return the newest version that can be read, from the pointer's on.

        Also the errors of those before it, each with the mark of the notes as they were.
        """
        (pointed, lost), errors = self._pointer(), dict[int, tuple[SnapshotError, Mark]]()
        if pointed is None:
            return None, errors
        refused, why = self._refused_versions(), ""
        older = [one for one in reversed(self.versions()) if one < pointed and one not in refused]
        for version in (pointed, *older):
            mark = mark_of(self._folder_of(version) / NOTES)
            try:
                snapshot = self.get(version)
                return (replace(snapshot, fell_back=why or lost), read(snapshot)), errors
            except SnapshotError as error:
                errors[version] = (error, mark)
                why = why or damage_in(self.folder, version) or str(error)
        raise SnapshotError(why) from errors[pointed][0]

    def get(self, version: int) -> Snapshot:
        """Return a version, or say why it cannot be trusted."""
        return read_snapshot(self._folder_of(version), check=True, keys=self.keys)

    def list(self) -> Sequence[Snapshot]:
        """Return all versions that are whole, oldest first."""
        found = []
        for version in self.versions():
            with suppress(SnapshotError):
                found.append(self.get(version))
        return found

    def versions(self) -> Sequence[int]:
        """Return the numbers of all versions that lie there, whole or damaged, in order."""
        return sorted(int(path.name) for path in self.folder.glob("[0-9]*") if path.is_dir())

    def refused(self) -> Sequence[dict[str, Any]]:
        """Return the reports of the versions that were refused, oldest first."""
        found = []
        for version in sorted(self._refused_versions()):
            with suppress(OSError, ValueError):
                found.append(json.loads(self._report_of(version).read_text(encoding="utf-8")))
        return found

    def refusals(self) -> Sequence[dict[str, Any]]:
        """Return the reports of those refused in a row, since the current one, oldest first.

        Versions that somebody rolled back are none of them.
        """
        current = self._pointer()[0]
        return [
            report
            for report in self.refused()
            if current is not None
            and int(report.get("version", 0)) > current
            and not str(report.get("reason", "")).startswith(_ROLLED_BACK)
        ]

    def next_version(self) -> int:
        """Return the number of the next version: one that none ever had."""
        return max({-1} | self._published() | self._refused_versions()) + 1

    @property
    def log(self) -> str:
        """The identity of the log that versions learn from, "" where that is not known."""
        try:
            return str(json.loads((self.folder / LOG_NAME).read_bytes())["log"])
        except (OSError, ValueError, TypeError, LookupError):
            return ""

    def newest_delta(self, snapshot: Snapshot) -> Delta | None:
        return self.deltas.read(snapshot.version, snapshot.hash)

    def has_delta(self) -> bool:
        version = self._pointer()[0]
        return version is not None and self.deltas.mark(version) is not None

    # -- sharing, which a store of one machine has nothing to do for

    def acquire_lease(self, report: Callable[[], dict[str, Any] | None] = dict) -> bool:
        """Become the leader, who alone publishes, and `report`s; return whether that is so."""
        return True

    def leader(self) -> dict[str, Any]:
        """Return what the leader of many machines says of itself, measured by the clock here."""
        return {}

    def follow(self) -> None:
        """Take over what others published."""

    def follow_delta(self) -> None:
        """Take over the newest delta that others published."""

    def fetch_again(self, version: int) -> None:
        """Fetch a version anew that could not be loaded."""

    def close(self) -> None:
        """Let go of what is held open."""

    # -- writing

    @contextmanager
    def drafting(self) -> Iterator[Path]:
        """Yield a folder to draft a version in; it goes away unless it is published."""
        with self._reporting():
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
        own = {"version": version, "parent": parent and parent.version, "cut": asdict(cut)}
        with self._reporting(), self._writing():
            current = self.current()
            check_follows(parent and parent.version, current and current.version)
            write_notes(draft, {**own, "notes": notes}, keys=self.keys)
            sync_path(draft)
            reached("noted")
            rename(draft, self._folder_of(version))
            reached("renamed")
            self._point(version)
            reached("published")
        return self.get(version)

    def publish_delta(self, delta: Delta) -> None:
        self.deltas.write(delta)

    def name_log(self, identity: str) -> None:
        """Write down which log versions learn from."""
        if identity != self.log:
            with self._reporting():
                self.folder.mkdir(parents=True, exist_ok=True)
                write_json(self.folder / LOG_NAME, {"log": identity})

    def move_cut(self, snapshot: Snapshot, cut: Cut) -> None:
        """Let what comes after a version be read from another cut of the log."""
        own = {"version": snapshot.version, "parent": snapshot.parent, "cut": asdict(cut)}
        with self._reporting(), self._writing():
            write_notes(snapshot.folder, {**own, "notes": snapshot.notes}, keys=self.keys)

    def recover(self) -> None:
        """Finish what a writer that died left half-done, and sweep away its drafts."""
        with self._reporting():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with self._writing():
                refused, pointed = self._refused_versions(), read_pointer(self.pointer)[0]
                whole = [found for found in self.list() if found.version not in refused]
                if whole and whole[-1].parent == pointed and whole[-1].version != pointed:
                    self._point(whole[-1].version)
        self.mend_pointer()

    def mend_pointer(self) -> Mark:
        """Write the pointer anew where it is lost and a version is there; return its mark."""
        if read_pointer(self.pointer)[0] is None and self.versions():
            with suppress(OSError), self._writing():
                version, reason = self._pointer()  # others may have written it meanwhile
                if version is not None:
                    write_pointer(self.pointer, version, reason)
        return mark_of(self.pointer)

    def rollback(self, version: int | None = None, *, check: Check[Any] = nothing_read) -> Snapshot:
        """Serve an older version from now on; younger ones are refused.

        None is what stands in, or else the parent. One for which `check` raises does not serve.
        """
        versions = self.versions()
        if not versions or version not in (None, *versions):
            raise SnapshotError(
                f"A rollback needs a version that is there: got {version}, and {self.folder} holds "
                f"{', '.join(map(str, versions)) or 'none'}. Name one of them, or the data folder "
                f"of a service with --data-dir or --config."
            )
        with self._reporting(), self._writing():
            snapshot = self.get(self._parent() if version is None else version)
            check(snapshot)
            whole = {one.version: one for one in self.list()}
            reason = f"{_ROLLED_BACK} to version {snapshot.version}."
            damaged = replace(snapshot, parent=None, cut=Cut(), notes={})
            for younger in self._published() - self._refused_versions():
                if younger > snapshot.version:
                    one = whole.get(younger, damaged)
                    origin = {"parent": one.parent, "cut": asdict(one.cut), "reason": reason}
                    self.refuse(younger, {**origin, **one.notes})
            self._point(snapshot.version)
            self._report_of(snapshot.version).unlink(missing_ok=True)
        return snapshot

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        """Store the reason why a version is not to be served."""
        with self._reporting():
            self._report_of(version).parent.mkdir(parents=True, exist_ok=True)
            write_json(self._report_of(version), {**report, "version": version})

    def sign(self) -> Sequence[int]:
        """Sign all versions that are whole, in place of other signatures; return which."""
        if not self.keys:
            raise SettingError(
                "Signing versions needs a key: got none. Name a file in snapshots.signing_key_file."
            )
        whole = SnapshotStore(self.folder).list()
        with self._reporting(), self._writing():
            for snapshot in whole:
                sign_notes(snapshot.folder, self.keys)
        return [snapshot.version for snapshot in whole]

    def set_aside(self, version: int, reason: str, *, mark: Mark) -> None:
        """Rename a version that is damaged, with the reason beside it, for people to look at.

        It stays where its notes have another mark, as others brought it anew meanwhile, and where
        this folder cannot be written to.
        """
        with suppress(OSError), self._writing():
            is_same = mark_of(self._folder_of(version) / NOTES) == mark
            if is_same and not damage_in(self.folder, version):
                move_aside(self.folder, version, reason)

    def prune(self, keep: int) -> Sequence[int]:
        """Remove all but the newest versions; the current one, its parent and younger ones stay."""
        for version in (gone := self._spare(self.versions(), keep)):
            self._drop(version)
        for version in sorted(self._refused_versions())[:-REPORTS]:
            self._report_of(version).unlink(missing_ok=True)
        return gone

    def _spare(self, versions: Iterable[int], keep: int) -> Sequence[int]:
        """Return the versions that are not among the newest, and not needed."""
        current = self.current()
        if current is None:
            return []
        older = [version for version in versions if version < current.version]
        spare = older[: max(0, len(older) + 1 - keep)]
        return [version for version in spare if version != current.parent]

    # -- files

    def _drop(self, version: int) -> None:
        """Remove a version from this folder; renamed first, none is ever seen half-removed."""
        going = self.folder / f".gone-{version}"
        shutil.rmtree(going, ignore_errors=True)
        with suppress(FileNotFoundError):
            self._folder_of(version).rename(going)
        shutil.rmtree(going, ignore_errors=True)

    def _published(self) -> set[int]:
        """Return the numbers of all versions, damaged or set aside as well."""
        return {*self.versions(), *damaged_in(self.folder)}

    def _folder_of(self, version: int) -> Path:
        return self.folder / f"{version:06d}"

    def _report_of(self, version: int) -> Path:
        return self.folder / "refused" / f"{version:06d}.json"

    def _refused_versions(self) -> set[int]:
        return {int(path.stem) for path in (self.folder / "refused").glob("[0-9]*.json")}

    def _pointer(self) -> tuple[int | None, str]:
        """Return the version that the pointer names, or else the newest, and that it was lost."""
        found = read_pointer(self.pointer)
        if found[0] is None and (versions := {*self.versions()} - self._refused_versions()):
            return max(versions), LOST_POINTER
        return found

    def _point(self, version: int) -> None:
        write_pointer(self.pointer, version)

    def _parent(self) -> int:
        current = self.current()
        if current is not None and current.fell_back:
            return current.version
        if current is None or current.parent is None:
            raise SnapshotError(
                f"A rollback needs an older version: the one in {self.folder} is the first. Name "
                f"another version."
            )
        return current.parent

    def _writing(self) -> AbstractContextManager[None]:
        return locking(self.folder / ".lock")

    def _reporting(self) -> AbstractContextManager[None]:
        needs = f"Snapshots need a folder that can be written to: {self.folder} cannot"
        return raising(SnapshotError, needs, fix="Make room there, or let it be written to.")

    def _sweep(self) -> None:
        for path in [*self.folder.glob(".draft-*"), *self.folder.glob(".gone-*")]:
            if path.name.startswith(".gone-") or not is_used(path):
                shutil.rmtree(path, ignore_errors=True)
