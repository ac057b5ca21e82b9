"""A shared log and store at their worst: outages of all kinds, large requests, damaged versions.

Outages: visitors ask three deciders through the client while the database is away, hangs, is full,
read-only or lacks a table, for longer than rewards are waited for; a decider is killed within each.
Large requests: the largest select and reward request that are permitted, to one decider, while
others are asked. Damaged versions: one in the store is changed or deleted; then a decider and a
trainer start with empty folders.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from multiprocessing import get_context
from typing import Any

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.learning.joining import Joiner
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.events import Event, RewardCame, TimePassed
from fastbandit.storage.postgres_connection import psycopg
from lab.faults.cluster import Visitor, doubled, unpaid_rewards, visited
from lab.faults.cluster_stage import Cluster, cluster_of, hanging, stop_database
from lab.faults.consistency import Rewards, lost_decisions
from lab.faults.damaged import Damaged, damaged_versions
from lab.faults.ending import end_with_report
from lab.faults.stage import Caller

_DRAIN_SECONDS = 120.0
_ELIGIBLE, _CONTEXTS, _REWARDS = 60_000, 16, 1_000  # as the limits permit
_ARMS = 1_000  # of one decision
_SLOWER = 3.0
_FULL = """
CREATE FUNCTION fastbandit.full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'
    USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER is_full BEFORE UPDATE ON fastbandit.head EXECUTE FUNCTION fastbandit.full();
"""
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND application_name = 'fastbandit'
"""


# -- outages


@dataclass(frozen=True)
class Outage:
    """What was found after an outage; a label is wrong where it is not the reward that came."""

    name: str
    decisions: int
    degraded: int
    failed_selects: int
    lost_decisions: int
    lost_rewards: int
    doubled: int
    late: int
    wrong_labels: int
    back_seconds: float

    @property
    def is_whole(self) -> bool:
        lost = self.lost_decisions + self.lost_rewards + self.doubled
        return self.failed_selects + lost + self.late + self.wrong_labels == 0


@contextmanager
def _away(cluster: Cluster) -> Iterator[None]:
    stop_database(cluster.database, "fast")
    yield
    cluster.database.start()


@contextmanager
def _read_only(cluster: Cluster) -> Iterator[None]:
    _do(cluster, "ALTER DATABASE postgres SET default_transaction_read_only = on", _END_OTHERS)
    yield
    _do(cluster, "ALTER DATABASE postgres RESET default_transaction_read_only", _END_OTHERS)


@contextmanager
def _full(cluster: Cluster) -> Iterator[None]:
    _do(cluster, _FULL)
    yield
    _do(cluster, "DROP FUNCTION fastbandit.full CASCADE")


def _without(table: str) -> Callable[[Cluster], AbstractContextManager[None]]:
    @contextmanager
    def missing(cluster: Cluster) -> Iterator[None]:
        _do(cluster, f"ALTER TABLE fastbandit.{table} RENAME TO {table}_away")
        yield
        _do(cluster, f"ALTER TABLE fastbandit.{table}_away RENAME TO {table}")

    return missing


OUTAGES: dict[str, Callable[[Cluster], AbstractContextManager[None]]] = {
    "away": _away,
    "hangs": lambda cluster: hanging(cluster.database),
    "full": _full,
    "read-only": _read_only,
    "no table of rewards": _without("rewards"),
    "no table of decisions": _without("terms"),
}
_LARGE, _DAMAGED = "large", "damaged"
PARTS_OF_IT = (*OUTAGES, _LARGE, _DAMAGED)


def outage_of(
    name: str, seconds: float, *, deciders: int = 3, visitors: int = 3, arms: int = 200
) -> Outage:
    """Let the log be unavailable under load for so long, and kill a decider meanwhile."""
    environment = Synthetic("h2", 4, arms, seed=0)
    settings = {"reward.wait_seconds": max(5.0, 0.6 * seconds)}
    with cluster_of(environment, settings, deciders=deciders) as cluster:
        with visited(cluster, visitors) as crowd:
            time.sleep(2.0)
            with OUTAGES[name](cluster):
                time.sleep(seconds / 2)
                cluster.kill(cluster.deciders[0])
                cluster.start(cluster.deciders[0])
                time.sleep(seconds / 2)
            began = time.monotonic()
            cluster.wait_for_spools(seconds=_DRAIN_SECONDS)
            back = time.monotonic() - began
            time.sleep(2.0)
        cluster.wait_for_spools(seconds=_DRAIN_SECONDS)
        for visitor in crowd:
            visitor.deliver()
        return _judged(name, crowd, cluster.events(), back)


