"""The learner: reads the log as it grows, and makes a version whenever one is due."""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fastbandit.bandit import Bandit
from fastbandit.files.atomic import write_atomic
from fastbandit.learning.auditing import Audits, is_plain, own_choice
from fastbandit.learning.catching_up import FAR, LONG, Join
from fastbandit.learning.first import publish_first
from fastbandit.learning.joining import Joiner
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.learning.update import (
    Lesson,
    Teach,
    held_out_of,
    publish,
    refusal,
    teach_here,
    train,
)
from fastbandit.settings.service import Config
from fastbandit.storage.events import ArmsChanged, DecisionMade, Event
from fastbandit.storage.log_file import LOG_FILE
from fastbandit.storage.shared import AnyLog, open_log, open_store
from fastbandit.storage.snapshot_store import Reached, nothing_more
from fastbandit.storage.snapshot_version import Snapshot

_READ = 10_000
_SERVED = 1_000  # decisions of the current version that may wait for their audit


@dataclass(frozen=True)
class Step:
    """What a step did, in a word and in a sentence; `version` is served after it."""

    did: Literal["waited", "published", "refused"]
    version: int | None
    told: str = ""


@dataclass
class _Place:
    """Where the learner is in the log since its parent's cut."""

    parent: Snapshot
    joiner: Joiner
    mark: Mark
    changes: list[ArmsChanged] = field(default_factory=list)
    served: list[DecisionMade] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Take the next event."""
        self.joiner.feed(event)
        if isinstance(event, ArmsChanged):
            self.changes.append(event)
        elif isinstance(event, DecisionMade) and self._is_judged(event):
            self.served.append(own_choice(event))
        if self.mark.at == 0:  # time is counted from the first event
            self.mark = replace(self.mark, at=event.at)

    def _is_judged(self, made: DecisionMade) -> bool:
        is_ours = made.version == self.parent.version
        return is_ours and len(self.served) < _SERVED and is_plain(own_choice(made))

    @property
    def fresh(self) -> int:
        """The number of pairs that got ready since the mark."""
        pairs = self.joiner.pairs
        return len(pairs) - bisect_right(pairs, self.mark.seq, key=lambda pair: pair.ready)


class Learner:
    """Learns from the log in a config's data folder into the snapshots there.

    `reached` is told each step of making a version, once it is done. `teach` lets a bandit
    learn, and `join` joins what is far ahead, where others than this process do.
    """

    def __init__(
        self,
        config: Config,
        *,
        reached: Reached = nothing_more,
        teach: Teach = teach_here,
        join: Join | None = None,
    ) -> None:
        learn = config.learn
        self._config, self._reached = config, reached
        self._teach, self._join = teach, join
        self._folder = Path(config.server.data_dir)
        self._store = open_store(config.log.url, config.snapshots.url, self._folder)
        self._schedule = Schedule(learn.fresh, learn.growth, learn.seconds)
        self._log: AnyLog | None = None
        self._place: _Place | None = None
        self._pointer = (0, 0)
        self._audits: Audits | None = None
        self._state: dict[str, Any] = {}
        self._seconds: float | None = None
        self._made: tuple[str, Bandit] | None = None  # the last version, by its hash

    def acquire_lease(self) -> bool:
        """Become the one learner of this log; tell whether that is so."""
        if self._store.acquire_lease():
            return True
        self.tell("waiting", error="Another learner holds the lease; this one takes over from it.")
        return False

    def start(self) -> None:
        """Finish what a learner that died left half-done."""
        self._store.recover()

    def step(self) -> Step:
        """Make at most one version, if one is due, and tell what was done."""
        self._store.follow()
        current = self._current()
        if current is None:
            return self._make_first()
        try:
            place = self._place = self._place_after(current)
            if self._is_due(place):
                return self._learn(place)
        except BaseException:
            self._place = None
            raise
        learned = place.joiner.learned
        self.tell("waiting", fresh=place.fresh, needed=self._schedule.needed(learned))
        return Step("waited", current.version)

    def audit(self) -> None:
        """Judge a few of the decisions that the current version made, and write that down."""
        place = self._place
        if place is None or not place.served:
            return
        if self._audits is None or self._audits.version != place.parent.version:
            self._audits = Audits.of(place.parent, most=self._config.learn.audited)
        touched = {id for change in place.changes for id in _touched(change)}
        served, place.served = place.served, []
        if self._audits.take(served, touched=touched):
            with suppress(OSError):
                _write(self._folder / "audits.json", self._audits.notes())

    def bandit_of(self, snapshot: Snapshot) -> Bandit | None:
        """Return the bandit of a version, where this learner made it last."""
        made = self._made
        return made[1] if made is not None and made[0] == snapshot.hash else None

    def tell(self, state: str, *, error: str = "", **numbers: Any) -> None:
        """Write down what the learner is doing, where that changed."""
        place = self._place
        told = {
            "state": state,
            "version": None if place is None else place.parent.version,
            "error": error,
            "seconds": self._seconds,
            **numbers,
        }
        if told != self._state:
            with suppress(OSError):  # where a note finds no room, learning goes on
                _write(self._folder / "learner.json", told)
                self._state = told

    # -- the place in the log

    def _current(self) -> Snapshot | None:
        """Give the current version; it is read anew only where the pointer was written anew."""
        try:
            found = os.stat(self._store.pointer)
        except FileNotFoundError:
            return None
        pointer = (found.st_mtime_ns, found.st_ino)
        if self._place is not None and pointer == self._pointer:
            return self._place.parent
        self._pointer = pointer
        return self._store.current()

    def _place_after(self, current: Snapshot) -> _Place:
        """Give the place after the current version: mostly where the last step ended."""
        place = self._place
        if place is not None and place.parent.hash == current.hash:
            return place
        cut = current.cut
        events = self._events(after=cut.since, until=cut.seq)
        refused = [report["cut"] for report in self._reports_after(current.version)]
        mark = Mark(cut.seq, cut.at)
        if refused:
            mark = Mark(max(int(cut["seq"]) for cut in refused), None)
        return _Place(current, Joiner.resumed(cut, events), mark)

    def _reports_after(self, version: int) -> list[dict[str, Any]]:
        return [report for report in self._store.refused() if report["version"] > version]

    def _is_due(self, place: _Place) -> bool:
        """Read on to the event at which a version is due, or to the end of the log."""
        if self._caught_up(place):
            return True
        joiner = place.joiner
        for event in self._events(after=joiner.seq):
            place.take(event)
            if self._schedule.is_due(
                place.mark, fresh=place.fresh, learned=joiner.learned, at=event.at
            ):
                return True
        return False

    def _caught_up(self, place: _Place) -> bool:
        """Let others join what is far ahead; tell whether a version is due there."""
        log = self._opened()
        while log is not None and self._join is not None:
            joiner, last = place.joiner, log.last
            if last - joiner.seq < FAR:
                return False
            stretch = self._join(joiner, until=min(last, joiner.seq + LONG))
            place.mark = stretch.marked(place.mark)
            due = stretch.first_due(self._schedule, place.mark, joiner)
            until = int(stretch.seqs[-1]) if due is None else due
            place.joiner = stretch.followed(joiner, until, self._between)
            changes = log.changes(after=joiner.seq)
            place.changes += [change for change in changes if change.seq <= until]
            if due is not None:
                return True
        return False

    def _between(self, after: int, until: int) -> Iterator[Event]:
        return self._events(after=after, until=until)

    def _events(self, *, after: int, until: int | None = None) -> Iterator[Event]:
        log = self._opened()
        while log is not None and (until is None or after < until):
            events = log.read(after=after, limit=_READ)
            for event in events:
                if until is not None and event.seq > until:
                    return
                yield event
            if not events:
                return
            after = events[-1].seq

    def _opened(self) -> AnyLog | None:
        url = self._config.log.url
        if self._log is None and (url or (self._folder / LOG_FILE).exists()):
            self._log = open_log(url, self._folder, is_reader=True)
        return self._log

    # -- making a version

    def _make_first(self) -> Step:
        log, put = self._opened(), None
        if not self._config.arms.file:
            changes = [] if log is None else log.changes()
            put = next((change for change in changes if change.upserted), None)
            if put is None:
                told = "There are no arms yet: name a file in arms.file, or PUT arms."
                self.tell("waiting", error=told)
                return Step("waited", None, told)
        self.tell("training")
        publish_first(self._config, self._store, put=put, reached=self._reached)
        return Step("published", 0)

    def _learn(self, place: _Place) -> Step:
        self._reached("joined")
        self.tell("training", fresh=place.fresh)
        started, learn = time.monotonic(), self._config.learn
        pairs, version = place.joiner.pairs, self._store.next_version()
        held_out = held_out_of(len(pairs), learn.held_out)
        lesson = Lesson(place.parent, version, list(pairs), list(place.changes), held_out)
        candidate = train(lesson, reached=self._reached, teach=self._teach)
        self._seconds = round(time.monotonic() - started, 3)
        report = refusal(lesson, candidate, learn, cut=place.joiner.cut(0))
        if report is not None:
            self._store.refuse(version, report)
            self._reached("refused")
            place.mark = Mark(place.joiner.seq, None)
            return Step("refused", place.parent.version, report["reason"])
        cut = place.joiner.cut(len(pairs) - held_out)
        snapshot = publish(self._store, lesson, candidate, cut=cut, reached=self._reached)
        self._made = (snapshot.hash, candidate.bandit)
        self._audits = Audits(snapshot.version, candidate.bandit, most=learn.audited)
        self._place = _Place(snapshot, place.joiner, Mark(cut.seq, cut.at))
        self._store.prune(learn.keep)
        self._reached("pruned")
        return Step("published", version)


def _touched(change: ArmsChanged) -> Iterator[Any]:
    yield from (arm.id for arm in change.upserted)
    yield from change.discarded


def _write(path: Path, told: dict[str, Any]) -> None:
    """Write JSON in place of what is there; a power cut may lose it."""
    write_atomic(path, json.dumps(told).encode(), sync=False)
