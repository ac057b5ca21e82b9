"""Version 0: a bandit that has learned nothing yet, and lets every arm be equally likely."""

from __future__ import annotations

import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.learning.arm_file import ArmFile, read_arm_file
from fastbandit.settings.files import Sections
from fastbandit.settings.presets import settings_for
from fastbandit.settings.service import Config
from fastbandit.storage.events import ArmsChanged
from fastbandit.storage.snapshot_store import Reached, SnapshotStore, nothing_more
from fastbandit.storage.snapshot_version import Cut, Snapshot

_TRIED = 16


def publish_first(
    config: Config,
    store: SnapshotStore,
    *,
    put: ArmsChanged | None = None,
    reached: Reached = nothing_more,
) -> Snapshot:
    """Publish version 0, of the arms in the config's file, else of those `put` into the log."""
    arms = read_arm_file(config.arms) if put is None else ArmFile.of(put.upserted)
    cut = Cut() if put is None else Cut(put.seq, put.at, put.seq)
    try_out(config, arms)
    bandit = first_bandit(config, arms)
    with store.drafting() as draft:
        bandit.save(draft / "bandit")
        reached("saved bandit")
        frozen = bandit.freeze()
        if arms.columns:
            frozen.set_columns(arms.columns)
        frozen.save(draft / "frozen")
        reached("saved frozen")
        notes = {"arms": len(bandit)}
        return store.publish(draft, notes, version=0, parent=None, cut=cut, reached=reached)


def try_out(config: Config, arms: ArmFile) -> None:
    """Learn for one step from one pair and freeze that: raises what a later version would."""
    short = {"training.reward": {"iterations": 1}, "training.generator": {"iterations": 1}}
    bandit = first_bandit(config, arms.first(_TRIED), settings=short)
    contexts = np.zeros((1, config.context.dim), dtype=np.float32)
    bandit.update(contexts=contexts, arms=arms.ids[:1], rewards=[0.0])
    bandit.freeze()


def first_bandit(config: Config, arms: ArmFile, *, settings: Sections | None = None) -> Bandit:
    """Make the bandit of a config, before it has learned anything."""
    select = config.select
    return Bandit(
        arms=arms.features,
        ids=arms.ids,
        context=config.context.dim,
        reward=config.reward.kind,  # type: ignore[arg-type]
        exploration=select.exploration,
        search=select.search,
        preset=settings_for(select.preset).merged(settings or {}),
        seed=select.seed,
    )