def _judged(name: str, crowd: list[Visitor], events: Sequence[Event], back: float) -> Outage:
    rewards: Rewards = sum((visitor.rewards for visitor in crowd), Counter())
    owed = {id: value for visitor in crowd for id, value in visitor.owed.items()}
    statuses = Counter(it.status for it in events if isinstance(it, RewardCame))
    return Outage(
        name=name,
        decisions=sum(len(visitor.answers) for visitor in crowd),
        degraded=sum(it["degraded"] for visitor in crowd for it in visitor.answers.values()),
        failed_selects=sum(
            failure.startswith("select") for visitor in crowd for failure in visitor.failures
        ),
        lost_decisions=sum(lost_decisions(it.asked, it.answers, events) for it in crowd),
        lost_rewards=unpaid_rewards(rewards, owed, events),
        doubled=doubled(events),
        late=statuses["late"],
        wrong_labels=_wrong_labels(owed, events),
        back_seconds=round(back, 2),
    )


def _wrong_labels(owed: dict[str, float], events: Sequence[Event]) -> int:
    """Count the decisions with a reward that are learned with another one."""
    joiner, ids = Joiner(), {it.seq: it.id for it in events if hasattr(it, "id")}
    for event in (*events, TimePassed(events[-1].seq + 1, 2**62)):
        joiner.feed(event)
    labels = {ids[one.decision]: one.reward for one in joiner.interactions}
    return sum(labels.get(id) != value for id, value in owed.items())


def _do(cluster: Cluster, *queries: str) -> None:
    options = "-c default_transaction_read_only=off"
    with psycopg.connect(cluster.database.url, autocommit=True, options=options) as connection:
        for query in queries:
            connection.execute(query.encode())


# -- large requests


@dataclass(frozen=True)
class Large:
    """Milliseconds of others' selects, steady and while large requests come, and what was stuck."""

    seconds: float
    large: dict[str, int]
    slowest_large_seconds: float
    others: int
    failed: int
    steady_p99_ms: float
    large_p99_ms: float
    stuck: int

    @property
    def slower(self) -> float:
        return self.large_p99_ms / self.steady_p99_ms

    @property
    def is_met(self) -> bool:
        return self.failed == self.stuck == 0 and self.slower <= _SLOWER


def large_requests(seconds: float, *, arms: int = _ELIGIBLE, every: float = 2.0) -> Large:
    """Send the largest requests that are permitted to one decider, and ask the other meanwhile.

    The large ones come from a process of their own: to make them would hold up who asks here.
    """
    environment = Synthetic("h2", 4, arms, seed=0)
    with (
        cluster_of(environment, {"reward.combine": "sum"}, deciders=2) as cluster,
        closing(Caller(cluster.deciders[1].port, seconds=60.0)) as caller,
    ):
        steady, failed = _asked(caller, seconds, 0)
        with _pressed(cluster.deciders[0].port, arms, every) as sent:
            pressed, more = _asked(caller, seconds, 1_000_000)
        cluster.wait_for_spools(seconds=_DRAIN_SECONDS)
        stuck = sum((stage.data / "spool-set-aside.db").exists() for stage in cluster.deciders)
        steady_p99, pressed_p99 = (1000 * float(np.quantile(it, 0.99)) for it in (steady, pressed))
        return Large(
            seconds=seconds,
            large=dict(Counter(f"{name}: {status}" for name, status, _ in sent)),
            slowest_large_seconds=round(max((took for _, _, took in sent), default=0.0), 3),
            others=len(steady) + len(pressed),
            failed=failed + more,
            steady_p99_ms=round(steady_p99, 2),
            large_p99_ms=round(pressed_p99, 2),
            stuck=stuck,
        )


@contextmanager
def _pressed(port: int, arms: int, every: float) -> Iterator[list[tuple[str, int, float]]]:
    """Send large requests from another process; at the end the list holds what came of each."""
    context, sent = get_context("spawn"), list[tuple[str, int, float]]()
    is_ready, is_over, answers = context.Event(), context.Event(), context.SimpleQueue()
    given = (port, arms, every, is_ready, is_over, answers)
    process = context.Process(target=_press, args=given, daemon=True)
    process.start()
    is_ready.wait()
    yield sent
    is_over.set()
    process.join()
    while not answers.empty():
        sent.append(answers.get())


def _press(port: int, arms: int, every: float, is_ready: Any, is_over: Any, answers: Any) -> None:
    ids: list[Any] = list(range(arms))
    with closing(Caller(port, seconds=60.0)) as caller:
        is_ready.set()
        for step in count():
            if is_over.wait(every):
                return
            began = time.monotonic()
            name, reply = _large(caller, step, ids)
            status = 0 if reply is None else reply.status
            answers.put((name, status, time.monotonic() - began))


