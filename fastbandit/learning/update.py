"""One step of learning: a candidate from its parent and fresh pairs, checked, then published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.config import LearnConfig
from fastbandit.events import ArmsChanged
from fastbandit.learning.arm_changes import apply_changes
from fastbandit.learning.checking import Checks, check
from fastbandit.learning.joining import Pair
from fastbandit.runtime.columns import Columns
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.snapshot_store import Cut, Reached, Snapshot, SnapshotStore

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
    """A bandit that learned a lesson, the columns of its arms, and what is told of it."""

    bandit: Bandit
    columns: Columns | None
    checks: Checks
    notes: dict[str, Any]


def held_out_of(pairs: int, share: float) -> int:
    """Tell how many of so many pairs are held out: never all of them."""
    return min(_MOST_HELD_OUT, int(pairs * share))


def train(lesson: Lesson, *, reached: Reached) -> Candidate:
    """Make and check the candidate of a lesson."""
    bandit = Bandit.load(lesson.parent.bandit)
    before = FrozenBandit.load(lesson.parent.frozen).columns
    columns = apply_changes(bandit, before, lesson.changes)
    taught = lesson.pairs[: len(lesson.pairs) - lesson.held_out]
    parent = bandit.policy if bandit.version else None
    curve: list[tuple[int, float]] = []
    bandit.update(
        contexts=np.array([pair.context for pair in taught], dtype=np.float32),
        arms=[pair.arm for pair in taught],
        rewards=np.array([pair.reward for pair in taught]),
        version=lesson.version,
        curve=lambda steps, loss: curve.append((steps, float(f"{loss:.6g}"))),
    )
    reached("trained")
    checks = check(bandit, parent, lesson.pairs, held_out=lesson.held_out)
    reached("checked")
    rewards = [pair.reward for pair in lesson.pairs]
    notes = {
        "arms": len(bandit),
        "learned": len(taught),
        "mean_reward": float(f"{np.mean(rewards):.6g}"),
        "checks": checks.notes(),
        "curve": curve,
    }
    return Candidate(bandit, columns, checks, notes)


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
    frozen = candidate.bandit.freeze()
    if candidate.columns is not None:
        frozen.set_columns(candidate.columns)
    frozen.save(draft / "frozen")
    reached("saved frozen")
