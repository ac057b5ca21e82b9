"""Deltas between two versions: what rewards change in arms' own constants, at once.

It reads the log by itself, from the cut of the snapshot that serves. So what a version learns, and
when, does not depend on it, and all it knows can be thrown away: it is made again from the log.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.errors import SnapshotError
from fastbandit.learning.joining import Joiner, Pair
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.settings.service import Config
from fastbandit.storage.deltas import Delta
from fastbandit.storage.events import Event
from fastbandit.storage.log_file import LOG_FILE
from fastbandit.storage.shared import AnyLog, open_log, open_store
from fastbandit.storage.snapshot_version import Snapshot

_READ = 10_000
_MOST = 50_000  # events a step reads at most: one that is far behind catches up step by step
_AT_ONCE = 4_096

BanditOf = Callable[[Snapshot], Bandit | None]
"""Gives the bandit of a snapshot where it is in memory already."""


def not_here(snapshot: Snapshot) -> Bandit | None:
    """Have no bandit in memory."""
    return None


@dataclass
class _Since:
    """What came since a snapshot: a bandit that observed it, and the rows that changed.

    The joiner holds all pairs that the snapshot has not learned; the first `observed` are done.
    """

    snapshot: Snapshot
    bandit: Bandit
    joiner: Joiner
    number: int
    published: int
    rows: set[int] = field(default_factory=set)
    observed: int = 0
    learned: int = 0

    def observe(self) -> None:
        """Learn pairs of arms that the snapshot knows; others wait for the next version."""
        pairs: list[Pair] = self.joiner.pairs[self.observed :]
        self.observed += len(pairs)
        arms = self.bandit.policy.arms
        assert isinstance(arms, Catalogue)
        known = [pair for pair in pairs if pair.arm in arms.table]
        for first in range(0, len(known), _AT_ONCE):
            part = known[first : first + _AT_ONCE]
            ids = [pair.arm for pair in part]
            self.bandit.observe(
                contexts=np.array([pair.context for pair in part], dtype=np.float32),
                arms=ids,
                rewards=np.array([pair.reward for pair in part]),
            )
            self.rows.update(arms.table.rows(ids).tolist())
            self.learned += len(part)

    def delta(self) -> Delta:
        """Return what changed so far."""
        constants = _constants_of(self.bandit)
        assert constants is not None
        rows = np.array(sorted(self.rows), dtype=np.int64)
        means, deviations = constants.posterior(rows)
        return Delta(
            version=self.snapshot.version,
            snapshot=self.snapshot.hash,
            number=self.number + 1,
            seq=self.joiner.seq,
            learned=self.learned,
            rows=rows.astype(np.int32),
            means=means.astype(np.float32),
            deviations=deviations.astype(np.float32),
        )


class Deltas:
    """Publishes deltas of the snapshot that serves, for models with constants of their arms."""

    def __init__(self, config: Config, *, known: BanditOf = not_here) -> None:
        self._config, self._known = config, known
        self._folder = Path(config.server.data_dir)
        self._store = open_store(config.log.url, config.snapshots.url, self._folder)
        self._log: AnyLog | None = None
        self._current: Snapshot | None = None
        self._pointer = (0, 0)
        self._since: _Since | None = None

    @property
    def is_behind(self) -> bool:
        """Whether a version was published since the last step."""
        return self._look() not in (None, self._pointer)

    def step(self) -> Delta | None:
        """Learn what came since the last step; publish and return a delta if that changed one."""
        try:
            since = self._since_now()
            if since is None:
                return None
            for event in self._events(after=since.joiner.seq, most=_MOST):
                since.joiner.feed(event)
            since.observe()
            if since.learned <= since.published:
                return None
            delta = since.delta()
            self._store.publish_delta(delta)
        except BaseException:
            self._pointer, self._since = (0, 0), None  # it may have taken a part of what came
            raise
        since.number, since.published = delta.number, delta.learned
        return delta

    def close(self) -> None:
        """Let go of the log and the store."""
        self._store.close()
        if self._log is not None:
            self._log.close()

    def _since_now(self) -> _Since | None:
        """Return what came since the snapshot that serves; None where it can have no deltas."""
        pointer = self._look()
        if pointer is None:
            return None
        if pointer != self._pointer:
            snapshot, since = self._store.current(), self._since
            if snapshot is None or since is None or since.snapshot.hash != snapshot.hash:
                self._since = None if snapshot is None else self._begin(snapshot)
            self._pointer = pointer
        return self._since

    def _look(self) -> tuple[int, int] | None:
        """Return what tells a pointer from the next, None where there is none."""
        try:
            found = os.stat(self._store.pointer)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _begin(self, snapshot: Snapshot) -> _Since | None:
        if snapshot.version == 0 or self._opened() is None:
            return None
        bandit = self._known(snapshot) or Bandit.load(snapshot.bandit)
        if _constants_of(bandit) is None:
            return None
        newest = None
        with suppress(SnapshotError):  # a damaged one is replaced
            newest = self._store.newest_delta(snapshot)
        return _Since(
            snapshot,
            copy.copy(bandit),
            self._joiner_after(snapshot),
            number=0 if newest is None else newest.number,
            published=0 if newest is None else newest.learned,
        )

    def _joiner_after(self, snapshot: Snapshot) -> Joiner:
        """Return a joiner without what a snapshot learned: the last one's, where that goes on.

        Else decisions that wait for their rewards are read again, which may be many.
        """
        since, cut = self._since, snapshot.cut
        if since is not None and since.snapshot.version == snapshot.parent:
            joiner = since.joiner
            for event in self._events(after=joiner.seq, until=cut.seq):
                joiner.feed(event)
            more = cut.interactions - joiner.learned
            if 0 <= more <= len(joiner.pairs):
                joiner.cut(more)
                return joiner
        return Joiner.resumed(cut, self._events(after=cut.since, until=cut.seq))

    def _events(
        self, *, after: int, until: int | None = None, most: int | None = None
    ) -> Iterator[Event]:
        log = self._opened()
        while log is not None and (until is None or after < until):
            events = log.read(after=after, limit=_READ)
            yield from (event for event in events if until is None or event.seq <= until)
            most = None if most is None else most - len(events)
            if not events or (most is not None and most <= 0):
                return
            after = events[-1].seq

    def _opened(self) -> AnyLog | None:
        url = self._config.log.url
        if self._log is None and (url or (self._folder / LOG_FILE).exists()):
            self._log = open_log(url, self._folder, is_reader=True)
        return self._log


def _constants_of(bandit: Bandit) -> ArmConstants | None:
    model = bandit.policy.model
    return model.own_constants if isinstance(model, HierarchicalReward) else None
