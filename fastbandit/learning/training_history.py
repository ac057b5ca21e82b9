"""All that the versions of a service have learned: snapshots hold none of what is in the log.

It lies in files beside the log (`fastbandit.storage.history_files`). Where those are missing or
damaged the log is joined again, as far as it and its archive reach back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.files.atomic import mark_of
from fastbandit.learning.joining import Interaction, Joiner, known, to_arrays, to_numbers
from fastbandit.learning.service_data import ServiceData
from fastbandit.storage.column_marks import Marks
from fastbandit.storage.events import ArmId
from fastbandit.storage.history_files import INDEX, HistoryFiles, Learned, Orders
from fastbandit.storage.snapshot_version import Cut, Snapshot
from fastbandit.storage.snapshots import InLog
from fastbandit.types import Inputs, Interactions

_LOGGER = logging.getLogger("fastbandit.learning")
_AT_ONCE = 10_000
_LOOK_SECONDS = 30.0  # for what was forgotten on another machine
FORGOTTEN = "forgotten"
"""In the notes of a version: how many decisions up to its cut it was made without."""

Order = tuple[int, int, int]


class TrainingHistory:
    """What versions learned from the log in a data folder, with rewards as its settings say."""

    def __init__(self, data: ServiceData) -> None:
        self._data, combination = data, data.reward.combination
        self._files = HistoryFiles(data.folder / "history", combination=combination)
        self._follow_marks()

    def _follow_marks(self) -> None:
        self._marks = Marks() if self._data.log is None else self._data.log.marks()
        if self._files.lacks(self._marks):  # it left the log on another machine
            self._files.remove(until=self._marks.gone, decisions=self._marks.forgotten)

    def _follow_drops(self, bandit: Bandit) -> None:
        """Hold columns as missing whose values left the log."""
        schema, known = getattr(bandit.blueprint.context, "schema", None), self._files.dropped()
        for name, until in self._marks.dropped.items():
            if schema is not None and name in schema.spans and known.get(name, 0) < until:
                terms = {"span": schema.spans[name], "missing": schema.missing(name)}
                self._files.drop(name, until=until, **terms)

    def of(self, bandit: Bandit, version: Snapshot) -> tuple[Bandit, Learned]:
        """Return a version's bandit with all that it learned, and what of that is in the log.

        Where rewards were combined otherwise then, or some were forgotten since, the bandit has
        yet to learn them.
        """
        cut, before = version.cut, bandit.history
        none = Learned.none(0)
        if not cut.interactions:
            return bandit, none
        self._follow_drops(bandit)
        learned = self._files.read(cut)
        is_learned = version.notes.get("reward", "") == self._data.reward.combination
        if learned is None and bandit.in_log is None and is_learned:  # an older one holds it all
            learned = self._taken_from(before, version)
            if learned is None:
                return bandit, none
        elif learned is None:
            learned = self._joined_again(bandit, version)
        if bandit.in_log is None and before is not None:
            before = before.take(slice(len(before) - cut.interactions))
        features = _catalogue(bandit).features.take(learned.rows)
        contexts = Inputs(dense=learned.contexts)
        more = Interactions(contexts, features, learned.rewards, rows=learned.rows)
        earlier = [before] if before is not None and len(before) else []
        both = Interactions.stack([*earlier, more])
        is_learned = is_learned and not self.forgotten_since(version)
        return bandit.with_history(both, is_learned=is_learned), learned

    def without_forgotten(self, interactions: Sequence[Interaction]) -> list[Interaction]:
        """Return interactions, those of forgotten decisions without their contexts."""
        gone = self._files.forgotten()
        return [one._replace(context=[]) if one.decision in gone else one for one in interactions]

    def forgotten_until(self, seq: int) -> int:
        """Return how many decisions up to a number are forgotten by now."""
        self._follow_marks()
        return sum(one <= seq for one in self._files.forgotten())

    def forgotten_since(self, version: Snapshot) -> int:
        """Return how many decisions were forgotten since a version was trained, by its notes.

        0 where nothing that it learned is left: then there is nothing to make another of.
        """
        if not version.cut.interactions or self._files.count(version.cut) == 0:
            return 0
        return abs(self.forgotten_until(version.cut.seq) - int(version.notes.get(FORGOTTEN, 0)))

    def forget_names(self, bandit: Bandit, version: Snapshot, fresh: Sequence[Interaction]) -> None:
        """Let a version's bandit lose names that only contexts had which were forgotten since.

        Such are those that nothing has which it learned, nor what it is to learn.
        """
        count = self.forgotten_until(version.cut.seq)
        plan, history = bandit.blueprint, bandit.history
        kind, schema = plan.context, getattr(plan.context, "schema", None)
        is_known = count == int(version.notes.get(FORGOTTEN, 0))
        if is_known or not isinstance(schema, Schema) or not schema.can_grow:
            return
        used = np.zeros(schema.dim, dtype=bool)
        if history is not None and (learned := history.contexts.dense) is not None:
            for first in range(0, len(learned), _AT_ONCE):
                used |= (learned[first : first + _AT_ONCE] != 0).any(axis=0)
        if contexts := [one.context for one in fresh]:
            used |= (to_numbers(contexts, kind) != 0).any(axis=0)
        schema = schema.without_unused(used, self._data.declared)
        bandit.read_by(replace(plan, context=Dense.of(schema)))

    def add(self, before: Cut, cut: Cut, fresh: Learned) -> None:
        """Store what a version that is about to be published learned beyond its parent."""
        self._files.write(before, cut, fresh)

    def _taken_from(self, history: Interactions | None, version: Snapshot) -> Learned | None:
        """Store what an older version holds of the log; None where the log cannot tell which."""
        joined = (one for some in self._joined(version) for one in some)
        every = [(*order_of(one), one.context != []) for one in joined]
        if history is None or history.rows is None or len(every) != version.cut.interactions:
            return None
        table = np.array(every, dtype=np.int64)
        learned = _last_of(history, table[:, :3], history.rows[len(history) - len(table) :])
        learned = learned.take(table[:, 3] == 1)
        self._files.replace(version.cut, learned)
        return learned

    def _joined_again(self, bandit: Bandit, version: Snapshot) -> Learned:
        rows = _Rows(bandit)
        parts = [_learned(bandit, some, rows) for some in self._joined(version)]
        kind = bandit.blueprint.context
        learned = Learned.stack([Learned.none(getattr(kind, "dim", 0)), *parts])
        before = 0 if bandit.in_log is None else bandit.in_log.count
        missing = {"learned": before, "found": len(learned)}
        _LOGGER.warning("training data was joined again from the log", extra=missing)
        self._files.replace(version.cut, learned)
        return learned

    def _joined(self, version: Snapshot) -> Iterator[list[Interaction]]:
        """Yield what a version had learned since its model was reset, if ever; some at a time."""
        cut, joiner = version.cut, Joiner(self._data.reward)
        for event in self._data.events(after=version.notes.get("begins", 0), until=cut.seq):
            joiner.feed(event)
            if len(joiner.interactions) >= cut.held + _AT_ONCE:
                yield joiner.interactions[:_AT_ONCE]
                joiner.cut(_AT_ONCE)
        yield joiner.interactions[: len(joiner.interactions) - cut.held]


class ForgottenSince:
    """Says whether decisions were forgotten since a version; looks where that may have changed."""

    def __init__(self, data: ServiceData) -> None:
        self._data, self._index = data, data.folder / "history" / INDEX
        self._looked: tuple[Any, ...] = ()
        self._found = self._refused = ("", 0)

    def since(self, version: Snapshot) -> bool:
        looked = version.hash, mark_of(self._index), time.monotonic() // _LOOK_SECONDS
        if looked != self._looked:
            count = TrainingHistory(self._data).forgotten_since(version)
            self._looked, self._found = looked, (version.hash, count)
        return self._found[1] > 0 and self._found != self._refused

    def refused(self) -> None:
        """Have a version that was made without them, and refused, be enough."""
        self._refused = self._found


def order_of(one: Interaction) -> Order:
    return one.ready, one.decision, one.position


def newly_learned(bandit: Bandit, interactions: Sequence[Interaction]) -> Learned:
    """Return the last interactions of a bandit's history, which are these."""
    assert bandit.history is not None
    keys = np.array([order_of(one) for one in interactions], dtype=np.int64).reshape(-1, 3)
    rows = _catalogue(bandit).table.rows([one.arm for one in interactions])
    return _last_of(bandit.history, keys, rows)


