"""Versions of the synthetic shop through the gate of the service: how many are refused, and why.

Each is trained from its parent, checked and published by what the learner of the service calls; the
version in service decides meanwhile. Requests come without a pause, and their clicks at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.learning.candidates import (
    TrainingJob,
    held_out_of,
    publish_candidate,
    refusal_of,
    save_draft,
    train_candidate,
)
from fastbandit.learning.joining import Interaction
from fastbandit.learning.schedule import Schedule
from fastbandit.settings.service import LearnConfig
from fastbandit.storage.snapshot_store import SnapshotStore, nothing_more
from fastbandit.storage.snapshot_version import Cut
from lab.experiments.shop_data import Floats, Rows, Users
from lab.printing import print_lines


@dataclass(frozen=True)
class Judged:
    """A version that was trained after so many requests, and why it was refused, if so."""

    seed: int
    start: str
    requests: int
    reason: str | None


class Gated:
    """A bandit whose versions pass the gate of the service, or are refused."""

    def __init__(self, bandit: Bandit, ids: NDArray[np.str_], folder: Path) -> None:
        self.judged: list[tuple[int, str | None]] = []
        self._bandit, self._ids, self._store = bandit, ids, SnapshotStore(folder)
        self._config, self._fresh, self._marked = LearnConfig(), list[Interaction](), 0
        usual = self._config
        self._schedule = Schedule(usual.fresh, usual.growth, usual.seconds)
        self._learned = 0 if bandit.history is None else len(bandit.history)
        self._requests = 0
        with self._store.drafting() as draft:
            save_draft(draft, bandit, reached=nothing_more)
            version, reached = bandit.version, nothing_more
            self._parent = self._store.publish(
                draft, {}, version=version, parent=None, cut=Cut(), reached=reached
            )

    def batch(self, learned: int) -> int:
        """Return how many requests are to come until a version is due."""
        return max(1, self._schedule.needed(self._learned) - len(self._fresh) + self._marked)

    def select(self, users: Users) -> Rows:
        return self._bandit.select(users.table).rows[:, 0]

    def learn(self, users: Users, rows: Rows, clicks: Floats) -> None:
        """Train a version on what is fresh, judge it, and publish it unless it is refused."""
        contexts = self._bandit.blueprint.context.read(users.table, what="contexts").dense
        assert contexts is not None
        for context, arm, reward in zip(contexts.tolist(), self._ids[rows], clicks, strict=True):
            self._requests += 1
            at = self._requests
            self._fresh.append(Interaction(at, at, 0, context, str(arm), float(reward)))
        held_out = held_out_of(len(self._fresh), self._config.held_out)
        version = self._store.next_version()
        job = TrainingJob(self._parent, version, tuple(self._fresh), (), held_out)
        candidate = train_candidate(job, reached=nothing_more)
        cut = Cut(seq=self._requests, at=self._requests)
        refusal = refusal_of(job, candidate, self._config, cut=cut)
        self.judged.append((self._requests, None if refusal is None else refusal["reason"]))
        if refusal is not None:
            self._store.refuse(version, refusal)
            self._marked = len(self._fresh)  # the next is due after as many more
            return
        self._parent = publish_candidate(self._store, job, candidate, cut=cut, reached=nothing_more)
        self._store.prune(self._config.keep)
        learned = len(self._fresh) - held_out
        self._bandit, self._marked = candidate.bandit, 0
        self._learned, self._fresh = self._learned + learned, self._fresh[learned:]


def print_judged(judged: list[Judged]) -> None:
    """Print how many versions were refused, by seed and start, and the reasons."""
    lines = []
    for seed, start in dict.fromkeys((one.seed, one.start) for one in judged):
        some = [one for one in judged if (one.seed, one.start) == (seed, start)]
        lines.append((f"{seed}", start, f"{len(some)}", f"{sum(map(is_refused, some))}"))
    refused = [one for one in judged if is_refused(one)]
    note = f"{len(refused)} of {len(judged)} versions refused"
    print_lines(note, ("seed", "start", "versions", "refused"), lines)
    for one in refused:
        click.echo(f"seed {one.seed}, {one.start}, request {one.requests:,}: {one.reason}")


def is_refused(one: Judged) -> bool:
    return one.reason is not None
