"""The service without HTTP: it decides, remembers, and reports its health."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from msgspec import structs

from fastbandit import __version__
from fastbandit.arms.offers import arm_count
from fastbandit.arms.rows import Upserted
from fastbandit.errors import LogError, SettingError
from fastbandit.files.private import make_private
from fastbandit.learning.arm_file import first_arms
from fastbandit.serving.access import Access
from fastbandit.serving.console.process import FiguresProcess
from fastbandit.serving.decider import Decider, not_ready
from fastbandit.serving.large_work import LargeWork
from fastbandit.serving.learner_process import MEND, LearnerProcess, keep_retaining
from fastbandit.serving.log_client import LogClient
from fastbandit.serving.log_watch import LogWatch
from fastbandit.serving.metrics import Metrics
from fastbandit.serving.personalizer.configuration import configured
from fastbandit.serving.request_limits import is_large
from fastbandit.serving.retries import check_same_request
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.schemas import Reason, SelectRequest, Status
from fastbandit.serving.shadow import is_match
from fastbandit.serving.snapshot_follower import SnapshotFollower
from fastbandit.serving.worker_link import WorkerLink
from fastbandit.serving.writer import Writer
from fastbandit.settings.service import Config
from fastbandit.storage.arm_changes import ArmsOutcome, apply_change, by_name
from fastbandit.storage.column_marks import SecretNames
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
_PATIENT_SECONDS = 60.0  # for one decision out of the spool that is too large for that
_REWARDS = 1_000  # written at a time, so that others need not wait for many


class Service:
    """Decides, remembers and learns; `start` and `stop` belong to one event loop.

    `learner` is the command that trains beside it, None for no learner. `link` ties a worker to the
    others of its service, which append to the same log.
    """

    def __init__(
        self,
        config: Config,
        *,
        learner: Sequence[str] | None = None,
        link: WorkerLink | None = None,
    ) -> None:
        self.config = config = configured(config)
        self.metrics, self.link = Metrics(), link
        self._is_shared = bool(config.log.url)  # others append to the same log
        self.folder = Path(config.server.data_dir)
        self.decider, self.large = Decider(config), LargeWork()
        self.follower = follower = SnapshotFollower(
            config, self.decider, self.metrics, is_unavailable=lambda: self._outage is not None
        )
        self.learner = LearnerProcess(
            config, learner, metrics=self.metrics, leader=lambda: follower.leader
        )
        self.figures = FiguresProcess(self.folder, log_url=config.log.url)
        self._tasks: list[asyncio.Task[None]] = []
        self.polled: list[Callable[[], None]] = []  # what others follow, beside snapshots
        self.access: Access | None = None  # set by the app in front
        self._last_event = self._last_own = time.monotonic()
        self.started = time.time()
        self.spooled: SpooledLog | None = None  # the log, if shared
        self.log_watch = LogWatch(self.folder, is_shared=self._is_shared)

    @property
    def _outage(self) -> str | None:
        """Why the log is unavailable, None where it is not."""
        error = None if self.spooled is None else self.spooled.unavailable
        return None if error is None else " ".join(str(error).split())

    def _open_log(self) -> EventLog:
        config, folder, secret = self.config.log, self.folder, SecretNames.of(self.config)
        log = open_log(config.url, folder, timeout_seconds=_LOG_SECONDS, secret=secret)
        self.log_watch.clock = getattr(log, "steady", log.clock)
        if not self._is_shared:
            return log
        patient = open_log(config.url, folder, timeout_seconds=_PATIENT_SECONDS)
        spool, most = folder / "spool.db", config.spool_events
        self.spooled = SpooledLog(log, spool, most=most, patient=patient)
        return self.spooled

    # -- its life

    async def start(self) -> None:
        """Open the log, put the current snapshot into service, and start the learner."""
        make_private(self.folder)
        self.writer: Writer | LogClient
        if self.link is None:
            is_whole = not self._is_shared  # that one has a spool
            self.writer = Writer(self._open_log, asyncio.get_running_loop(), is_whole=is_whole)
        else:
            await self.link.start(self.metrics)
            self.writer = self.log_watch.clock = self.link.log
        last = self.follower.seen = await self.writer.start()
        self.reader = open_log(self.config.log.url, self.folder, is_reader=True)
        if self._is_shared and self._outage is None:
            await self.follower.follow_store()
            await self.follower.follow_deltas()
        shadow = self.decider.shadow
        if shadow is not None:
            await shadow.start()
        try:
            if self._outage is None:
                await asyncio.to_thread(self.log_watch.check, self.reader, self.follower.store)
            await self.follower.swap_if_new(is_start=True)
        except (SettingError, LogError):
            await self.stop()
            raise
        jobs = [self._watch_snapshots(), self._let_time_pass()]
        if self._is_shared:
            jobs.append(self._follow_others())
        if self.link is not None:
            jobs.append(self.link.follow(self.follower, self.folder))
        if shadow is not None and shadow.shared is not None:
            jobs.append(shadow.shared.keep_following())
        if self.learner.is_wanted:
            jobs.append(self.learner.keep_running())
        is_regular = bool(self.config.log.retain_days or self.decider.drops)
        if (is_regular or self.config.personalizer.enabled) and self.link is None:
            jobs.append(keep_retaining(self.config, is_regular=is_regular))
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
        self.large.stop()
        self.log_watch.mark(self.reader, is_last=True)
        if self.link is not None:
            self.link.close()
        self.reader.close()
        self.follower.store.close()
        _LOGGER.info("stopped")

    # -- what requests ask for

    async def select(self, request: SelectRequest) -> list[DecisionMade]:
        """Decide, and remember the decisions before anyone hears of them."""
        is_slow, decide = is_large(request), self.decider.decide
        made = await self.large.do(partial(decide, request)) if is_slow else decide(request)
        return await self.remember(made)

    async def remember(self, made: list[DecisionMade]) -> list[DecisionMade]:
        """Write decisions; return them, or those that stand in the log under their ids."""
        outcomes = await self.append(made)
        if any(outcome.status == "repeated" for outcome in outcomes):
            made = await self.large.do(lambda: list(map(self._first_of, made, outcomes)))
        if any(outcome.status == "spooled" for outcome in outcomes):
            made = [structs.replace(one, degraded=True) for one in made]
        self.metrics.decisions += len(made)
        self.metrics.degraded += sum(one.degraded for one in made)
        if self.decider.shadow is not None:
            both = [(one.decided_by, is_match(one)) for one in made if one.other is not None]
            self.metrics.compared.update(both)
        return made

    async def reward(self, rewards: Sequence[RewardCame]) -> list[Outcome]:
        """Write rewards, many of them in parts; return what became of each."""
        outcomes: list[Outcome] = []
        for first in range(0, len(rewards), _REWARDS):
            outcomes += await self.append(rewards[first : first + _REWARDS])
        self.metrics.rewards.update(outcome.status for outcome in outcomes)
        return outcomes

    def decision(self, id: str) -> DecisionMade | None:
        """Return the decision that stands in the log under an id; it may block."""
        return (self.spooled or self.reader).decision(id)

    async def change_arms(self, change: ArmsChanged) -> ArmsOutcome:
        """Upsert or discard arms: in the log first, then in what serves."""
        async with self.follower.changing:
            serving = self.decider.serving
            if serving is None:
                return await self._add_first(change)
            bandit = serving.bandit
            schema, wanted = self.decider.secrets.arms(arm_schema_of(bandit)), bandit.columns or ()
            arms = by_name(change.upserted, schema, wanted=wanted) if change.upserted else []
            change = structs.replace(change, upserted=arms)
            counts = await asyncio.to_thread(apply_change, bandit, change, is_trial=True)
            unknown = (
                bandit.discard_arms(change.discarded, is_trial=True) if change.discarded else []
            )
            is_nothing = not counts.added + counts.changed and len(unknown) == len(change.discarded)
            is_alone = not self._is_shared and self.link is None
            if is_nothing and is_alone:  # others may have made changes meanwhile
                return ArmsOutcome(counts, unknown, len(bandit), serving.catalogue)
            (outcome,) = await self.append([change])
            if is_alone:
                await asyncio.to_thread(apply_change, bandit, change)
                self.decider.publish(bandit, catalogue=outcome.seq)
            else:  # others' changes come first, in the order of the log
                await asyncio.to_thread(self.follower.catch_up, self.reader)
            return ArmsOutcome(counts, unknown, len(bandit), outcome.seq)

    async def _add_first(self, change: ArmsChanged) -> ArmsOutcome:
        """Write arms that come before there is any snapshot: the first is made of them."""
        if self.config.arms.file or not change.upserted:
            raise not_ready(self.reasons())
        changes = await asyncio.to_thread(self.reader.changes)
        arms = first_arms(change, changes, self.config.arms)
        (outcome,) = await self.append([structs.replace(change, upserted=arms)])
        count = len({arm.id for one in (*changes, change) for arm in one.upserted})
        return ArmsOutcome(Upserted(len(arms), 0, 0), [], count, outcome.seq)

    async def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events; on return they are synced."""
        outcomes = await self.writer.submit(events)
        self._last_event = self._last_own = time.monotonic()
        return outcomes

    def _first_of(self, made: DecisionMade, outcome: Outcome) -> DecisionMade:
        """Return the decision that stands in the log under an id."""
        if outcome.status != "repeated":
            return made
        stored = self.decision(made.id)
        assert stored is not None
        check_same_request(stored, made, is_named=self.config.shadow.baseline == "request")
        return stored

    # -- what it is now

    @property
    def last_event(self) -> int:
        """The number of the last event; of a shared log, as it was a moment ago."""
        return self.follower.seen if self._is_shared else self.reader.last

    @property
    def version(self) -> int | None:
        return None if self.decider.serving is None else self.follower.version

    def reasons(self) -> list[Reason]:
        """Return why the service is not ready: nothing where it is."""
        found = []
        if self.decider.serving is None:
            found.append(self.follower.problem or self._missing())
        if self.writer.problem is not None:
            text = " ".join(str(self.writer.problem).split())
            found.append(Reason("log", text, "Selects and rewards work again once it can."))
        return found

    def outages(self) -> list[Reason]:
        """Return why rewards are rejected though decisions are made: they go to the spool."""
        if self.spooled is None or self._outage is None:
            return []
        waits = f"{self.spooled.waiting:,} of {self.config.log.spool_events:,} decisions wait"
        text = f"The database of the log is unavailable: {waits} here. {self._outage}"
        fix = "See that it runs. Rewards are rejected until then, and clients retain them."
        return [Reason("log", text, fix)]

    def _missing(self) -> Reason:
        """Return why no snapshot is in service."""
        if (outage := self._outage) is not None:
            text = f"No snapshot can serve while the database of the log is unavailable: {outage}"
            return Reason("log", text, "The service is ready by itself soon after it is back.")
        state = self.learner.state()
        said = str(state.get("error") or state.get("state") or "").rstrip(".")
        is_failed = state.get("state") == "failed"
        fix = MEND if is_failed else "Wait for the learner to make the first."
        return Reason(
            "no snapshot", f"No snapshot is in service yet{f' ({said})' if said else ''}.", fix
        )

    def problems(self) -> list[Reason]:
        """Return why the service is degraded, though it is ready."""
        problem, lost = self.follower.problem, self.follower.lost
        found = [] if problem is None or self.decider.serving is None else [problem]
        found += self.outages()
        if lost and self._outage is None:
            found.append(Reason("snapshots", lost, "What is here goes on serving."))
        if self.link is not None:
            found += self.link.problems()
        if self.spooled is not None and (aside := self.spooled.set_aside):
            text = f"Decisions that the log did not take lie in {self.folder}: {', '.join(aside)}."
            fix = "Read them with another tool, or restore the file; then move it elsewhere."
            found.append(Reason("set aside", text, fix))
        if self.access is not None and self.access.problem is not None:
            fix = "Restore the file; the keys as read before hold."
            found.append(Reason("keys", self.access.problem, fix))
        shadow = self.decider.shadow
        if shadow is not None and shadow.problem is not None:
            found.append(Reason("promotion", shadow.problem, "Until then nothing changes."))
        refusals = self.follower.refusals()
        return found + self.log_watch.problems() + self.learner.problems(refusals)

    async def totals(self) -> Metrics:
        """Return what was counted, by all workers where there are others."""
        return self.metrics if self.link is None else await self.link.totals()

    def status(self, metrics: Metrics | None = None) -> Status:
        """Say what serves now, and how well: by its own metrics, or by those of all."""
        metrics = metrics or self.metrics
        serving, reasons, shadow = self.decider.serving, self.reasons(), self.decider.shadow
        return Status(
            fastbandit=__version__,
            ready=not reasons,
            reasons=reasons,
            problems=self.problems(),
            version=self.version,
            catalogue=0 if serving is None else serving.catalogue,
            arms=0 if serving is None else arm_count(serving.bandit),
            arms_not_indexed=0 if serving is None else serving.bandit.waiting,
            events=self.last_event,
            uptime_seconds=round(time.time() - self.started, 3),
            learner=self.learner.state(),
            checks=self.follower.checks,
            refused_in_a_row=len(self.follower.refusals()),
            serving=metrics.quantiles(),
            rewards=dict(metrics.rewards),
            decides="bandit" if shadow is None else shadow.decides,
            baseline="" if shadow is None else shadow.baseline,
        )

    # -- jobs

    async def _watch_snapshots(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self.metrics.close_window()
            self.log_watch.mark(self.reader)
            if self.decider.shadow is not None:
                self.decider.shadow.follow()
            for follow in self.polled:
                follow()
            try:
                await self.follower.swap_if_new()
                await self.follower.apply_if_new()
            except Exception:
                _LOGGER.exception("a snapshot could not be put into service")

    async def _follow_others(self) -> None:
        """Take over snapshots that were published, and changes of the arms, of others."""
        for step in count():
            await asyncio.sleep(_FOLLOW_SECONDS)
            if self._outage is not None:
                continue  # the spool finds out when the database is back
            await self.follower.follow_deltas()
            if step % _EVERY == 0:
                continue
            try:
                async with self.follower.changing:
                    await asyncio.to_thread(self.follower.catch_up, self.reader)
            except LogError as error:
                if self.spooled is not None:
                    self.spooled.notice(error)
            await self.follower.follow_store()

    async def _let_time_pass(self) -> None:
        """Write that time passed while nothing else happens and something waits for it.

        While the log cannot be written to, try again, so that its recovery is noticed.
        """
        while True:
            await asyncio.sleep(1.0)
            wait, pause = self.config.reward.wait_seconds, self.config.learn.seconds
            quiet, now = max(1.0, min(wait, pause)), time.monotonic()
            is_quiet, since = now - self._last_event >= quiet, now - self._last_own
            is_due = is_quiet and since <= wait + pause + 2 * quiet
            if is_due or self.writer.problem is not None:
                self._last_event = now
                with suppress(LogError):
                    await self.writer.submit([TimePassed()])
