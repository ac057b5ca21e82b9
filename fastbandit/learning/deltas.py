"""Deltas between two versions: what rewards change in arms' own constants, at once.

Those of a version that has learned nothing hold the arms' popularity.

It reads the log by itself, from the cut of the snapshot that serves. So what a version learns, and
when, does not depend on it, and all it knows can be thrown away: it is made again from the log.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.errors import SnapshotError
from fastbandit.learning.joining import Joiner, known, to_arrays
from fastbandit.learning.service_data import ServiceData
from fastbandit.learning.shrunken_means import ShrunkenMeans
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.settings.service import Config
from fastbandit.storage.deltas import Delta
from fastbandit.storage.snapshot_version import Snapshot

_MOST = 50_000  # events a step reads at most: one that is far behind catches up step by step
_AT_ONCE = 4_096

BanditOf = Callable[[Snapshot], Bandit | None]
"""Returns the bandit of a snapshot where it is in memory already."""


@dataclass
class _Observed:
    """What came since a snapshot: a bandit that observed it, and the rows that changed.

    The joiner holds all interactions that the snapshot has not learned; the first `count` of them
    were observed. Rewards before the first version are `popular`, by row.
    """

    snapshot: Snapshot
    bandit: Bandit
    joiner: Joiner
    number: int
    published: int
    rows: set[int] = field(default_factory=set)
    popular: list[tuple[int, float]] = field(default_factory=list)
    count: int = 0
    learned: int = 0

    def observe(self) -> None:
        """Learn interactions of arms that the snapshot knows; others wait for the next version."""
        fresh = self.joiner.interactions[self.count :]
        self.count += len(fresh)
        arms = self.bandit.policy.arms
        assert isinstance(arms, Catalogue)
        learnable = [one for one in known(fresh) if one.arm in arms.table]
        if self.bandit.version == 0:
            rows = arms.table.rows([one.arm for one in learnable]).tolist()
            self.popular += [(row, one.reward) for row, one in zip(rows, learnable, strict=True)]
            self.learned += len(learnable)
            return
        kind = self.bandit.blueprint.context
        for first in range(0, len(learnable), _AT_ONCE):
            contexts, ids, rewards = to_arrays(learnable[first : first + _AT_ONCE], kind)
            self.bandit.observe(contexts=contexts, arms=ids, rewards=rewards)
            self.rows.update(arms.table.rows(ids).tolist())
            self.learned += len(ids)

    def _posterior(self) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
        """Return rows that changed, with means and deviations."""
        if self.bandit.version == 0:
            rows, rewards = zip(*self.popular, strict=True)
            popularity = ShrunkenMeans.of(np.array(rows), np.array(rewards, dtype=np.float64))
            return popularity.posterior(is_binary=self.bandit.blueprint.reward == "binary")
        constants = _constants_of(self.bandit)
        assert constants is not None
        changed = np.array(sorted(self.rows), dtype=np.int64)
        return changed, *constants.posterior(changed)

    def delta(self) -> Delta:
        rows, means, deviations = self._posterior()
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
    """Publishes deltas of the snapshot that serves, for models with constants of their arms.

    One that has learned nothing has them whatever its model.
    """

    def __init__(self, config: Config, *, known: BanditOf = lambda snapshot: None) -> None:
        self._data, self._known = ServiceData(config), known
        self._modules, self._reward = config.select.part_modules, config.reward
        self._pointer = (0, 0)
        self._observed: _Observed | None = None

    @property
    def is_behind(self) -> bool:
        """Whether a version was published since the last step."""
        return self._data.pointer() not in (None, self._pointer)

    def step(self) -> Delta | None:
        """Learn what came since the last step; publish and return a delta if that changed one."""
        try:
            observed = self._observed_since_current()
            if observed is None:
                return None
            for event in self._data.events(after=observed.joiner.seq, most=_MOST):
                observed.joiner.feed(event)
            observed.observe()
            if observed.learned <= observed.published:
                return None
            delta = observed.delta()
            self._data.store.publish_delta(delta)
        except BaseException:
            self._pointer, self._observed = (0, 0), None  # it may have taken a part of what came
            raise
        observed.number, observed.published = delta.number, delta.learned
        return delta

    def close(self) -> None:
        self._data.close()

    def _observed_since_current(self) -> _Observed | None:
        """Return what came since the snapshot that serves; None where it can have no deltas."""
        pointer = self._data.pointer()
        if pointer is None or self._data.log is None:
            return None
        if pointer != self._pointer:
            snapshot, observed = self._data.store.current(), self._observed
            if snapshot is None or observed is None or observed.snapshot.hash != snapshot.hash:
                self._observed = None if snapshot is None else self._start(snapshot)
            self._pointer = pointer
        return self._observed

    def _start(self, snapshot: Snapshot) -> _Observed | None:
        bandit = self._known(snapshot) or Bandit.load(snapshot.bandit, part_modules=self._modules)
        is_other = snapshot.notes.get("reward", "") != self._reward.combination
        if bandit.version and (is_other or _constants_of(bandit) is None):
            return None
        newest = None
        with suppress(SnapshotError):  # a damaged one is replaced
            newest = self._data.store.newest_delta(snapshot)
        return _Observed(
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
        observed, cut = self._observed, snapshot.cut
        is_reset = "reset" in snapshot.notes  # nothing of what came before is for it
        if not is_reset and observed is not None and observed.snapshot.version == snapshot.parent:
            joiner = observed.joiner
            for event in self._data.events(after=joiner.seq, until=cut.seq):
                joiner.feed(event)
            more = cut.interactions - joiner.learned
            if 0 <= more <= len(joiner.interactions):
                joiner.cut(more)
                return joiner
        events = self._data.events(after=cut.since, until=cut.seq)
        return Joiner.resumed(cut, events, self._reward)


def _constants_of(bandit: Bandit) -> ArmConstants | None:
    model = bandit.policy.model
    return model.own_constants if isinstance(model, HierarchicalReward) else None
