"""Checks before a service listens whether its first snapshot can be made, where that is quick."""

from __future__ import annotations

from pathlib import Path

from fastbandit.errors import SettingError
from fastbandit.learning.arm_file import check_arm_file
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import SnapshotStore


def check_startup(config: Config) -> None:
    """Raise what the learner would raise of a preset or a file of arms that it cannot start with.

    Where there is a snapshot, here or perhaps with others, neither is needed.
    """
    if config.log.url or SnapshotStore(Path(config.server.data_dir) / "snapshots").versions():
        return
    preset = config.select.preset
    if preset.endswith(".toml") and not Path(preset).is_file():
        raise SettingError(
            f"A preset needs to be a file that exists, or a name: found none at {preset}. Correct "
            f"select.preset."
        )
    if config.arms.file:
        check_arm_file(config.arms)
