"""A folder to serve from: settings, schemas, and the first version of a bandit that learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from fastbandit.bandit import Bandit
from fastbandit.cli.init import write_config
from fastbandit.errors import SettingError
from fastbandit.features.schema import Schema
from fastbandit.files.atomic import making_folder, raising, write_atomic
from fastbandit.learning.candidates import save_draft
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore, nothing_more
from fastbandit.storage.snapshot_version import Cut

SETTINGS, CONTEXT, ARMS, REPORT = "service.toml", "context.json", "arms.json", "report.json"
_SNAPSHOTS = "snapshots"


def check_new(out: Path) -> None:
    """Raise where a folder holds something already."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SettingError(
            f"A new service needs a folder that is empty or not there: found files in {out}. Name "
            f"another with --out."
        )


def begun(out: Path) -> Config | None:
    """Return the settings of a folder that `fastbandit init` wrote, None of one that is new.

    Raise where it holds something else.
    """
    has_versions = any((out / name).exists() for name in (_SNAPSHOTS, LOG_FILE))
    if has_versions or not (out / SETTINGS).exists():
        check_new(out)
        return None
    config = read_config(out / SETTINGS)
    if not (config.context.schema and config.arms.schema):
        raise SettingError(
            f"Learning into a folder needs context.schema and arms.schema in its settings: got "
            f"{out / SETTINGS} without. Run `fastbandit init` with --log, or name another --out."
        )
    return config


class Described(Protocol):
    """What a service needs to know of contexts, arms and rewards; None: arms are ids alone."""

    @property
    def context(self) -> Schema: ...

    @property
    def arm(self) -> Schema | None: ...

    @property
    def reward_kind(self) -> str: ...


def write_service(
    out: Path,
    read: Described,
    settings: Mapping[str, Any],
    *,
    learned: tuple[Bandit, dict[str, Any]] | None = None,
) -> None:
    """Write the folder of a service, whole or not at all; a bandit that learned is version 1.

    Settings that are there already stay.
    """
    place = out.expanduser().absolute()
    if learned is not None and (place / SETTINGS).exists():
        _write_learned(place, *learned)
        return
    needs = f"A service needs a folder that can be written to: {place} cannot"
    with raising(SettingError, needs, fix="Choose another."), making_folder(place) as folder:
        read.context.save(folder / CONTEXT)
        own = {
            "server.data_dir": str(place),
            "context.schema": CONTEXT,
            "reward.kind": read.reward_kind,
        }
        if read.arm is not None:
            read.arm.save(folder / ARMS)
            own |= {"arms.schema": ARMS, "arms.id": read.arm.key or "id"}
        write_config(folder / SETTINGS, values={**own, **settings})
        if learned is not None:
            _write_learned(folder, *learned)


def _write_learned(folder: Path, bandit: Bandit, report: dict[str, Any]) -> None:
    """Publish a bandit that learned from a log of elsewhere: none of the service's own events."""
    text = json.dumps(report, indent=1, ensure_ascii=False)
    write_atomic(folder / REPORT, f"{text}\n".encode())
    notes = {
        "arms": len(bandit),
        "learned": report["decisions"],
        "mean_reward": report["mean_reward"],
        "checks": report["checks"],
    }
    store = SnapshotStore(folder / _SNAPSHOTS)
    with store.drafting() as draft:
        save_draft(draft, bandit, reached=nothing_more)
        store.publish(draft, notes, version=bandit.version, parent=None, cut=Cut())
