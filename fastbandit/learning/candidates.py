"""A candidate version: trained from its parent and fresh interactions, checked, then published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.offers import arm_count
from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.learning.arm_knowledge import better_known, known_by
from fastbandit.learning.candidate_checks import Checks, check_candidate
from fastbandit.learning.checkpoints import Checkpoints
from fastbandit.learning.joining import Interaction, known, to_arrays
from fastbandit.learning.training_history import (
    FORGOTTEN,
    TrainingHistory,
    newly_learned,
    without_log,
)
from fastbandit.optim.process_group import SINGLE, ProcessGroup, SingleProcess
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.settings.service import LearnConfig, SelectConfig
from fastbandit.storage.arm_changes import apply_changes, apply_offers
from fastbandit.storage.events import Arm, ArmId, ArmsChanged
from fastbandit.storage.history_files import Learned
from fastbandit.storage.snapshot_store import Reached, SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot
from fastbandit.training.fit_reward import Curve

_MOST_HELD_OUT = 1_000


@dataclass(frozen=True)
class TrainingJob:
    """What a candidate is made from: fresh interactions, and changes of the arms, in order.

    `offers` are arms taken that came with requests, called as interactions call them. The last
    `held_out` interactions are not learned: they judge what was.
    """

    parent: Snapshot
    version: int
    interactions: Sequence[Interaction]
    changes: Sequence[ArmsChanged]
    held_out: int
    part_modules: tuple[str, ...] = ()
    """Modules from which parts of the bandit may be imported."""
    offers: Sequence[Arm] = ()
    forgotten: int = 0
    """How many decisions up to its cut were forgotten when its training began."""
    select: SelectConfig | None = None
    """Where given, arms of any names are learned as predicts better: by features, or by ids."""


@dataclass(frozen=True)
class Candidate:
    """A bandit that was trained, its checks, and notes for people."""

    bandit: Bandit
    checks: Checks
    notes: dict[str, Any]
    fresh: Learned | None = None
    """What it learned beyond its parent, where snapshots hold none of it."""


class ForgottenMeanwhileError(SnapshotError):
    """Something that a candidate looked at was forgotten while it was trained."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a bandit learns, and the version that it then is."""

    contexts: NDArray[np.float32]
    arms: list[ArmId]
    rewards: NDArray[np.float64]
    version: int


Train: TypeAlias = Callable[[Bandit, TrainingData, Curve], Bandit]
"""Returns a trained bandit, perhaps from other processes; the one given is not used again."""


def train_here(
    bandit: Bandit, data: TrainingData, curve: Curve, *, group: ProcessGroup = SINGLE
) -> Bandit:
    bandit.update(
        contexts=data.contexts,
        arms=data.arms,
        rewards=data.rewards,
        version=data.version,
        curve=curve,
        group=group,
    )
    return bandit


def held_out_of(count: int, share: float) -> int:
    """Return how many of so many interactions are held out: never all of them."""
    return min(_MOST_HELD_OUT, int(count * share))


def train_candidate(
    job: TrainingJob,
    *,
    reached: Reached,
    train: Train | None = None,
    history: TrainingHistory | None = None,
    checkpoints: Checkpoints | None = None,
) -> Candidate:
    """Train and check a candidate: in this process, with checkpoints, unless `train` does it.

    With a `history` it holds nothing of what that stores.
    """
    bandit = load_parent(job.parent, job.part_modules)
    if history is not None:
        bandit, before = history.of(bandit, job.parent)
    apply_changes(bandit, job.changes)
    catalogue = bandit.policy.arms
    assert isinstance(catalogue, Catalogue)
    learned = known(job.interactions[: len(job.interactions) - job.held_out])
    if history is not None:
        history.forget_names(bandit, job.parent, known(job.interactions))
    _grow(bandit, learned, job.offers)
    apply_offers(bandit, job.offers, known=catalogue.table)
    bandit = _read_again(bandit, job.offers)
    unseen = known(job.interactions[len(job.interactions) - job.held_out :])
    if job.select is not None:
        bandit = better_known(bandit, learned, job.select)
    parent = bandit.policy if bandit.version else None  # one that is known otherwise has none
    curve: list[tuple[int, float]] = [] if checkpoints is None else checkpoints.curve
    group = SINGLE if checkpoints is None else SingleProcess(left_of=checkpoints.iterations)
    bandit = (train or partial(train_here, group=group))(
        bandit,
        TrainingData(*to_arrays(learned, bandit.blueprint.context), job.version),
        lambda steps, loss: curve.append((steps, float(f"{loss:.6g}"))),
    )
    reached("trained")
    _check_learned(bandit)
    checks = check_candidate(bandit, parent, [*learned, *unseen], held_out=len(unseen))
    reached("checked")
    notes = {
        "arms": arm_count(bandit),
        "learned": len(learned),
        "mean_reward": _mean_reward(bandit, [*learned, *unseen]),
        "known_by": known_by(bandit),
        "checks": checks.notes(),
        "curve": curve,
        **({FORGOTTEN: job.forgotten} if job.forgotten else {}),
    }
    if history is None:
        return Candidate(bandit, checks, notes)
    fresh = newly_learned(bandit, learned)
    return Candidate(without_log(bandit, before, fresh), checks, notes, fresh)


