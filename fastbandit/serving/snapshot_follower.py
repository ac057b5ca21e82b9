"""Keeps what serves in line with the snapshots, and with the changes of the arms in the log."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.errors import (
    FastbanditError,
    LogError,
    LogUnavailableError,
    SettingError,
    SnapshotError,
)
from fastbandit.files.atomic import mark_of
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.servable import servable
from fastbandit.serving.arm_change_file import ArmChangeFile, KnownChanges
from fastbandit.serving.decider import Decider, Serving
from fastbandit.serving.metrics import Metrics
from fastbandit.serving.schema_guard import SchemaGuard
from fastbandit.serving.schemas import Reason
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service import Config
from fastbandit.storage.arm_changes import apply_change
from fastbandit.storage.deltas import Delta
from fastbandit.storage.events import ArmsChanged
from fastbandit.storage.shared import AnyLog, open_log, service_store
from fastbandit.storage.snapshot_version import Snapshot, read_snapshot

_LOGGER = logging.getLogger("fastbandit.serving")
_CHANGES_FILE = "changes.jsonl"
_DELTA_SECONDS = 3.0  # so long a snapshot waits for its first delta


class SnapshotFollower:
    """Publishes snapshots to a decider; `is_unavailable` says whether the log cannot be reached.

    Whoever changes arms holds `changing`. `problem` is what is wrong with the snapshot that should
    serve, and `lost` says why those that others published cannot be taken over. `seen` is the
    number of the last event, as far as known here. `delta` is the last that was applied to what
    serves. `leader` is what the learner that leads all machines says.
    """

    def __init__(
        self,
        config: Config,
        decider: Decider,
        metrics: Metrics,
        *,
        is_unavailable: Callable[[], bool],
    ) -> None:
        self._config, self._decider, self._metrics = config, decider, metrics
        self._folder, self._is_unavailable = Path(config.server.data_dir), is_unavailable
        self.store = service_store(config)
        self._change_file = ArmChangeFile(self._folder / _CHANGES_FILE) if config.log.url else None
        self._guard = SchemaGuard(config)
        self.changing = asyncio.Lock()
        self.problem: Reason | None = None
        self.lost = ""
        self.leader: dict[str, Any] = {}
        self.seen = 0
        self.version: int | None = None  # in service; one that learned nothing decides as 0
        self._pointer = (0, 0)
        self._found = (self._pointer, 0.0)  # the last that was new, and when
        self._snapshot: Snapshot | None = None
        self.delta: Delta | None = None
        self._delta_mark: tuple[int, int] | None = None
        self._refusals: tuple[Any, list[str]] = (None, [])  # their reasons, as of some files

    @property
    def checks(self) -> dict[str, Any]:
        """What was measured of the version in service before it was published."""
        return {} if self._snapshot is None else dict(self._snapshot.notes.get("checks") or {})

    def refusals(self) -> list[str]:
        """Return why versions were refused since the one in service, oldest first."""
        seen = mark_of(self.store.pointer), mark_of(self.store.folder / "refused")
        if seen != self._refusals[0]:
            reasons = [str(report.get("reason", "")) for report in self.store.refusals()]
            self._refusals = (seen, reasons)
        return self._refusals[1]

    # -- snapshots

    async def swap_if_new(self, *, is_start: bool = False) -> None:
        """Put the snapshot that the pointer names into service, if it is another.

        At the start, one that was made with other schemas is an error.
        """
        pointer = mark_of(self.store.pointer)
        pointer = pointer or await asyncio.to_thread(self.store.mend_pointer)
        if pointer is None or pointer == self._pointer or self._is_early(pointer):
            return
        try:
            await self._swap()
        except LogUnavailableError:
            return  # tried again: nothing is wrong with the snapshot
        except FastbanditError as error:
            if is_start and isinstance(error, SettingError):
                raise
            self.problem = self._rejected(str(error), "Roll back, or restore the snapshot.")
            if (serving := self._decider.serving) is not None:
                self._decider.publish(
                    serving.bandit, catalogue=serving.catalogue, problems=[self.problem]
                )
            await self._fetch_again()
        self._pointer = pointer

    async def _fetch_again(self) -> None:
        """Fetch what the pointer names once more: its files may be damaged here alone."""
        with suppress(FastbanditError, ValueError, OSError, KeyError):
            version = json.loads(self.store.pointer.read_bytes())["version"]
            await asyncio.to_thread(self.store.fetch_again, int(version))

    def _rejected(self, why: str, fix: str) -> Reason:
        """Count and log a snapshot that cannot serve; return that as a problem."""
        text = " ".join(why.split())
        self._metrics.failed_swaps += 1
        _LOGGER.error("snapshot rejected", extra={"reason": text})
        return Reason("snapshot", text, fix)

    def _is_early(self, pointer: tuple[int, int]) -> bool:
        """Return whether to wait for a snapshot's first delta: it may know less."""
        if self.delta is None or self.store.has_delta():
            return False
        if pointer != self._found[0]:
            self._found = (pointer, time.monotonic())
        return time.monotonic() - self._found[1] < _DELTA_SECONDS

    async def _swap(self) -> None:
        """Load the current snapshot beside the one that serves, then replace it."""
        async with self.changing:  # no arm changes between reading them and the swap
            found = await asyncio.to_thread(self.store.load, self._load)
            if found is None:
                return
            snapshot, (bandit, catalogue) = found
            self._snapshot, self.delta = snapshot, None
            await self._take_delta(bandit)
            self.problem = None
            if snapshot.fell_back:
                self.problem = self._rejected(snapshot.fell_back, "Restore it, or roll back.")
            problems = [] if self.problem is None else [self.problem]
            self._decider.publish(bandit, catalogue=catalogue, problems=problems)
            self.version = snapshot.version
        self._metrics.swaps += 1
        gc.collect(1)
        _LOGGER.info("swapped", extra={"version": snapshot.version, "arms": len(bandit)})

    def _load(self, snapshot: Snapshot) -> tuple[FrozenBandit, int]:
        """Map a snapshot, change its arms as was done since, and try it on a context.

        Returns it with the number of the last change.
        """
        known, bandit = self._known(snapshot), servable(snapshot)
        self._guard.check(bandit, snapshot)
        for change in known.changes:
            if change.seq > snapshot.cut.seq:
                _apply(bandit, change)
        bandit.select(
            np.zeros((1, self._decider.columns), dtype=np.float32), seeds=np.zeros(1, np.uint64)
        )
        if self._decider.shadow is not None:
            bandit.parts[1].rows.live_rows_of([0])  # ids are found by name from now on
            _ = bandit.parts[1].learned_ids
        return bandit, known.catalogue

    # -- deltas

    async def apply_if_new(self) -> None:
        """Apply the newest delta of the snapshot that serves, if it is another."""
        if not self._has_new_delta():
            return
        async with self.changing:  # no snapshot is swapped meanwhile
            if self._decider.serving is not None and self._has_new_delta():
                await self._take_delta(self._decider.serving.bandit)

    def _has_new_delta(self) -> bool:
        snapshot = self._snapshot
        return snapshot is not None and self.store.deltas.mark(snapshot.version) != self._delta_mark

    async def _take_delta(self, bandit: FrozenBandit) -> None:
        """Apply the newest delta, or go on without one that cannot be trusted."""
        assert self._snapshot is not None
        self._delta_mark = self.store.deltas.mark(self._snapshot.version)
        if self._delta_mark is None:
            return
        try:
            delta = await asyncio.to_thread(self._applied, bandit, self._snapshot)
        except FastbanditError as error:
            self._ignore_delta(error)
        else:
            if delta is not None:
                self.delta = delta
                self._metrics.deltas += 1

    def _applied(self, bandit: FrozenBandit, snapshot: Snapshot) -> Delta | None:
        delta = self.store.deltas.read(snapshot.version, snapshot.hash)
        if delta is None or (self.delta is not None and delta.seq < self.delta.seq):
            return None
        bandit.apply_delta(delta.rows, delta.means, delta.deviations)
        return delta

    def _ignore_delta(self, error: FastbanditError) -> None:
        self._metrics.ignored_deltas += 1
        _LOGGER.warning("delta ignored", extra={"reason": " ".join(str(error).split())})

    async def follow_deltas(self) -> None:
        """Take over the newest delta that was published, and apply it."""
        try:
            await asyncio.to_thread(self.store.follow_delta)
            await self.apply_if_new()
        except SnapshotError as error:
            self._ignore_delta(error)
        except FastbanditError:
            return  # `follow_store` says why

    # -- features of the arms

    def features_of(self, serving: Serving, arm: Any) -> Any:
        """Return the features of an arm, in one row, as the bandit or the log holds them.

        A frozen bandit has coordinates in their place. None where they are not known here.
        """
        snapshot, ids = self._snapshot, serving.bandit.parts[1].ids
        if snapshot is None or snapshot.version != serving.bandit.version or arm not in ids:
            return None
        features, row = snapshot.arm_features(), int(ids.rows([arm])[0])
        if features is None or row < len(features):
            return None if features is None else features[row : row + 1]
        try:
            changes = self._logged(after=snapshot.cut.seq).changes  # it came since
        except LogError:
            return None
        seen = [change for change in changes if change.seq <= serving.catalogue]
        came = [one.features for change in seen for one in change.upserted if one.id == arm]
        return came[-1:] or None

    # -- changes of the arms

    def catch_up(self, reader: AnyLog) -> None:
        """Make all changes of the arms that are in the log in what serves."""
        serving = self._decider.serving
        if serving is not None:
            changes = reader.changes(after=serving.catalogue)
            for change in changes:
                _apply(serving.bandit, change)
                self._decider.publish(serving.bandit, catalogue=change.seq)
            if changes and self._change_file is not None:
                self._change_file.add(changes)
        self.seen = reader.last

    def _known(self, snapshot: Snapshot) -> KnownChanges:
        """Return the changes since a snapshot: from the log, or from the file in an outage."""
        if self._change_file is None:
            return self._logged(after=snapshot.cut.seq)
        known = None
        if not self._is_unavailable():
            with suppress(LogUnavailableError):
                known = self._logged(after=self._oldest_cut())
        if known is None:
            known = self._change_file.read()
        if known is None or known.after > snapshot.cut.seq:
            raise LogUnavailableError(
                f"Version {snapshot.version} needs the changes of the arms since it was made: "
                f"the database of the log is unavailable, and they were not stored here. See that "
                f"it runs."
            )
        self._change_file.write(known)
        return known

    def _logged(self, *, after: int) -> KnownChanges:
        config = self._config
        with closing(open_log(config.log.url, self._folder, is_reader=True)) as log:
            last = log.last_change()  # first: others may change arms meanwhile
            changes = log.changes(after=after)
        return KnownChanges(after, max([last, *(change.seq for change in changes)]), changes)

    def _oldest_cut(self) -> int:
        """Return the number up to which every version that may serve knows the changes."""
        cuts = []
        for folder in self.store.folder.glob("[0-9]*"):
            with suppress(SnapshotError):
                cuts.append(read_snapshot(folder).cut.seq)
        return min(cuts, default=0)

    # -- what others published

    async def follow_store(self) -> None:
        """Take over what was published; where that fails, what is here goes on serving."""
        try:
            await asyncio.to_thread(self.store.follow)
            self.leader = await asyncio.to_thread(self.store.leader)
            self.lost = ""
        except Exception as error:  # of a store, which may be any
            text = hide_password(" ".join(str(error).split()))
            if not isinstance(error, FastbanditError):
                text = f"{type(error).__name__}: {text}"
            if not self.lost:
                _LOGGER.warning("cannot follow", extra={"reason": text})
            self.lost = text


def _apply(bandit: FrozenBandit, change: ArmsChanged) -> None:
    """Make a change that is in the log; one that another's made impossible is left out by all."""
    try:
        apply_change(bandit, change)
    except FastbanditError as error:
        found = {"change": change.seq, "reason": " ".join(str(error).split())}
        _LOGGER.error("a change of the arms cannot be made", extra=found)
