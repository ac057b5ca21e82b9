"""The service without HTTP: it decides, remembers, and says what ails it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import UnsetType, structs

from fastbandit.arms.rows import Upserted
from fastbandit.errors import LogError, ShapeError
from fastbandit.serving.access import Access
from fastbandit.serving.console.process import FiguresProcess
from fastbandit.serving.decider import Decider, not_ready
from fastbandit.serving.following import Follower
from fastbandit.serving.learner_process import LearnerProcess
from fastbandit.serving.measures import Measures
from fastbandit.serving.problems import Refusal
from fastbandit.serving.schemas import Reason, SelectRequest
from fastbandit.serving.shadowing import is_match, named_arm
from fastbandit.serving.writer import Writer
from fastbandit.settings.service import Config
from fastbandit.storage.arm_changes import apply_change
from fastbandit.storage.events import (
    ArmsChanged,
    DecisionMade,
    Event,
    EventLog,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.shared import open_log
from fastbandit.storage.spooled_log import SpooledLog

_LOGGER = logging.getLogger("fastbandit.serving")
_POLL_SECONDS = 0.25
_FOLLOW_SECONDS = 0.5
_EVERY = 2  # what is not a delta is followed every second time
_LOG_SECONDS = 2.0  # an append to a shared log that has no answer by then goes to the spool
_MEND = "Mend it; the learner tries again."
_MANY = 8  # so many contexts are decided in a thread of their own, others where they come


@dataclass(frozen=True)
class Changed:
    """What became of a change: counts, ids that were not there, all arms, and its number."""

    counts: Upserted
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
        self.decider = Decider(config)
        self.learner = LearnerProcess(config, learner, measures=self.measures)
        self.follower = Follower(
            config, self.decider, self.measures, is_unavailable=lambda: self._away is not None
        )
        self.figures = FiguresProcess(self.folder, log_url=config.log.url)
        self._tasks: list[asyncio.Task[None]] = []
        self.access: Access | None = None  # set by the app in front
        self._last_event = self._last_own = time.monotonic()
        self.started = time.time()
        self.spooled: SpooledLog | None = None  # the log, where it is shared

    @property
    def _is_shared(self) -> bool:
        """Whether other services append to the same log."""
        return bool(self.config.log.url)

    @property
    def _away(self) -> str | None:
        """Why the log is away, None where it is not."""
        away = None if self.spooled is None else self.spooled.away
        return None if away is None else " ".join(str(away).split())

    def _open_log(self) -> EventLog:
        """Open the log to write to."""
        config = self.config.log
        log = open_log(config.url, self.folder, timeout_seconds=_LOG_SECONDS)
        if not self._is_shared:
            return log
        self.spooled = SpooledLog(log, self.folder / "spool.db", most=config.spool_events)
        return self.spooled

    # -- its life

    async def start(self) -> None:
        """Open the log, put the current snapshot into service, and start the learner."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writer = Writer(self._open_log, asyncio.get_running_loop())
        last = self.follower.seen = await self.writer.start()
        self.reader = open_log(self.config.log.url, self.folder, is_reader=True)
        if self._is_shared and self._away is None:
            await self.follower.follow_store()
            await self.follower.follow_deltas()
        shadow = self.decider.shadow
        if shadow is not None:
            await shadow.start()
        await self.follower.swap_if_new()
        jobs = [self._watch_snapshots(), self._let_time_pass()]
        if self._is_shared:
            jobs.append(self._follow_others())
        if shadow is not None and shadow.shared is not None:
            jobs.append(shadow.shared.keep_following())
        if self.learner.is_wanted:
            jobs.append(self.learner.keep())
        self._tasks = [asyncio.create_task(job) for job in jobs]
        _LOGGER.info("started", extra={"events": last, "version": self.version})

    async def stop(self) -> None:
        """Write what was acknowledged, end the learner, and let go of everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.learner.stop()
        await self.figures.stop()
        await self.writer.stop()
        self.reader.close()
        self.follower.store.close()
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
        async with self.follower.changing:
            serving = self.decider.serving
            if serving is None:
                return await self._put_first(change)
            bandit = serving.bandit
            counts = await asyncio.to_thread(apply_change, bandit, change, is_trial=True)
            unknown = bandit.discard_arms(change.taken, is_trial=True) if change.taken else []
            is_nothing = not counts.added + counts.changed and len(unknown) == len(change.taken)
            if is_nothing and not self._is_shared:  # others may have made changes meanwhile
                return Changed(counts, unknown, len(bandit), serving.catalogue)
            (outcome,) = await self.append([change])
            if self._is_shared:  # others' changes come first, in the order of the log
                await asyncio.to_thread(self.follower.catch_up, self.reader)
            else:
                change = structs.replace(change, seq=outcome.seq)
                await asyncio.to_thread(self.decider.put, change)
            return Changed(counts, unknown, len(bandit), outcome.seq)

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
        return Changed(Upserted(len(change.put), 0, 0), [], count, outcome.seq)

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
        return self.follower.seen if self._is_shared else self.reader.last

    @property
    def version(self) -> int | None:
        """The version in service."""
        serving = self.decider.serving
        return None if serving is None else serving.bandit.version

    def reasons(self) -> list[Reason]:
        """Tell why the service is not ready: nothing where it is."""
        found = []
        if self.decider.serving is None:
            found.append(self.follower.trouble or self._missing())
        if self.writer.trouble is not None:
            text = " ".join(str(self.writer.trouble).split())
            found.append(Reason("log", text, "Selects and rewards work again once it can."))
        return found

    def _missing(self) -> Reason:
        """Tell why no snapshot is in service."""
        away = self._away
        if away is not None:
            text = f"No snapshot can serve while the database of the log is away: {away}"
            return Reason("log", text, "The service is ready by itself soon after it is back.")
        state = self.learner.state()
        said = str(state.get("error") or state.get("state") or "").rstrip(".")
        fix = "Wait for the learner to make the first."
        if state.get("state") == "failed":
            fix = _MEND
        return Reason(
            "no snapshot", f"No snapshot is in service yet{f' ({said})' if said else ''}.", fix
        )

    def ailments(self) -> list[Reason]:
        """Tell what does less than it should, though the service is ready."""
        trouble, lost = self.follower.trouble, self.follower.lost
        found = [] if trouble is None or self.decider.serving is None else [trouble]
        away = self._away
        if self.spooled is not None and away is not None:
            waiting, most = self.spooled.waiting, self.config.log.spool_events
            text = f"The database of the log is away: {waiting:,} of {most:,} decisions wait here."
            fix = "See that it runs. Rewards are refused until then, and clients keep them."
            found.append(Reason("log", f"{text} {away}", fix))
        elif lost:
            found.append(Reason("snapshots", lost, "What is here goes on serving."))
        if self.learner.is_down:
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
        state = self.learner.state()
        if state.get("state") == "failed":
            found.append(Reason("learner", str(state.get("error")), _MEND))
        return found

    # -- jobs

    async def _watch_snapshots(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self.measures.close_window()
            if self.decider.shadow is not None:
                self.decider.shadow.follow()
            try:
                await self.follower.swap_if_new()
                await self.follower.apply_if_new()
            except Exception:
                _LOGGER.exception("a snapshot could not be put into service")

    async def _follow_others(self) -> None:
        """Take over snapshots that were published, and changes of the arms, of others."""
        for turn in count():
            await asyncio.sleep(_FOLLOW_SECONDS)
            if self._away is not None:
                continue  # the spool finds out when the database is back
            await self.follower.follow_deltas()
            if turn % _EVERY == 0:
                continue
            with suppress(LogError):  # a later turn finds it back, or a select finds it away
                async with self.follower.changing:
                    await asyncio.to_thread(self.follower.catch_up, self.reader)
            await self.follower.follow_store()

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


def _asked_for(made: DecisionMade) -> tuple[Any, ...]:
    return made.context, len(made.arms), made.eligible, made.explored