def _large(caller: Caller, step: int, ids: list[Any]) -> tuple[str, Any]:
    if step % 3 == 0:
        contexts = np.random.default_rng(step).random((_CONTEXTS, 4)).round(3).tolist()
        return "select", caller.ask("/v1/select", {"contexts": contexts, "eligible": ids})
    id, k = f"large-{step}", 1 if step % 3 == 1 else min(_ARMS, len(ids))
    name = "rewards of parts" if k == 1 else "rewards of arms"
    made = caller.ask("/v1/select", {"context": [0.1, 0.2, 0.3, 0.4], "id": id, "k": k})
    if made is None or made.status != 200:
        return name, made
    arms = made.content["arms"]
    rewards: list[dict[str, Any]] = [
        {"decision": id, "value": 1.0, "arm": arms[n % len(arms)], "part": f"{n}"}
        for n in range(_REWARDS)
    ]
    return name, caller.ask("/v1/reward", {"rewards": rewards})


def _asked(caller: Caller, seconds: float, first: int) -> tuple[list[float], int]:
    """Ask for decisions and reward them, one after the other; return how long each select took."""
    took, failed, began, number = list[float](), 0, time.monotonic(), first
    while time.monotonic() - began < seconds:
        asked = time.monotonic()
        selected = caller.ask("/v1/select", {"context": [0.1, 0.2, 0.3, 0.4], "id": f"{number}"})
        took.append(time.monotonic() - asked)
        rewarded = caller.ask("/v1/reward", {"decision": f"{number}", "value": 1.0})
        failed += any(it is None or it.status != 200 for it in (selected, rewarded))
        number += 1
        time.sleep(0.01)
    return took, failed


# -- the command


@dataclass(frozen=True)
class SharedLogReport:
    """What was found in all three parts; `large` is None, and others are empty, if left out."""

    outages: list[Outage]
    large: Large | None
    damaged: list[Damaged]

    @property
    def is_met(self) -> bool:
        """Whether nothing was lost or stuck, and everything was quick enough."""
        return (
            all(outage.is_whole for outage in self.outages)
            and (self.large is None or self.large.is_met)
            and all(one.is_met for one in self.damaged)
        )


def try_shared_log(
    outage_seconds: float,
    *,
    seconds: float,
    versions: int,
    only: Collection[str] = PARTS_OF_IT,
    progress: Progress = silent,
) -> SharedLogReport:
    """Go through all that is named: outages, "large" requests, "damaged" versions."""
    outages, large, damaged = list[Outage](), None, list[Damaged]()
    for step, name in enumerate(it for it in PARTS_OF_IT if it in only):
        progress(step, len(only), name)
        if name in OUTAGES:
            outages.append(outage_of(name, outage_seconds))
        elif name == _LARGE:
            large = large_requests(seconds)
        else:
            damaged = damaged_versions(versions)
    return SharedLogReport(outages, large, damaged)


@click.command("shared-log")
@click.option("--outage-seconds", type=click.FloatRange(min=2), default=600.0, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=2), default=60.0, show_default=True)
@click.option("--versions", type=click.IntRange(min=2), default=4, show_default=True)
@click.option(
    "--only",
    type=click.Choice(PARTS_OF_IT),
    multiple=True,
    default=PARTS_OF_IT,
    help="What to try, repeatable.  [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def shared_log_command(
    outage_seconds: float, seconds: float, versions: int, only: tuple[str, ...], as_json: bool
) -> None:
    """Try a shared log and store at their worst: outages, large requests, damaged versions.

    Ends with 1 where a select failed, anything was lost, stuck or learned wrongly, or was slow.
    """
    with progress_bar("Shared log") as progress:
        report = try_shared_log(
            outage_seconds, seconds=seconds, versions=versions, only=set(only), progress=progress
        )
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_met)


def _show(report: SharedLogReport) -> None:
    for it in report.outages:
        click.echo(
            f"{it.name}: {it.decisions:,} decisions ({it.degraded:,} degraded), "
            f"{it.failed_selects} failed, {it.lost_decisions + it.lost_rewards} lost, "
            f"{it.doubled} doubled, {it.late} late, {it.wrong_labels} wrong labels; delivered "
            f"{it.back_seconds:.1f} s after"
        )
    if (large := report.large) is not None:
        click.echo(
            f"large requests: {large.large}, others {large.steady_p99_ms:.1f} → "
            f"{large.large_p99_ms:.1f} ms p99 = {large.slower:.2f}, {large.failed} failed, "
            f"{large.stuck} stuck"
        )
    for one in report.damaged:
        click.echo(
            f"version {one.version} {one.how}: answered after {one.answered_seconds:.1f} s, "
            f"trainer after {one.works_seconds:.1f} s{'' if one.is_said else ', not said'}"
        )
