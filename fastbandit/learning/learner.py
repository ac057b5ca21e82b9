"""The learner: reads the log as it grows, and makes a version whenever one is due."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import torch

from fastbandit import __version__
from fastbandit.bandit import Bandit
from fastbandit.files.atomic import write_atomic
from fastbandit.learning.auditing import Audits, is_plain, own_choice
from fastbandit.learning.backlog import FAR, LONG, JoinRange
from fastbandit.learning.candidates import (
    ForgottenMeanwhileError,
    Train,
    TrainingJob,
    held_out_of,
    publish_candidate,
    refusal_of,
    train_candidate,
)
from fastbandit.learning.checkpoints import Checkpoints, update_in
from fastbandit.learning.initial_version import context_notes, publish_initial_version, reset_model
from fastbandit.learning.joining import Joiner, known
from fastbandit.learning.learner_report import OTHER_LEADS, LearnerReport
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.learning.service_data import ServiceData
from fastbandit.learning.training_history import FORGOTTEN, ForgottenSince, TrainingHistory
from fastbandit.runtime.servable import servable
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import CHECKPOINTS
from fastbandit.storage.events import Arm, ArmId, ArmsChanged, DecisionMade, Event
from fastbandit.storage.snapshot_store import Reached, nothing_more
from fastbandit.storage.snapshot_version import Snapshot

_SERVED = 1_000  # decisions of the current version that may wait for their audit
_MOST_FRESH = 1_000_000  # interactions beyond which a learner that is behind looks no further


@dataclass(frozen=True)
class Step:
    """What a step did, and why; `version` is served after it."""

    did: Literal["waited", "published", "refused"]
    version: int | None
    reason: str = ""


@dataclass
class _Position:
    """Where the learner is in the log since its parent's cut."""

    parent: Snapshot
    joiner: Joiner
    mark: Mark
    changes: list[ArmsChanged] = field(default_factory=list)
    offers: dict[ArmId, Arm] = field(default_factory=dict)  # arms taken that came with requests
    served: list[DecisionMade] = field(default_factory=list)
    due_at: int | None = None  # when a version got due first, where one is

    def take(self, event: Event) -> None:
        self.joiner.feed(event)
        if isinstance(event, ArmsChanged):
            self.changes.append(event)
        elif isinstance(event, DecisionMade) and event.offered:
            self.offers |= {arm.id: arm for arm in event.offers.values()}
        elif isinstance(event, DecisionMade) and event.version == self.parent.version:
            made = own_choice(event)
            if len(self.served) < _SERVED and is_plain(made):
                self.served.append(made)
        if self.mark.at == 0:  # time is counted from the first event
            self.mark = replace(self.mark, at=event.at)

    @property
    def fresh(self) -> int:
        """The number of interactions that got ready since the mark."""
        ready = self.joiner.interactions
        return len(ready) - bisect_right(ready, self.mark.seq, key=lambda one: one.ready)


