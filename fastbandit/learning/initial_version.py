"""Version 0: a bandit that has learned nothing yet; every arm is equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.learning.arm_file import ArmFile, read_arm_file
from fastbandit.learning.candidates import save_draft
from fastbandit.settings.files import Sections
from fastbandit.settings.presets import settings_for
from fastbandit.settings.service import Config
from fastbandit.storage.events import ArmsChanged
from fastbandit.storage.snapshot_store import Reached, SnapshotStore, nothing_more
from fastbandit.storage.snapshot_version import Cut, Snapshot

_REHEARSED = 16


def publish_initial_version(
    config: Config,
    store: SnapshotStore,
    *,
    change: ArmsChanged | None = None,
    reached: Reached = nothing_more,
) -> Snapshot:
    """Publish version 0, of the arms in the config's file, or of those of a change in the log."""
    own = config.arms
    arms = read_arm_file(own) if change is None else ArmFile.of(change.upserted, own)
    cut = Cut() if change is None else Cut(change.seq, change.at, change.seq)
    rehearse(config, arms)
    bandit = untrained_bandit(config, arms)
    if arms.columns:
        bandit.set_columns(arms.columns)
    with store.drafting() as draft:
        save_draft(draft, bandit, reached=reached)
        notes = {"arms": len(bandit), **context_notes(config)}
        return store.publish(draft, notes, version=0, parent=None, cut=cut, reached=reached)


def context_notes(config: Config, parent: Snapshot | None = None) -> dict[str, Any]:
    """Return the names of a context's numbers, as the notes of a version hold them."""
    before = None if parent is None else parent.notes.get("context_names")
    names = before or list(config.context.names)
    return {"context_names": names} if names else {}


def rehearse(config: Config, arms: ArmFile) -> None:
    """Learn for one step from one interaction and freeze that; raise what a later version would."""
    short = {"training.reward": {"iterations": 1}, "training.generator": {"iterations": 1}}
    bandit = untrained_bandit(config, arms.first(_REHEARSED), settings=short)
    contexts = np.zeros((1, config.context.dim), dtype=np.float32)
    bandit.update(contexts=contexts, arms=arms.ids[:1], rewards=[0.0])
    bandit.freeze()


def untrained_bandit(config: Config, arms: ArmFile, *, settings: Sections | None = None) -> Bandit:
    select, schema = config.select, config.context.read_schema()
    return Bandit(
        arms=arms.features,
        ids=arms.ids,
        columns=arms.columns or None,
        context=config.context.dim if schema is None else schema,
        reward=config.reward.kind,  # type: ignore[arg-type]
        exploration=select.exploration,
        search=select.search,
        posterior=select.posterior,
        part_modules=select.part_modules,
        preset=settings_for(select.preset, modules=select.part_modules).merged(settings or {}),
        seed=select.seed,
    )
