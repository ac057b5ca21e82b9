"""Version 0: a bandit that has learned nothing yet, and lets every arm be equally likely."""

from __future__ import annotations

from fastbandit.bandit import Bandit
from fastbandit.config import Config
from fastbandit.events import ArmsChanged
from fastbandit.learning.arm_file import ArmFile, read_arm_file
from fastbandit.storage.snapshot_store import Cut, Reached, Snapshot, SnapshotStore, nothing_more


def publish_first(
    config: Config,
    store: SnapshotStore,
    *,
    put: ArmsChanged | None = None,
    reached: Reached = nothing_more,
) -> Snapshot:
    """Publish version 0, of the arms in the config's file, else of those `put` into the log."""
    arms = read_arm_file(config.arms) if put is None else ArmFile.of(put.put)
    cut = Cut() if put is None else Cut(put.seq, put.at, put.seq)
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


def first_bandit(config: Config, arms: ArmFile) -> Bandit:
    """Make the bandit of a config, before it has learned anything."""
    select = config.select
    return Bandit(
        arms=arms.features,
        ids=arms.ids,
        context=config.context.dim,
        reward=config.reward.kind,  # type: ignore[arg-type]
        explore=select.explore,
        search=select.search,
        preset=select.preset,
        seed=select.seed,
    )