class Learner:
    """Learns from the log in a config's data folder into the snapshots there.

    `reached` is called with each step of making a version, once it is done. `train` trains a
    bandit, and `join` joins what is far ahead, where others than this process do.
    """

    def __init__(
        self,
        config: Config,
        *,
        reached: Reached = nothing_more,
        train: Train | None = None,
        join: JoinRange | None = None,
    ) -> None:
        learn = config.learn
        self._config, self._step_reached = config, reached
        self._train, self._join = train, join
        self._data = ServiceData(config)
        self._store = self._data.store
        self._schedule = Schedule(learn.fresh, learn.growth, learn.seconds)
        self._position: _Position | None = None
        self._pointer: tuple[int, int] | None = None
        self._audits: Audits | None = None
        self._report = LearnerReport(self._data.folder)
        self._seconds: float | None = None
        self._made: tuple[str, Bandit] | None = None  # the last version, by its hash
        self._forgotten = ForgottenSince(self._data)
        self._relearned = ""  # the hash of a version whose rewards were combined anew

    def acquire_lease(self) -> bool:
        """Become the one learner of this log; return whether that is so."""
        if self._store.acquire_lease(self._report.to_others):
            return True
        self.report("waiting", error=OTHER_LEADS)
        return False

    def start(self) -> None:
        """Finish what a learner that died left half-done."""
        self._store.recover()

    def step(self) -> Step:
        """Make at most one version, if one is due, and return what was done."""
        self._store.follow()
        if (current := self._current()) is None:
            return self._publish_initial()
        if made := reset_model(self._config, self._data, parent=current, reached=self._reached):
            return Step("published", made.version)
        try:
            position = self._position = self._position_after(current)
            if self._is_due(position):
                return self._learn(position)
        except ForgottenMeanwhileError:
            self._position, self._relearned = None, ""
            return self.step()
        except BaseException:
            self._position = None
            raise
        needed = self._schedule.needed(position.joiner.learned)
        self.report("waiting", fresh=position.fresh, needed=needed)
        return Step("waited", current.version)

    def audit(self) -> None:
        """Judge a few of the decisions that the current version made, and write that down."""
        position = self._position
        if position is None or not position.served:
            return
        if self._audits is None or self._audits.version != position.parent.version:
            self._audits = Audits.of(position.parent, self._config)
        upserted = {arm.id for change in position.changes for arm in change.upserted}
        touched = upserted.union(*(change.discarded for change in position.changes))
        served, position.served = position.served, []
        if self._audits.add(served, touched=touched):
            with suppress(OSError):  # where they find no room, learning goes on
                notes = json.dumps(self._audits.notes()).encode()
                write_atomic(self._data.folder / "audits.json", notes, sync=False)

    def bandit_of(self, snapshot: Snapshot) -> Bandit | None:
        """Return the bandit of a version, where this learner made it last."""
        made = self._made
        return made[1] if made is not None and made[0] == snapshot.hash else None

    def report(
        self, state: str, *, error: str = "", fresh: int | None = None, needed: int | None = None
    ) -> None:
        """Write down what the learner is doing, where that changed."""
        position = self._position
        due_at = None if position is None else position.due_at
        notes = {
            "state": state,
            "version": None if position is None else position.parent.version,
            "error": error,
            "seconds": self._seconds,
            "lag_seconds": 0.0 if due_at is None else self._lag(due_at),
            "measured_at": None if due_at is None else round(time.monotonic(), 3),
            **({} if fresh is None else {"fresh": fresh}),
            **({} if needed is None else {"needed": needed}),
        }
        self._report.write(notes)

    def close(self) -> None:
        """Let go of everything, the lease too."""
        self._data.close()

    def _reached(self, step: str) -> None:
        self._report.progressed()
        self._step_reached(step)

    def _lag(self, due_at: int) -> float:
        """Return for how many seconds a version has been due, by the clock of the log."""
        log = self._data.log
        last_at = due_at if log is None else log.last_at
        return round(max(0, last_at - due_at) / 1e6, 3)

    def _current(self) -> Snapshot | None:
        """Return the current version; it is read anew only where the pointer was written anew.

        Where it cannot be trained from, or served, that is set aside: an older one stands in.
        """
        pointer = self._data.pointer()
        if pointer is None:
            return None
        if self._position is not None and pointer == self._pointer:
            return self._position.parent
        self._pointer = pointer
        return (found := self._store.load(self._check)) and found[0]

    def _check(self, snapshot: Snapshot) -> None:
        """Raise unless a version of elsewhere, or of before, can be trained from and served."""
        if self.bandit_of(snapshot) is None:
            servable(snapshot)
            Bandit.load(snapshot.bandit, part_modules=self._config.select.part_modules)

    def _position_after(self, current: Snapshot) -> _Position:
        """Return the position after the current version: mostly where the last step ended."""
        position, cut = self._position, current.cut
        if position is not None and position.parent.hash == current.hash:
            return position
        events = self._data.events(after=cut.since, until=cut.seq)
        mark, reports = Mark(cut.seq, cut.at), self._store.refused()
        refused = [one["cut"]["seq"] for one in reports if one["version"] > current.version]
        if refused:
            mark = Mark(max(map(int, refused)), None)
        return _Position(current, Joiner.resumed(cut, events, self._config.reward), mark)

    def _is_due(self, position: _Position) -> bool:
        """Read on to the newest event at which a version is due, or to the end of the log.

        Where the settings combine outcomes otherwise than the version did, or some of what it
        learned was forgotten since, one is due at once.
        """
        is_forgotten = self._forgotten.since(position.parent)
        if is_forgotten or self._is_combined_anew(position.parent):
            self._relearned, position.due_at = position.parent.hash, position.joiner.at
            return True
        if not self._read_to_due(position):
            return False
        newest = self._begun_cut(position) or self._newest_due(position)
        position.due_at = position.joiner.at
        if newest > position.joiner.seq:
            self._read_to_due(position, until=newest, is_stopping=False)
        return True

    def _is_combined_anew(self, version: Snapshot) -> bool:
        """Return whether a version learned rewards that the settings make otherwise, for once."""
        is_other = version.notes.get("reward", "") != self._config.reward.combination
        return bool(version.cut.interactions) and is_other and self._relearned != version.hash

    def _begun_cut(self, position: _Position) -> int | None:
        """Return the event up to which a learner that died was learning, if it was."""
        update, log = update_in(self._data.folder / CHECKPOINTS), self._data.log
        cut, is_same = int(update.get("cut", 0)), update.get("parent") == position.parent.hash
        assert log is not None
        return cut if is_same and position.joiner.seq <= cut <= log.last else None

    def _newest_due(self, position: _Position) -> int:
        """Return the last event at which a version is due: a later one where the learner is behind.

        Later ones are counted from the one before, as if a version had been cut there. The rest is
        for the next version where there is very much: what is fresh is held in memory.
        """
        log, newest, at = self._data.log, position.joiner.seq, position.joiner.at
        assert log is not None
        if not self._schedule.is_behind(due_at=at, last_at=log.last_at):
            return newest
        until, ahead = log.last, _Position(position.parent, position.joiner.copy(), position.mark)
        events = self._data.events(after=ahead.joiner.seq, until=until)  # are read through once
        following, taken = events if self._join is None else None, 0
        while (taken := taken + len(ahead.joiner.interactions)) < _MOST_FRESH:
            joiner = ahead.joiner
            joiner.cut(len(joiner.interactions))
            ahead.mark = Mark(joiner.seq, joiner.at)
            if not self._read_to_due(ahead, until=until, events=following):
                return newest
            newest = ahead.joiner.seq
        return newest

    def _read_to_due(
        self,
        position: _Position,
        *,
        until: float = inf,
        is_stopping: bool = True,
        events: Iterator[Event] | None = None,
    ) -> bool:
        """Read on up to an event; stop where a version is due, and return whether one is.

        `events` are those that come next, where they are being read already.
        """
        if self._caught_up(position, until=until, is_stopping=is_stopping):
            return True
        joiner = position.joiner
        following = self._data.events(after=joiner.seq, until=until) if events is None else events
        for event in following:
            position.take(event)
            if is_stopping and self._schedule.is_due(
                position.mark, fresh=position.fresh, learned=joiner.learned, at=event.at
            ):
                return True
        return False

    def _caught_up(self, position: _Position, *, until: float, is_stopping: bool) -> bool:
        """Let workers join what is far ahead; return whether a version is due there."""
        log = self._data.log
        while log is not None and self._join is not None:
            joiner, last = position.joiner, int(min(log.last, until))
            if last - joiner.seq < FAR:
                return False
            joined = self._join(joiner, until=min(last, joiner.seq + LONG))
            position.mark = joined.marked(position.mark)
            due = joined.first_due(self._schedule, position.mark, joiner) if is_stopping else None
            upto = int(joined.seqs[-1]) if due is None else due
            position.joiner = joined.followed(joiner, upto, self._data.events)
            changes = log.changes(after=joiner.seq)
            position.changes += [change for change in changes if change.seq <= upto]
            for made in log.offers(after=joiner.seq, until=upto):
                position.offers |= {arm.id: arm for arm in made.offers.values()}
            if due is not None:
                return True
        return False

    def _publish_initial(self) -> Step:
        log, change = self._data.log, None
        if not self._config.arms.file:
            changes = [] if log is None else log.changes()
            change = next((change for change in changes if change.upserted), None)
            if change is None and not self._config.arms.any_names:
                reason = "There are no arms yet: name a file in arms.file, or PUT arms."
                self.report("waiting", error=reason)
                return Step("waited", None, reason)
        self.report("training")
        publish_initial_version(self._config, self._store, change=change, reached=self._reached)
        return Step("published", 0)

    def _checkpoints_of(self, job: TrainingJob, joiner: Joiner) -> Checkpoints:
        update = {
            "parent": job.parent.hash,
            "version": job.version,
            "cut": joiner.seq,
            "interactions": [joiner.learned, len(job.interactions), job.held_out],
            "trained_by": [__version__, str(torch.__version__)],
            **({FORGOTTEN: job.forgotten} if job.forgotten else {}),
        }
        if self._config.reward.combination:
            update["reward"] = self._config.reward.combination
        return Checkpoints(self._data.folder / CHECKPOINTS, update, reached=self._reached)

    def _learn(self, position: _Position) -> Step:
        self._reached("joined")
        self.report("training", fresh=position.fresh)
        started, learn, joiner = time.monotonic(), self._config.learn, position.joiner
        history, version = TrainingHistory(self._data), self._store.next_version()
        forgotten = history.forgotten_until(joiner.seq)
        fresh = history.without_forgotten(joiner.interactions)
        held_out = held_out_of(len(fresh), learn.held_out)
        is_relearning = self._relearned == position.parent.hash
        if not (is_relearning or known(fresh[: len(fresh) - held_out])):  # nothing to learn
            position.mark, position.due_at = Mark(joiner.seq, None), None
            return Step("waited", position.parent.version)
        job = TrainingJob(
            position.parent,
            version,
            fresh,
            list(position.changes),
            held_out,
            part_modules=self._config.select.part_modules,
            offers=list(position.offers.values()),
            forgotten=forgotten,
            select=self._config.select,
        )
        checkpoints = self._checkpoints_of(job, joiner)
        terms: dict[str, Any] = {"reached": self._reached, "history": history}
        candidate = train_candidate(job, train=self._train, checkpoints=checkpoints, **terms)
        self._seconds = round(time.monotonic() - started, 3)
        refusal = refusal_of(job, candidate, learn, cut=joiner.cut(0))
        if refusal is not None:
            self._store.refuse(version, refusal)
            self._reached("refused")
            self._forgotten.refused()
            checkpoints.remove()
            position.mark, position.due_at = Mark(joiner.seq, None), None
            return Step("refused", position.parent.version, refusal["reason"])
        candidate.notes.update(context_notes(self._config, position.parent))
        cut = joiner.cut(len(fresh) - held_out)
        snapshot = publish_candidate(self._store, job, candidate, cut=cut, **terms)
        self._made = (snapshot.hash, candidate.bandit)
        self._audits = Audits(snapshot.version, candidate.bandit, most=learn.audited)
        self._position = _Position(snapshot, joiner, Mark(cut.seq, cut.at))
        checkpoints.remove()
        self._store.prune(learn.keep)
        self._reached("pruned")
        return Step("published", version)
