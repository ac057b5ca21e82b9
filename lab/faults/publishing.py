"""New versions published to a cluster under load: all deciders follow soon, and none mixes two.

Two bandits that learned different things alternate, each time under a new number. Each decider
is asked all the while, so that it shows from when on it answers by which version.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.events import DecisionMade
from fastbandit.storage.snapshot_store import SnapshotStore
from lab.faults.cluster_stage import STEP_SECONDS, Cluster, cluster_of
from lab.faults.ending import end_with_report
from lab.faults.load import Answers
from lab.faults.stage import Caller, Reply, Stage, wait_for
from lab.faults.swaps import Alternation, failed, loading, mixed, sampled, two_bandits

MOST_SECONDS = 10.0
_DIM = 8
_PATIENCE = 60.0


@dataclass(frozen=True)
class PublishReport:
    """What was found while versions were published to deciders under load.

    `seconds` are, for each version, from the pointer's move until every decider had answered
    by it. `failed` counts requests without an answer of 200, `unknown` decisions of a version
    that was never published, `mixed` those of a sample that their version does not decide
    alike. `under_load` are the versions that all had before the load ended.
    """

    times: int
    seed: int
    deciders: int
    arms: int
    under_load: int
    seconds: list[float]
    requests: int
    failed: int
    versions: int
    unknown: int
    checked: int
    mixed: int

    @property
    def slowest_seconds(self) -> float:
        """The longest time from a move of the pointer until all had followed."""
        return max(self.seconds)

    @property
    def is_whole(self) -> bool:
        """Whether no request failed, no answer was mixed, and all was under load."""
        is_good = self.failed == self.unknown == self.mixed == 0
        return is_good and self.under_load == self.times

    @property
    def is_prompt(self) -> bool:
        """Whether all deciders followed in time."""
        return self.slowest_seconds <= MOST_SECONDS


def publish_versions(
    times: int,
    *,
    seed: int = 0,
    arms: int = 10_000,
    rate: float = 50.0,
    every: float = 5.0,
    sample: int = 2_000,
    progress: Progress = silent,
) -> PublishReport:
    """Publish so many versions, one `every` so many seconds; each decider has `rate` requests/s."""
    environment = Synthetic("h2", _DIM, arms, seed=seed)
    with cluster_of(environment, {}) as cluster:
        first = cluster.deciders[0]
        alternation = Alternation(first, two_bandits(first))
        with _watching(cluster) as watchers:
            releases = _Releases(cluster, alternation, watchers)
            loads = releases.publish(times, every=every, rate=rate, progress=progress)
        replies = [reply for watcher in watchers for reply in watcher.replies]
        made = [event for event in cluster.events() if isinstance(event, DecisionMade)]
        checked = sampled(made, replies, sample, rng=np.random.default_rng(seed))
        return PublishReport(
            times=times,
            seed=seed,
            deciders=len(cluster.deciders),
            arms=arms,
            under_load=releases.under_load,
            seconds=releases.seconds,
            requests=sum(answers.sent for answers in loads) + len(replies),
            failed=sum(map(failed, loads)) + sum(reply.status != 200 for reply in replies),
            versions=len({one.version for one in made}),
            unknown=sum(one.version not in alternation.numbers for one in made),
            checked=len(checked),
            mixed=mixed(alternation, checked, made, replies),
        )


class _Releases:
    """Publishes versions under load, and waits each time until all deciders answer by it."""

    def __init__(
        self, cluster: Cluster, alternation: Alternation, watchers: list[_Watcher]
    ) -> None:
        self._cluster, self._alternation, self._watchers = cluster, alternation, watchers
        self.seconds: list[float] = []
        self.under_load = 0

    def publish(
        self, times: int, *, every: float, rate: float, progress: Progress
    ) -> list[Answers]:
        """Publish so many versions; return what came back of the load."""
        with ExitStack() as stack:
            store = stack.enter_context(self._cluster.publishing())
            loads = [
                stack.enter_context(loading(stage, times * every, rate, seed=number))
                for number, stage in enumerate(self._cluster.deciders)
            ]
            began = time.monotonic()
            for number in range(1, times + 1):
                self._publish(store)
                self.under_load += time.monotonic() <= began + times * every
                progress(number, times, "versions")
                time.sleep(max(0.0, began + number * every - time.monotonic()))
        return [answers for load in loads for answers in load]

    def _publish(self, store: SnapshotStore) -> None:
        version = self._alternation.publish(store).version
        _, moved = self._cluster.pointer()

        def followed() -> bool:
            return all(version in watcher.firsts for watcher in self._watchers)

        wait_for(
            followed,
            seconds=_PATIENCE,
            what=f"version {version} in service everywhere",
            step=STEP_SECONDS,
        )
        last = max(watcher.firsts[version] for watcher in self._watchers)
        self.seconds.append(round(last - moved, 3))


# -- who asks


class _Watcher(threading.Thread):
    """Asks a decider all the while; keeps the answers, and when each version first answered."""

    def __init__(self, stage: Stage, is_over: threading.Event) -> None:
        super().__init__(name=f"watcher of {stage.port}", daemon=True)
        self._stage, self._is_over = stage, is_over
        self.replies: list[Reply] = []
        self.firsts: dict[int, float] = {}

    def run(self) -> None:
        caller = Caller(self._stage.port)
        contexts = self._stage.environment.contexts(0, 1000).tolist()
        while not self._is_over.wait(STEP_SECONDS):
            request = {"context": contexts[len(self.replies) % 1000]}
            reply = caller.ask("/v1/select", request) or Reply(0, "", None)
            self.replies.append(reply)
            if reply.status == 200:
                self.firsts.setdefault(reply.content["version"], time.time())
        caller.close()


@contextmanager
def _watching(cluster: Cluster) -> Iterator[list[_Watcher]]:
    is_over = threading.Event()
    watchers = [_Watcher(stage, is_over) for stage in cluster.deciders]
    for watcher in watchers:
        watcher.start()
    try:
        yield watchers
    finally:
        is_over.set()
        for watcher in watchers:
            watcher.join()


# -- the command


@click.command("publish")
@click.option("--times", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=10_000, show_default=True)
@click.option(
    "--rate", type=float, default=50.0, show_default=True, help="Requests a second of each decider."
)
@click.option("--every", default=5.0, show_default=True, help="Seconds from version to version.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def publish_command(
    times: int, seed: int, arms: int, rate: float, every: float, as_json: bool
) -> None:
    """Publish versions to three deciders under load; see when all answer by each.

    Ends with 1 if that took over 10 seconds, a request failed or an answer was mixed.
    """
    with progress_bar("Publish") as progress:
        report = publish_versions(
            times, seed=seed, arms=arms, rate=rate, every=every, progress=progress
        )
    notes = {**asdict(report), "slowest_seconds": report.slowest_seconds}
    end_with_report(
        report, notes, as_json=as_json, show=_show, is_met=report.is_whole and report.is_prompt
    )


def _show(report: PublishReport) -> None:
    click.echo(
        f"{report.times:,} versions published to {report.deciders} deciders at {report.arms:,} "
        f"arms: {report.requests:,} requests, {report.failed:,} failed"
    )
    click.echo(
        f"all answered by a version after {np.median(report.seconds):.2f} s in the middle, "
        f"{report.slowest_seconds:.2f} s at most; {report.under_load:,} under load"
    )
    click.echo(
        f"{report.versions:,} versions decided; {report.checked:,} decisions decided anew, "
        f"{report.mixed + report.unknown:,} different"
    )
