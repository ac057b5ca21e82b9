"""One step of learning: a candidate from its parent and fresh pairs, checked, then published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.learning.checking import Checks, check
from fastbandit.learning.joining import Pair
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.settings.service import LearnConfig
from fastbandit.storage.arm_changes import apply_changes
from fastbandit.storage.events import ArmId, ArmsChanged
from fastbandit.storage.snapshot_store import Cut, Reached, Snapshot, SnapshotStore
from fastbandit.training.fit_reward import Curve
from fastbandit.training.process_group import SINGLE, ProcessGroup

_MOST_HELD_OUT = 1_000


@dataclass(frozen=True)
class Lesson:
    """What a candidate is made from: pairs that are ready, and changes of the arms, in order.

    The last `held_out` pairs are not learned, but judge what was.
    """

    parent: Snapshot
    version: int
    pairs: Sequence[Pair]
    changes: Sequence[ArmsChanged]
    held_out: int


@dataclass(frozen=True)
class Candidate:
    """A bandit that learned a lesson, and what is told of it."""

    bandit: Bandit
    checks: Checks
    notes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Taught:
    """What a bandit learns, and the version that it then is."""

    contexts: NDArray[np.float32]
    arms: list[ArmId]
    rewards: NDArray[np.float64]
    version: int

    @staticmethod
    def of(pairs: Sequence[Pair], version: int) -> Taught:
        """Give what pairs teach."""
        contexts = np.array([pair.context for pair in pairs], dtype=np.float32)
        rewards = np.array([pair.reward for pair in pairs])
        return Taught(contexts, [pair.arm for pair in pairs], rewards, version)


Teach: TypeAlias = Callable[[Bandit, Taught, Curve], Bandit]
"""Gives a bandit once it has learned, perhaps by others; the one given is not used again."""


def teach_here(
    bandit: Bandit, taught: Taught, curve: Curve, *, group: ProcessGroup = SINGLE
) -> Bandit:
    """Let a bandit learn in this process."""
    bandit.update(
        contexts=taught.contexts,
        arms=taught.arms,
        rewards=taught.rewards,
        version=taught.version,
        curve=curve,
        group=group,
    )
    return bandit


def held_out_of(pairs: int, share: float) -> int:
    """Tell how many of so many pairs are held out: never all of them."""
    return min(_MOST_HELD_OUT, int(pairs * share))


def train(lesson: Lesson, *, reached: Reached, teach: Teach = teach_here) -> Candidate:
    """Make and check the candidate of a lesson."""
    bandit = Bandit.load(lesson.parent.bandit)
    columns = FrozenBandit.load(lesson.parent.frozen).columns
    if bandit.columns is None and columns is not None:  # bandits were saved without columns once
        bandit.set_columns(columns)
    apply_changes(bandit, lesson.changes)
    pairs = lesson.pairs[: len(lesson.pairs) - lesson.held_out]
    parent = bandit.policy if bandit.version else None
    curve: list[tuple[int, float]] = []
    bandit = teach(
        bandit,
        Taught.of(pairs, lesson.version),
        lambda steps, loss: curve.append((steps, float(f"{loss:.6g}"))),
    )
    reached("trained")
    checks = check(bandit, parent, lesson.pairs, held_out=lesson.held_out)
    reached("checked")
    rewards = [pair.reward for pair in lesson.pairs]
    notes = {
        "arms": len(bandit),
        "learned": len(pairs),
        "mean_reward": float(f"{np.mean(rewards):.6g}"),
        "checks": checks.notes(),
        "curve": curve,
    }
    return Candidate(bandit, checks, notes)


def publish(
    store: SnapshotStore, lesson: Lesson, candidate: Candidate, *, cut: Cut, reached: Reached
) -> Snapshot:
    """Save a candidate whole, and make it the version to serve."""
    with store.drafting() as draft:
        _save(candidate, draft, reached)
        return store.publish(
            draft,
            candidate.notes,
            version=lesson.version,
            parent=lesson.parent,
            cut=cut,
            reached=reached,
        )


def refusal(lesson: Lesson, candidate: Candidate, floors: LearnConfig, *, cut: Cut) -> Any:
    """Word the report on a candidate that must not serve; None where it may."""
    reason = candidate.checks.reason(floors)
    if reason is None:
        return None
    parent = lesson.parent.version
    return {"parent": parent, "cut": asdict(cut), "reason": reason, **candidate.notes}


def _save(candidate: Candidate, draft: Path, reached: Reached) -> None:
    candidate.bandit.save(draft / "bandit")
    reached("saved bandit")
    candidate.bandit.freeze().save(draft / "frozen")
    reached("saved frozen")
