"""Hot swaps under load: no request fails, and each answer comes from one whole version.

Two bandits that learned different things alternate, each time under a new number. From the
log and from answers, a sample is decided anew by the very version that answered.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.events import DecisionMade
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot
from lab.faults.ending import end_with_report
from lab.faults.load import Answers, Load
from lab.faults.stage import Caller, Reply, Running, Stage, running, set_stage, wait_for

MOST_SLOWER = 1.5
MOST_GROWTH = 0.02
_DIM = 8
_KEEP = 5
_EARLY = 20  # memory is compared with that at this swap
_PHASE = 20  # swaps between two times without, so that what else goes on here counts for both
_PROBE_SECONDS = 0.02
_STEP_SECONDS = 0.05  # asking more often would be a load of its own


@dataclass(frozen=True)
class SwapReport:
    """What was found while versions alternated.

    `failed` counts requests without an answer of 200, `unknown` decisions of a version that
    was never published, `mixed` those of a sample that their version does not decide alike.
    `growth` is that of the resident memory from swap 20 (half of fewer) to the last.
    `under_load` are the swaps that were done before the load ended. Times are medians over
    phases without and with swaps, in alternation.
    """

    swaps: int
    under_load: int
    seed: int
    arms: int
    requests: int
    failed: int
    versions: int
    unknown: int
    checked: int
    mixed: int
    steady_p50_ms: float
    steady_p99_ms: float
    swapping_p50_ms: float
    swapping_p99_ms: float
    memory: list[dict[str, int]] = field(repr=False)
    growth: float

    @property
    def slower(self) -> float:
        """The p99 while versions are swapped, as a multiple of that before."""
        return self.swapping_p99_ms / self.steady_p99_ms

    @property
    def is_whole(self) -> bool:
        """Whether no request failed, and no answer was mixed."""
        return self.failed == self.unknown == self.mixed == 0 and self.versions > self.swaps // 2

    @property
    def is_level(self) -> bool:
        """Whether neither memory nor the p99 under load grew by more than they may."""
        is_quick = self.under_load == self.swaps and self.slower <= MOST_SLOWER
        return is_quick and self.growth <= MOST_GROWTH


def hot_swaps(
    swaps: int,
    *,
    seed: int = 0,
    arms: int = 100_000,
    rate: float = 500.0,
    every: float = 1.0,
    sample: int = 2_000,
    progress: Progress = silent,
) -> SwapReport:
    """Swap versions so many times, one `every` so many seconds, with `rate` requests a second."""
    with tempfile.TemporaryDirectory() as home:
        environment = Synthetic("h2", _DIM, arms, seed=seed)
        stage = set_stage(Path(home), environment, {"learn.enabled": False})
        alternation = Alternation(stage, two_bandits(stage))
        alternation.publish()
        with running(stage) as service, _probing(stage) as replies:
            alternation.follow()
            phases = _phases(alternation, service, swaps, every=every, rate=rate, progress=progress)
        made = list(stage.decisions().values())
        checked = sampled(made, replies, sample, rng=np.random.default_rng(seed))
        early = alternation.memory[min(_EARLY, swaps // 2) - 1]["rss"]
        return SwapReport(
            swaps=swaps,
            under_load=alternation.under_load,
            seed=seed,
            arms=arms,
            requests=sum(answers.sent for phase in phases for answers in phase) + len(replies),
            failed=sum(failed(answers) for phase in phases for answers in phase)
            + sum(reply.status != 200 for reply in replies),
            versions=len({one.version for one in made}),
            unknown=sum(one.version not in alternation.numbers for one in made),
            checked=len(checked),
            mixed=mixed(alternation, checked, made, replies),
            steady_p50_ms=_median(steady.p50_ms for steady, _ in phases),
            steady_p99_ms=_median(steady.p99_ms for steady, _ in phases),
            swapping_p50_ms=_median(swapping.p50_ms for _, swapping in phases),
            swapping_p99_ms=_median(swapping.p99_ms for _, swapping in phases),
            memory=alternation.memory,
            growth=round(alternation.memory[-1]["rss"] / early - 1, 4),
        )


def _phases(
    alternation: Alternation,
    service: Running,
    swaps: int,
    *,
    every: float,
    rate: float,
    progress: Progress,
) -> list[tuple[Answers, Answers]]:
    """Load a service in alternation without and with swaps; return what came back of each."""
    found = []
    for first in range(0, swaps, _PHASE):
        count = min(_PHASE, swaps - first)
        with loading(alternation.stage, max(2.0, count * every / 4), rate, seed=first) as steady:
            progress(first, swaps, "steady")
        with loading(alternation.stage, count * every, rate, seed=first + 1) as swapping:
            alternation.take(service, count, every=every)
        found.append((steady[0], swapping[0]))
    return found


def _median(numbers: Iterable[float]) -> float:
    return round(float(np.median(list(numbers))), 3)


# -- versions that alternate


def two_bandits(stage: Stage) -> list[FrozenBandit]:
    """Return two bandits that learned rewards of the environment, and their opposite."""
    from fastbandit.bandit import Bandit

    first = stage.store.get(0)
    contexts = stage.environment.contexts(0, 300)
    rows = np.random.default_rng(stage.environment.seed).integers(stage.environment.size, size=300)
    frozen = []
    for sign in (1.0, -1.0):
        bandit = Bandit.load(first.bandit, progress=False)
        rewards = sign * stage.environment.means(contexts, rows)
        bandit.update(contexts=contexts, arms=rows.tolist(), rewards=rewards)
        frozen.append(bandit.freeze())
    return frozen


@dataclass
class Alternation:
    """Publishes two bandits in alternation, each time under a number of its own."""

    stage: Stage
    bandits: list[FrozenBandit]
    numbers: set[int] = field(default_factory=lambda: {0})
    memory: list[dict[str, int]] = field(default_factory=list)
    under_load: int = 0

    def bandit(self, version: int) -> FrozenBandit:
        """Return the bandit of a version."""
        model = self.bandits[version % len(self.bandits)]
        part, catalogue, codec = model.parts
        return FrozenBandit(part, catalogue, replace(codec, version=version))

    def publish(self, store: SnapshotStore | None = None) -> Snapshot:
        """Make the next version the one to serve, there or here, and prune as a learner does."""
        store = self.stage.store if store is None else store
        parent, version = store.current(), store.next_version()
        assert parent is not None
        with store.drafting() as draft:
            shutil.copytree(parent.bandit, draft / "bandit", copy_function=os.link)
            self.bandit(version).save(draft / "frozen")
            cut = Cut(interactions=version)  # of no event: there is no log yet
            snapshot = store.publish(draft, {}, version=version, parent=parent, cut=cut)
        self.numbers.add(version)
        store.prune(_KEEP)
        return snapshot

    def take(self, service: Running, swaps: int, *, every: float) -> None:
        """Swap so many times, and keep the memory of the service after each."""
        began = time.monotonic()
        for number in range(1, swaps + 1):
            self.publish()
            self.follow()
            self.under_load += time.monotonic() <= began + swaps * every
            self.memory.append(service.memory())
            time.sleep(max(0.0, began + number * every - time.monotonic()))

    def follow(self) -> None:
        """Wait until the service decides by the version that was published last."""
        caller = Caller(self.stage.port)
        version = max(self.numbers)

        def serves() -> bool:
            status = caller.ask("/v1/status")
            return status is not None and status.content["version"] == version

        wait_for(serves, seconds=30.0, what=f"version {version} in service", step=_STEP_SECONDS)
        caller.close()


# -- load


@contextmanager
def loading(stage: Stage, seconds: float, rate: float, *, seed: int) -> Iterator[list[Answers]]:
    """Send a load from a process of its own; at the end, the list holds what came back."""
    load = Load(stage.port, seconds, rate=rate, features=stage.environment.dim, seed=seed)
    command = [sys.executable, "-m", "lab.faults.load", msgspec.json.encode(load).decode()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    answers: list[Answers] = []
    try:
        yield answers
        output, _ = process.communicate(timeout=seconds + 60)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise ServiceUnavailable(
            f"A campaign needs a load that ends by itself: it ended with status "
            f"{process.returncode}. See what it wrote."
        )
    answers.append(msgspec.json.decode(output, type=Answers))


def failed(answers: Answers) -> int:
    """Count the requests that were refused, or broke; those under way at the end are neither."""
    refused = sum(count for status, count in answers.statuses.items() if status not in ("0", "200"))
    return refused + answers.broken


@contextmanager
def _probing(stage: Stage) -> Iterator[list[Reply]]:
    """Ask for decisions, and keep what was answered."""
    replies: list[Reply] = []
    is_over = threading.Event()

    def probe() -> None:
        caller = Caller(stage.port)
        contexts = stage.environment.contexts(0, 1000).tolist()
        while not is_over.wait(_PROBE_SECONDS):
            request = {"context": contexts[len(replies) % 1000]}
            replies.append(caller.ask("/v1/select", request) or Reply(0, "", None))
        caller.close()

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield replies
    finally:
        is_over.set()
        thread.join()


# -- what was answered


def sampled(
    made: list[DecisionMade], replies: list[Reply], count: int, *, rng: np.random.Generator
) -> list[DecisionMade]:
    """Return the decisions that were probed, and as many others as are wanted."""
    probed = {reply.content["decision"] for reply in replies if reply.status == 200}
    rows = rng.permutation(len(made))[:count].tolist()
    return [one for row, one in enumerate(made) if one.id in probed or row in set(rows)]


def mixed(
    alternation: Alternation,
    checked: list[DecisionMade],
    made: list[DecisionMade],
    replies: list[Reply],
) -> int:
    """Count decisions, and answers, that are not those of the version they name."""
    by_version: dict[int, list[DecisionMade]] = defaultdict(list)
    for one in checked:
        by_version[one.version].append(one)
    wrong = 0
    for version, some in by_version.items():
        bandit = alternation.bandit(version)
        wrong += sum(not _is_alike(bandit, one) for one in some)
    stored = {one.id: one for one in made}
    good = [reply.content for reply in replies if reply.status == 200]
    return wrong + sum(not _is_stored(answer, stored.get(answer["decision"])) for answer in good)


def _is_alike(bandit: FrozenBandit, one: DecisionMade) -> bool:
    chosen = bandit.select_one(
        one.context, seed=one.seed, explore=one.explored, epsilon=one.epsilon
    )
    return [chosen.arm] == one.arms and [chosen.score] == one.scores


def _is_stored(answer: dict[str, Any], one: DecisionMade | None) -> bool:
    return one is not None and (one.arms, one.version) == (answer["arms"], answer["version"])


# -- the command


@click.command("swaps")
@click.option("--swaps", type=click.IntRange(min=2), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=100_000, show_default=True)
@click.option("--rate", type=float, default=500.0, show_default=True, help="Requests a second.")
@click.option("--every", default=1.0, show_default=True, help="Seconds from swap to swap.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def swaps_command(
    swaps: int, seed: int, arms: int, rate: float, every: float, as_json: bool
) -> None:
    """Swap the version that serves under load; look for failed requests and mixed answers.

    Ends with 1 if there were any, or if the p99 or the memory grew by more than they may.
    """
    with progress_bar("Swaps") as progress:
        report = hot_swaps(swaps, seed=seed, arms=arms, rate=rate, every=every, progress=progress)
    end_with_report(
        report,
        {**asdict(report), "slower": report.slower},
        as_json=as_json,
        show=_show,
        is_met=report.is_whole and report.is_level,
    )


def _show(report: SwapReport) -> None:
    click.echo(
        f"{report.swaps:,} swaps at {report.arms:,} arms: {report.requests:,} requests, "
        f"{report.failed:,} failed"
    )
    click.echo(
        f"{report.versions:,} versions decided; {report.checked:,} decisions decided anew, "
        f"{report.mixed + report.unknown:,} different"
    )
    click.echo(
        f"p99 {report.steady_p99_ms:.2f} ms before and {report.swapping_p99_ms:.2f} ms while "
        f"swapping: {report.slower:.2f} times"
    )
    last = report.memory[-1]
    click.echo(
        f"memory {last['rss'] / 1e6:.1f} MB, {report.growth:+.2%}; {last['mappings']:,} mappings"
    )