def load_parent(parent: Snapshot, part_modules: tuple[str, ...]) -> Bandit:
    """Return the bandit of a version, with the columns of its arms."""
    bandit = Bandit.load(parent.bandit, part_modules=part_modules)
    columns = FrozenBandit.load(parent.frozen).columns
    if bandit.columns is None and columns is not None:  # bandits of before had no columns
        bandit.set_columns(columns)
    return bandit


def _check_learned(bandit: Bandit) -> None:
    """Raise where no interaction has a reward, as with weights of outcomes that never come."""
    if bandit.history is None or not len(bandit.history):
        raise SettingError(
            "Learning needs interactions with a reward: none has all outcomes that reward.weights "
            "names. Correct the names there, or have the outcomes sent."
        )


def _mean_reward(bandit: Bandit, fresh: Sequence[Interaction]) -> float:
    """Return the mean of fresh rewards, or of all where none is fresh."""
    assert bandit.history is not None
    rewards = [one.reward for one in fresh] or bandit.history.rewards
    return float(f"{np.mean(rewards):.6g}")


def _grow(bandit: Bandit, learned: Sequence[Interaction], offers: Sequence[Arm]) -> None:
    """Let open schemas read new names: of contexts, and of arms that came, as often as taken."""
    features = {arm.id: arm.features for arm in offers if isinstance(arm.features, dict)}
    contexts = [one.context for one in learned if isinstance(one.context, dict)]
    arms = [features[one.arm] for one in learned if one.arm in features]
    bandit.read_by(bandit.blueprint.grown(contexts=contexts or None, arms=arms or None))


def _read_again(bandit: Bandit, offers: Sequence[Arm]) -> Bandit:
    """Return a bandit that learns arms which came again as they are read now, and when served.

    A name that was hashed when an arm first came may have a slot by now.
    """
    kind: Any = getattr(bandit.blueprint.arm, "features", bandit.blueprint.arm)
    schema, arms = getattr(kind, "schema", None), bandit.policy.arms
    if schema is None or not schema.can_grow or not isinstance(arms, Catalogue):
        return bandit
    own = [one for one in offers if isinstance(one.features, dict) and one.id not in bandit]
    if not own:
        return bandit
    features = kind.read([one.features for one in own], what="arms")
    found = arms.read_again([one.id for one in own], features)
    return bandit if found is arms else bandit.read_again(found)


def publish_candidate(
    store: SnapshotStore,
    job: TrainingJob,
    candidate: Candidate,
    *,
    cut: Cut,
    reached: Reached,
    history: TrainingHistory | None = None,
) -> Snapshot:
    if history is not None and candidate.fresh is not None:
        history.add(job.parent.cut, cut, candidate.fresh)
        reached("stored history")
    with store.drafting() as draft:
        save_draft(draft, candidate.bandit, reached=reached)
        if history is not None:
            _check_forgotten(history.forgotten_until(cut.seq), job)
        return store.publish(
            draft, candidate.notes, version=job.version, parent=job.parent, cut=cut, reached=reached
        )


def _check_forgotten(count: int, job: TrainingJob) -> None:
    if count != job.forgotten:
        raise ForgottenMeanwhileError(
            f"A version needs to be made without what is forgotten: {count} decisions are, and "
            f"{job.forgotten} were when its training began. Train it anew."
        )


def save_draft(draft: Path, bandit: Bandit, *, reached: Reached) -> None:
    bandit.save(draft / "bandit")
    reached("saved bandit")
    bandit.freeze().save(draft / "frozen")
    reached("saved frozen")


def refusal_of(
    job: TrainingJob, candidate: Candidate, minimum: LearnConfig, *, cut: Cut
) -> dict[str, Any] | None:
    """Return the report on a candidate that must not serve; None where it may."""
    reason = candidate.checks.reason(minimum)
    if reason is None:
        return None
    parent = job.parent.version
    return {"parent": parent, "cut": asdict(cut), "reason": reason, **candidate.notes}
