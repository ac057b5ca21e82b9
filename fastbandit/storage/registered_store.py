"""A folder of versions on this machine that follows a registry of many machines.

What the registry points to is fetched beside, checked and renamed. What is published here goes to
the registry first. Where the version that is pointed to is damaged or missing in the store, the
newest older one that is whole stands in for it, and it is fetched again now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastbandit.errors import SettingError, SnapshotError
from fastbandit.files.atomic import rename
from fastbandit.files.signing import Keys
from fastbandit.storage.deltas import Delta
from fastbandit.storage.snapshot_registry import Registered, SnapshotRegistry
from fastbandit.storage.snapshot_store import Check, Mark, SnapshotStore, nothing_read
from fastbandit.storage.snapshot_version import NOTES, Snapshot, read_pointer, read_snapshot

_FOLLOW_SECONDS = 0.5
_AGAIN_SECONDS = 5.0  # until what was damaged in the store is fetched again, at first
_LONGEST_SECONDS = 120.0


class RegisteredStore(SnapshotStore):
    """A folder of versions that follows a registry, and publishes to it."""

    def __init__(self, folder: str | Path, registry: SnapshotRegistry, *, keys: Keys = ()) -> None:
        super().__init__(folder, keys=keys)
        self.registry, self._followed = registry, 0.0
        self._taken = ""  # the hash of what the registry pointed to last
        self._delta: tuple[int, int] | None = None  # the newest that was fetched
        self._damage, self._again, self._pause = "", 0.0, _AGAIN_SECONDS
        self._distrusted: set[str] = set()

    def pull(self) -> int | None:
        """Bring the folder in line with the registry; return the version to serve."""
        with self._reporting():
            self.folder.mkdir(parents=True, exist_ok=True)
            row = self.registry.current()
            refused, known = self.registry.refused(), self._refused_versions()
            for version in known - set(refused):
                self._report_of(version).unlink(missing_ok=True)
            for version in set(refused) - known:
                super().refuse(version, refused[version])
            now = self._taken, self._pointer()
            is_new = row is not None and now != (row.hash, (row.version, ""))
            if is_new and (not self._damage or time.monotonic() >= self._again):
                row = self._take()
            return row and row.version

    def _take(self) -> Registered | None:
        """Fetch what the registry points to, and drop what it no longer holds."""
        with self._writing():  # a learner on this folder may just have published another
            row = self.registry.current()
            if row is None:
                return None
            damage = self._damage
            try:
                is_other = self._fetch(row)
                self._damage, self._pause, self._taken = "", _AGAIN_SECONDS, row.hash
            except SnapshotError as error:
                is_other = False
                self._stand_in(row, error)
            is_other = is_other or bool(damage) != bool(self._damage)
            if is_other or self._pointer() != (row.version, ""):
                super()._point(row.version)
            self._drop_others()
            return row

    def _stand_in(self, row: Registered, error: SnapshotError) -> None:
        """Have an older version here in place of one that cannot be fetched, or raise why not."""
        self._again, self._pause = (
            time.monotonic() + self._pause,
            min(2 * self._pause, _LONGEST_SECONDS),
        )
        self._damage = str(error)
        refused = self._refused_versions()
        for older in reversed(self.registry.rows()):
            if older.version < row.version and older.version not in refused:
                with suppress(SnapshotError):
                    self._fetch(older)
                    return
        raise error

    def current(self, check: Check[Any] = nothing_read) -> Snapshot | None:
        found = super().current(check)
        if found is not None and found.fell_back and self._damage:
            return replace(found, fell_back=self._damage)
        return found

    def set_aside(self, version: int, reason: str, *, mark: Mark) -> None:
        """Set a version that is damaged here aside; it is fetched again, once."""
        super().set_aside(version, reason, mark=mark)
        self._distrust(version)

    def fetch_again(self, version: int) -> None:
        """Remove a version that cannot be loaded, so that it is fetched again: once."""
        if self._distrust(version):
            with self._reporting(), self._writing():
                self._drop(version)

    def _distrust(self, version: int) -> bool:
        """Let a version be fetched again, unless it was before; return whether it is."""
        row = self.registry.find(version)
        if row is None or row.hash in self._distrusted:
            return False
        self._distrusted.add(row.hash)
        self._taken = ""
        return True

    def _drop_others(self) -> None:
        for version in {*self.versions()} - {row.version for row in self.registry.rows()}:
            self._drop(version)

    def _fetch(self, row: Registered) -> bool:
        """Have a version in the folder, whole; return whether it had to be fetched."""
        if self._is_here(row):
            return False
        with self.drafting() as draft:
            self.registry.fetch(row, draft)
            self._drop(row.version)
            rename(draft, self._folder_of(row.version))
        return True

    def list(self) -> Sequence[Snapshot]:
        """Return all versions that were published; those of other machines without their files.

        One whose notes are damaged or missing in the store is left out.
        """
        found = []
        for row in self.registry.rows():
            with self._reporting(), suppress(SnapshotError):
                found.append(self._noted(row))
        return found

    def _noted(self, row: Registered) -> Snapshot:
        if self._is_here(row):
            return self.get(row.version)
        folder = self.folder / ".noted" / f"{row.version:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        self.registry.fetch_file(row, NOTES, folder)
        return read_snapshot(folder)

    def acquire_lease(self, report: Callable[[], dict[str, Any] | None] = dict) -> bool:
        """Become the leader; `report` returns what others hear, None while another should lead."""
        return self.registry.acquire_lease(report)

    def leader(self) -> dict[str, Any]:
        return self.registry.leader()

    def follow(self) -> None:
        """Take over what others published, now and then; raise if the lease was lost."""
        if time.monotonic() - self._followed > _FOLLOW_SECONDS:
            self.registry.check_lease()
            self.pull()
            self._followed = time.monotonic()

    def follow_delta(self) -> None:
        """Take over the newest delta of the version that is pointed to, if it is another."""
        version = self._pointer()[0]
        seq = None if version is None else self.registry.delta_seq(version)
        if version is None or seq is None or self._delta == (version, seq):
            return
        self._delta = (version, seq)  # one that is damaged is fetched once
        delta = self.registry.delta(version, keys=self.keys)
        if delta is not None:
            self.deltas.write(delta)

    def newest_delta(self, snapshot: Snapshot) -> Delta | None:
        delta = self.registry.delta(snapshot.version, keys=self.keys)
        return delta and delta.check_for(snapshot.version, snapshot.hash)

    def publish_delta(self, delta: Delta) -> None:
        self.registry.publish_delta(delta, keys=self.keys)

    def close(self) -> None:
        self.registry.close()

    def recover(self) -> None:
        """Forget what was made and not published, then follow the registry."""
        super()._sweep()
        self.pull()
        self._drop_others()

    def next_version(self) -> int:
        return max({-1} | self._published() | self.registry.refused().keys()) + 1

    def rollback(self, version: int | None = None, *, check: Check[Any] = nothing_read) -> Snapshot:
        """Let all serve an older version from now on; None: the parent, or what stands in for it.

        No other version has to be whole.
        """
        with suppress(SnapshotError):
            self.pull()
        version = self._parent() if version is None else version
        row = self.registry.find(version)
        if row is None:
            known = ", ".join(str(one.version) for one in self.registry.rows()) or "none"
            raise SnapshotError(
                f"A rollback needs a version that was published: {self.registry.name} holds "
                f"{known}, and {version} was asked for. Name one of these."
            )
        with self._reporting(), self._writing():
            self._fetch(row)
            served = self.registry.current()
            if served is not None and self._pointer() != (served.version, ""):
                super()._point(served.version)
        snapshot = super().rollback(version, check=check)
        self._damage = ""
        return snapshot

    def _published(self) -> set[int]:
        return {row.version for row in self.registry.rows()}

    def sign(self) -> Sequence[int]:
        raise SettingError(
            "Versions that machines share are signed as they are published: got some that are. "
            "Let the learner publish another, then name snapshots.signing_key_file on deciders."
        )

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        self.registry.refuse(version, {**report, "version": version})
        super().refuse(version, report)

    def prune(self, keep: int) -> Sequence[int]:
        """Remove all but the newest versions, here and in the store."""
        gone = self._spare((one.version for one in self.registry.rows()), keep)
        self.registry.prune([*gone])
        for version in gone:
            self._drop(version)
        return gone

    def _point(self, version: int) -> None:
        pointed, _ = read_pointer(self.pointer)  # not the newest: that may just have been renamed
        if self.registry.find(version) is not None:
            self.registry.point(version, instead_of=pointed)
        else:
            self.registry.publish(self.get(version), instead_of=pointed)
        super()._point(version)

    def _is_here(self, row: Registered) -> bool:
        try:
            return self.get(row.version).hash == row.hash
        except SnapshotError:
            return False
