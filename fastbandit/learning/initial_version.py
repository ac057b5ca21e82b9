"""Version 0: a bandit that has learned nothing yet; every arm is equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.arms.offers import arm_count
from fastbandit.bandit import Bandit
from fastbandit.learning.arm_file import ArmFile, read_arm_file
from fastbandit.learning.candidates import save_draft
from fastbandit.settings.files import Sections
from fastbandit.settings.presets import settings_for
from fastbandit.settings.service import ArmsConfig, Config
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
    arms = _first_arms(config.arms, change)
    cut = Cut() if change is None else Cut(change.seq, change.at, change.seq)
    rehearse(config, arms)
    bandit = untrained_bandit(config, arms)
    if arms.columns:
        bandit.set_columns(arms.columns)
    with store.drafting() as draft:
        save_draft(draft, bandit, reached=reached)
        notes = {"arms": arm_count(bandit), **context_notes(config)}
        return store.publish(draft, notes, version=0, parent=None, cut=cut, reached=reached)


def _first_arms(config: ArmsConfig, change: ArmsChanged | None) -> ArmFile:
    """Return the arms that a service begins with; those that are open may be none."""
    if change is not None:
        return ArmFile.of(change.upserted, config)
    schema = config.read_schema() if config.any_names and not config.file else None
    return read_arm_file(config) if schema is None else ArmFile.without_arms(schema)


def context_notes(config: Config, parent: Snapshot | None = None) -> dict[str, Any]:
    """Return what a version notes of the settings: names of a context, and what makes a reward."""
    before = None if parent is None else parent.notes.get("context_names")
    names, combination = before or list(config.context.names), config.reward.combination
    noted = {"reward": combination} if combination else {}
    return {"context_names": names, **noted} if names else noted


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
