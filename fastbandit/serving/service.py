"""The service without HTTP: its log, its snapshots, its learner, and what ails them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UnsetType, json, structs

from fastbandit.config import Config, all_settings
from fastbandit.errors import FastbanditError, LogAwayError, LogError, ShapeError
from fastbandit.events import (
    ArmsChanged,
    DecisionMade,
    Event,
    EventLog,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.live import Put
from fastbandit.serving.access import Access
from fastbandit.serving.arm_changes import apply_change
from fastbandit.serving.console.process import FiguresProcess
from fastbandit.serving.decider import Decider, Serving, not_ready
from fastbandit.serving.measures import Measures
from fastbandit.serving.problems import Refusal
from fastbandit.serving.schemas import Reason, SelectRequest
from fastbandit.serving.shadowing import is_match, named_arm
from fastbandit.serving.writer import Writer
from fastbandit.storage.shared import open_log, open_store
from fastbandit.storage.snapshot_store import Snapshot
from fastbandit.storage.spooled_log import SpooledLog

_LOGGER = logging.getLogger("fastbandit.serving")
_POLL_SECONDS = 0.25
_FOLLOW_SECONDS = 1.0
_LONGEST_PAUSE = 30.0
_MANY = 8  # so many contexts are decided in a thread of their own, others where they come


@dataclass(frozen=True)
class Changed:
    """What became of a change: counts, ids that were not there, all arms, and its number."""

    counts: Put
    unknown: list[Any]
    arms: int
    catalogue: int


class Service:
    """Decides, remembers and learns; `start` and `stop` belong to one event loop.

    `learner` is the command that trains beside it, None for no learner.
    """

    def __init__(self, config: Config, *, learner: Sequence[str] | None = None) -> None:
        self.config, self.measures = config, Measures()
        self.folder = Path(config.server.data_dir)
        self.store = open_store(config.log.url, config.snapshots.url, self.folder)
        self.decider = Decider(config)
        self._learner_command = None if learner is None else list(learner)
        self._learner: asyncio.subprocess.Process | None = None
        self._changing = asyncio.Lock()
        self.figures = FiguresProcess(self.folder, is_shared=self._is_shared)
        self._tasks: list[asyncio.Task[None]] = []
        self._pointer = (0, 0)
        self.access: Access | None = None  # set by the app in front
        self._trouble: Reason | None = None  # with the snapshot that should serve
        self._last_event = self._last_own = time.monotonic()
        self.started = time.time()
        self.spooled: SpooledLog | None = None  # the log, where it is shared
        self._seen = 0  # the number of the last event, as far as known here
        self._lost = ""  # why published snapshots cannot be taken over

    @property
    def _is_shared(self) -> bool:
        """Whether other services append to the same log."""
        return bool(self.config.log.url)

    def _open_log(self) -> EventLog:
        """Open the log to write to."""
        config = self.config.log
        log = open_log(config.url, self.folder)
        if not self._is_shared:
            return log
        self.spooled = SpooledLog(log, self.folder / "spool.db", most=config.spool_events)
        return self.spooled

    # -- its life

    async def start(self) -> None:
        """Open the log, put the current snapshot into service, and start the learner."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writer = Writer(self._open_log, asyncio.get_running_loop())
        last = self._seen = await self.writer.start()
        self.reader = open_log(self.config.log.url, self.folder, is_reader=True)
        if self._is_shared:
            await self._follow_store()
        if self.decider.shadow is not None:
            self.decider.shadow.follow()
        await self._swap_if_new()
        jobs = [self._watch_snapshots(), self._let_time_pass()]
        if self._is_shared:
            jobs.append(self._follow_others())
        if self._learner_command is not None:
            jobs.append(self._keep_learner())
        self._tasks = [asyncio.create_task(job) for job in jobs]
        _LOGGER.info("started", extra={"events": last, "version": self.version})

    async def stop(self) -> None:
        """Write what was acknowledged, end the learner, and let go of everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._learner is not None and self._learner.returncode is None:
            with suppress(ProcessLookupError):
                self._learner.terminate()
            await self._learner.wait()
        await self.figures.stop()
        await self.writer.stop()
        self.reader.close()
        self.store.close()
        _LOGGER.info("stopped")

    # -- what requests ask for

    async def select(self, request: SelectRequest) -> list[DecisionMade]:
        """Decide, and remember the decisions before anyone hears of them."""
        is_large = not isinstance(request.contexts, UnsetType) and len(request.contexts) > _MANY
        if is_large or request.propensity:
            made = await asyncio.to_thread(self.decider.decide, request)
        else:
            made = self.decider.decide(request)
        outcomes = await self.append(made)
        if any(outcome.status == "repeated" for outcome in outcomes):
            made = await asyncio.to_thread(lambda: list(map(self._first_of, made, outcomes)))
        if any(outcome.status == "spooled" for outcome in outcomes):
            made = [structs.replace(one, degraded=True) for one in made]
        self.measures.decisions += len(made)
        self.measures.degraded += sum(one.degraded for one in made)
        if self.decider.shadow is not None:
            told = [(one.decided_by, is_match(one)) for one in made if one.other is not None]
            self.measures.compared.update(told)
        return made

    async def reward(self, rewards: Sequence[RewardCame]) -> list[Outcome]:
        """Keep rewards; tell what became of each."""
        outcomes = await self.append(rewards)
        for outcome in outcomes:
            self.measures.rewards[outcome.status] += 1
        return outcomes

    async def change_arms(self, change: ArmsChanged) -> Changed:
        """Put arms in or take them out: in the log first, then in what serves."""
        async with self._changing:
            serving = self.decider.serving
            if serving is None:
                return await self._put_first(change)
            bandit = serving.bandit
            counts = await asyncio.to_thread(apply_change, bandit, change, is_trial=True)
            unknown = bandit.take_arms(change.taken, is_trial=True) if change.taken else []
            (outcome,) = await self.append([change])
            if self._is_shared:  # others' changes come first, in the order of the log
                await asyncio.to_thread(self._catch_up)
            else:
                change = structs.replace(change, seq=outcome.seq)
                await asyncio.to_thread(self.decider.put, change)
            return Changed(counts, unknown, len(bandit), outcome.seq)

    def _catch_up(self) -> None:
        """Let what serves know of all changes of the arms that are in the log."""
        serving = self.decider.serving
        if serving is not None:
            for change in self.reader.changes(after=serving.catalogue):
                _apply(serving.bandit, change)
                serving = replace(serving, catalogue=change.seq)
                self.decider.serving = serving
        self._seen = self.reader.last

    async def _put_first(self, change: ArmsChanged) -> Changed:
        """Keep arms that come before there is any snapshot: the first is made of them."""
        if self.config.arms.file or not change.put:
            raise not_ready(self.reasons())
        changes = await asyncio.to_thread(self.reader.changes)
        earlier = [arm for one in changes for arm in one.put]
        sizes = {len(arm.features) for arm in (*earlier, *change.put)}
        if len(sizes) != 1:
            raise ShapeError(
                f"Arms need the same number of features each: got {sorted(sizes)}. Correct them."
            )
        (outcome,) = await self.append([change])
        count = len({arm.id for arm in (*earlier, *change.put)})
        return Changed(Put(len(change.put), 0, 0), [], count, outcome.seq)

    async def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events; on return they are synced."""
        outcomes = await self.writer.submit(events)
        self._last_event = self._last_own = time.monotonic()
        return outcomes

    def _first_of(self, made: DecisionMade, outcome: Outcome) -> DecisionMade:
        """Give the decision that stands in the log under an id."""
        if outcome.status != "repeated":
            return made
        stored = (self.spooled or self.reader).decision(made.id)
        assert stored is not None
        is_named = self.config.shadow.baseline == "request"
        if _asked_for(stored) != _asked_for(made) or (
            is_named and named_arm(stored) != named_arm(made)
        ):
            raise Refusal(
                409,
                "id taken",
                "This id stands for the decision of another request.",
                fix="Send an id of its own with each request; a retry sends the same one again.",
                field="id",
                value=made.id,
            )
        return stored

    # -- what it is now

    @property
    def last_event(self) -> int:
        """The number of the last event; of a shared log, as it was a moment ago."""
        return self._seen if self._is_shared else self.reader.last

    @property
    def version(self) -> int | None:
        """The version in service."""
        serving = self.decider.serving
        return None if serving is None else serving.bandit.version

    def reasons(self) -> list[Reason]:
        """Tell why the service is not ready: nothing where it is."""
        found = []
        if self.decider.serving is None:
            said = self._learner_says()
            found.append(
                self._trouble
                or Reason(
                    "no snapshot",
                    f"No snapshot is in service yet{f' ({said})' if said else ''}.",
                    "Wait for the learner to make the first; its log says how far it is.",
                )
            )
        if self.writer.trouble is not None:
            text = " ".join(str(self.writer.trouble).split())
            found.append(Reason("log", text, "Selects and rewards work again once it can."))
        return found

    def ailments(self) -> list[Reason]:
        """Tell what does less than it should, though the service is ready."""
        found = [] if self._trouble is None or self.decider.serving is None else [self._trouble]
        if self.spooled is not None and self.spooled.away is not None:
            waiting, most = self.spooled.waiting, self.config.log.spool_events
            text = f"The database of the log is away: {waiting:,} of {most:,} decisions wait here."
            fix = "See that it runs. Rewards are refused until then, and clients keep them."
            found.append(Reason("log", text, fix))
        elif self._lost:
            found.append(Reason("snapshots", self._lost, "What is here goes on serving."))
        command, process = self._learner_command, self._learner
        if command is not None and (process is None or process.returncode is not None):
            found.append(
                Reason("learner", "The learner is not running.", "It is started again; see logs.")
            )
        if self.access is not None and self.access.trouble is not None:
            found.append(
                Reason(
                    "keys", self.access.trouble, "Restore the file; the keys as read before hold."
                )
            )
        shadow = self.decider.shadow
        if shadow is not None and shadow.trouble is not None:
            found.append(Reason("decides", shadow.trouble, "Until then nothing changes."))
        state = self.learner_state()
        if state.get("state") == "failed":
            found.append(
                Reason("learner", str(state.get("error")), "Mend it; the learner tries again.")
            )
        return found

    def learner_state(self) -> dict[str, Any]:
        """Give what the learner says of itself."""
        try:
            return dict(json.decode((self.folder / "learner.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}

    def _learner_says(self) -> str:
        state = self.learner_state()
        return str(state.get("error") or state.get("state") or "")

    # -- snapshots

    async def _watch_snapshots(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self.measures.close_window()
            if self.decider.shadow is not None:
                self.decider.shadow.follow()
            try:
                await self._swap_if_new()
            except Exception:
                _LOGGER.exception("a snapshot could not be put into service")

    async def _swap_if_new(self) -> None:
        """Put the snapshot that the pointer names into service, if it is another."""
        try:
            found = os.stat(self.store.pointer)
        except FileNotFoundError:
            return
        pointer = (found.st_mtime_ns, found.st_ino)
        if pointer == self._pointer:
            return
        try:
            await self._swap()
        except LogAwayError:
            return  # tried again: nothing is wrong with the snapshot
        except FastbanditError as error:
            self.measures.failed_swaps += 1
            text = " ".join(str(error).split())
            self._trouble = Reason("snapshot", text, "Roll back, or restore the snapshot.")
            if self.decider.serving is not None:
                serving = self.decider.serving
                self.decider.serving = Serving(serving.bandit, serving.catalogue, (self._trouble,))
            _LOGGER.error("snapshot refused", extra={"reason": text})
        self._pointer = pointer

    async def _swap(self) -> None:
        """Load the current snapshot beside the one that serves, then replace it."""
        snapshot = await asyncio.to_thread(self.store.current)
        if snapshot is None:
            return
        async with self._changing:  # no arm changes between reading them and the swap
            serving = await asyncio.to_thread(self._load, snapshot)
            self._trouble = serving.reasons[0] if serving.reasons else None
            self.decider.serving = serving
        self.measures.swaps += 1
        gc.collect(1)
        _LOGGER.info("swapped", extra={"version": snapshot.version, "arms": len(serving.bandit)})

    def _load(self, snapshot: Snapshot) -> Serving:
        """Map a snapshot, tell it of the arms that changed since, and try it."""
        bandit = FrozenBandit.load(snapshot.frozen)
        log = open_log(self.config.log.url, self.folder, is_reader=True)
        try:
            catalogue = log.last_change()  # first: others may change arms meanwhile
            for change in log.changes(after=snapshot.cut.seq):
                _apply(bandit, change)
                catalogue = max(catalogue, change.seq)
        finally:
            log.close()
        bandit.warm()
        bandit.choose(np.zeros(self.decider.columns, dtype=np.float32), seed=0)
        if self.decider.shadow is not None:
            bandit.parts[1].open_rows_of([0])  # ids are found by name from now on
        reasons: tuple[Reason, ...] = ()
        if snapshot.fell_back:
            reasons = (Reason("snapshot", snapshot.fell_back, "Restore it, or roll back."),)
        return Serving(bandit, catalogue, reasons)

    # -- other services on the same log

    async def _follow_others(self) -> None:
        """Take over snapshots that were published, and changes of the arms, of others."""
        while True:
            await asyncio.sleep(_FOLLOW_SECONDS)
            if self.spooled is not None and self.spooled.away is not None:
                continue  # the spool finds out when the database is back
            with suppress(LogError):  # a later turn finds it back, or a select finds it away
                async with self._changing:
                    await asyncio.to_thread(self._catch_up)
            await self._follow_store()

    async def _follow_store(self) -> None:
        """Take over what was published; where that fails, what is here goes on."""
        try:
            await asyncio.to_thread(self.store.follow)
            self._lost = ""
        except Exception as error:  # of a store, which may be any
            text = " ".join(str(error).split())
            if not self._lost:
                is_known = isinstance(error, FastbanditError)
                _LOGGER.warning("cannot follow", extra={"reason": text}, exc_info=not is_known)
            self._lost = text

    # -- time

    async def _let_time_pass(self) -> None:
        """Write that time passed while nothing else happens and something waits for it.

        While the log cannot be written to, try again, so that its recovery is noticed.
        """
        config = self.config
        quiet = max(1.0, min(config.reward.wait_seconds, config.learn.seconds))
        until = config.reward.wait_seconds + config.learn.seconds + 2 * quiet
        while True:
            await asyncio.sleep(min(1.0, quiet))
            now = time.monotonic()
            is_due = now - self._last_event >= quiet and now - self._last_own <= until
            if is_due or self.writer.trouble is not None:
                self._last_event = now
                with suppress(LogError):
                    await self.writer.submit([TimePassed()])

    # -- the learner

    async def _keep_learner(self) -> None:
        """Start the learner, and start it again when it ends, ever more slowly."""
        assert self._learner_command is not None
        pause = 0.5
        while True:
            began = time.monotonic()
            self.measures.learner_starts += 1
            self._learner = await asyncio.create_subprocess_exec(
                *self._learner_command,
                stdin=asyncio.subprocess.DEVNULL,
                env=_environment(self.config),
            )
            status = await self._learner.wait()
            _LOGGER.error("the learner ended", extra={"status": _status_name(status)})
            pause = 0.5 if time.monotonic() - began > 60 else min(2 * pause, _LONGEST_PAUSE)
            await asyncio.sleep(pause)


def _apply(bandit: FrozenBandit, change: ArmsChanged) -> None:
    """Make a change that is in the log; one that another's made impossible is left out by all."""
    try:
        apply_change(bandit, change)
    except FastbanditError as error:
        told = {"change": change.seq, "reason": " ".join(str(error).split())}
        _LOGGER.error("a change of the arms cannot be made", extra=told)


def _asked_for(made: DecisionMade) -> tuple[Any, ...]:
    return made.context, len(made.arms), made.eligible, made.explored


def learner_command() -> list[str]:
    """Give the command that runs a learner of this process, with settings in its environment."""
    return [sys.executable, "-m", "fastbandit", "learn", "--parent", str(os.getpid())]


def _environment(config: Config) -> dict[str, str]:
    """Give this process's environment, with all settings in it: a child reads the same config."""
    told = {
        setting.variable: _written(getattr(getattr(config, setting.section), setting.key))
        for setting in all_settings()
    }
    return {**os.environ, **told}


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.encode(value).decode()


def _status_name(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else str(status)