def _last_of(history: Interactions, keys: Orders, rows: NDArray[np.int64]) -> Learned:
    """Return the last interactions of a history, of which the keys and rows are these."""
    first, contexts = len(history) - len(keys), history.contexts.dense
    assert contexts is not None
    return Learned(keys, contexts[first:], rows, history.rewards[first:])


def without_log(bandit: Bandit, *parts: Learned) -> Bandit:
    """Return a bandit that holds nothing of what is in the log, which are the last it learned."""
    history, count = bandit.history, sum(map(len, parts))
    if history is None or not count:
        return bandit
    own = len(history) - count
    in_log = InLog(count, *_superseded(_catalogue(bandit), parts))
    return bandit.with_history(history.take(slice(own)) if own else None, in_log)


def _superseded(arms: Catalogue, parts: Sequence[Learned]) -> tuple[NDArray[np.int64], Orders]:
    """Return rows of arms that changed since they were learned, and the last key of each."""
    ids, every = arms.table, np.arange(len(arms.table))
    last = np.full((len(ids), 3), -1, dtype=np.int64)
    for part in parts:
        last[part.rows] = part.keys
    newest = every if ids.is_numbered else ids.rows(ids)
    old = np.flatnonzero((newest != every) & (last[:, 0] >= 0))
    return old, last[old]


class _Rows:
    """Says by which row an arm was learned at a time."""

    def __init__(self, bandit: Bandit) -> None:
        self._ids = _catalogue(bandit).table
        self._old: dict[ArmId, list[tuple[Order, int]]] = {}
        if bandit.in_log is not None:
            rows, last = bandit.in_log.rows.tolist(), bandit.in_log.last.tolist()
            for row, key in zip(rows, last, strict=True):
                self._old.setdefault(self._ids.id(row), []).append((tuple(key), row))  # type: ignore[arg-type]

    def of(self, interactions: Sequence[Interaction]) -> NDArray[np.int64]:
        rows = self._ids.rows([one.arm for one in interactions])
        for position, one in enumerate(interactions if self._old else ()):
            for last, row in self._old.get(one.arm, ()):
                if order_of(one) <= last:
                    rows[position] = row
                    break
        return rows


def _learned(bandit: Bandit, interactions: Sequence[Interaction], rows: _Rows) -> Learned:
    some = known(interactions)
    if not some:
        return Learned.none(getattr(bandit.blueprint.context, "dim", 0))
    contexts, _, rewards = to_arrays(some, bandit.blueprint.context)
    keys = np.array([order_of(one) for one in some], dtype=np.int64)
    return Learned(keys, contexts, rows.of(some), rewards.astype(np.float32))


def _catalogue(bandit: Bandit) -> Catalogue:
    assert isinstance(bandit.policy.arms, Catalogue)
    return bandit.policy.arms
