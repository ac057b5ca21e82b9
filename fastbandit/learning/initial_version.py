"""Version 0, and those after a reset: none has learned anything; every arm is equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.arms.offers import arm_count
from fastbandit.bandit import Bandit
from fastbandit.learning.arm_file import ArmFile, read_arm_file
from fastbandit.learning.arm_knowledge import unlearned
from fastbandit.learning.candidates import load_parent, save_draft
from fastbandit.learning.service_data import ServiceData
from fastbandit.settings.files import Sections
from fastbandit.settings.presets import settings_for
from fastbandit.settings.service import ArmsConfig, Config
from fastbandit.storage.arm_changes import apply_changes
from fastbandit.storage.events import ArmsChanged
from fastbandit.storage.snapshot_store import Reached, SnapshotStore, nothing_more
from fastbandit.storage.snapshot_version import Cut, Snapshot
from fastbandit.storage.standing_requests import RESET_FILE, asked_in, withdraw

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
    terms: dict[str, Any] = {"version": 0, "parent": None, "cut": cut, "reached": reached}
    return _published(store, bandit, context_notes(config), **terms)


def reset_model(
    config: Config, data: ServiceData, *, parent: Snapshot, reached: Reached = nothing_more
) -> Snapshot | None:
    """Publish a version that has learned nothing, where a client asked for that; else return None.

    It knows the arms as they were then. Later ones learn nothing that was decided before.
    """
    path, log, store = data.folder / RESET_FILE, data.log, data.store
    if (asked := asked_in(path)) is None or log is None:
        return None
    made = None
    if all(one.notes.get("reset") != asked["id"] for one in store.list()):  # else it is done
        last = max(
            [parent.cut, *log.read(after=asked["seq"] - 1, limit=1)], key=lambda one: one.seq
        )
        bandit = load_parent(parent, config.select.part_modules)
        changes = log.changes(after=parent.cut.seq)
        apply_changes(bandit, [one for one in changes if one.seq <= last.seq])
        bandit, cut = unlearned(bandit, config.select), Cut(last.seq, last.at, last.seq)
        notes = {**context_notes(config, parent), "begins": last.seq, "reset": asked["id"]}
        terms: dict[str, Any] = {"version": store.next_version(), "parent": parent, "cut": cut}
        made = _published(store, bandit, notes, reached=reached, **terms)
    withdraw(path, asked)
    return made


def _published(
    store: SnapshotStore, bandit: Bandit, notes: dict[str, Any], *, reached: Reached, **terms: Any
) -> Snapshot:
    notes = {"arms": arm_count(bandit), **notes}
    with store.drafting() as draft:
        save_draft(draft, bandit, reached=reached)
        return store.publish(draft, notes, reached=reached, **terms)


def _first_arms(config: ArmsConfig, change: ArmsChanged | None) -> ArmFile:
    """Return the arms that a service begins with; those that are open may be none."""
    if change is not None:
        return ArmFile.of(change.upserted, config)
    schema = config.read_schema() if config.any_names and not config.file else None
    return read_arm_file(config) if schema is None else ArmFile.without_arms(schema)


def context_notes(config: Config, parent: Snapshot | None = None) -> dict[str, Any]:
    """Return what a version notes of contexts and rewards, and after which event it may learn."""
    before = {} if parent is None else parent.notes
    names = before.get("context_names") or list(config.context.names)
    noted = {"reward": config.reward.combination, "begins": before.get("begins")}
    noted = {name: value for name, value in noted.items() if value}
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
