"""A posterior and a search from outside the package are learned with and served."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fastbandit import Bandit
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.learning.little_service import LittleLog, little_config
from tests.serving.little_service import Caller, run

OUTSIDE = {
    "posterior": "outside_parts:ShyPosterior",
    "search": "outside_parts:PatientSearch",
    "part_modules": ("outside_parts",),
}


def config_of(folder: Path, **changes: object) -> Config:
    config = little_config(folder)
    return replace(config, select=replace(config.select, **{**OUTSIDE, **changes}))


def test_the_learner_publishes_a_version_of_parts_from_outside(tmp_path: Path) -> None:
    config, log = config_of(tmp_path), LittleLog(tmp_path)
    log.decide(40)
    log.now += 60_000_000
    log.decide(1, reward=False)

    learner = Learner(config)
    learner.start()
    steps = [learner.step() for _ in range(2)]

    assert [(step.did, step.version) for step in steps] == [("published", 0), ("published", 1)]
    current = SnapshotStore(tmp_path / "snapshots").current()
    assert current is not None
    bandit = Bandit.load(current.bandit, part_modules=["outside_parts"])
    assert type(bandit.blueprint.search).__name__ == "PatientSearch"
    with pytest.raises(SnapshotError, match="part_modules"):
        Bandit.load(current.bandit)


def test_the_service_decides_with_parts_from_outside(tmp_path: Path) -> None:
    config, log = config_of(tmp_path), LittleLog(tmp_path)
    log.decide(40)
    log.now += 60_000_000
    log.decide(1, reward=False)
    learner = Learner(config)
    learner.start()
    learner.step()
    learner.step()
    log.close()

    async def story(call: Caller) -> int:
        return int((await call.select(context=[0.5, -0.5]))["version"])

    assert run(replace(config, learn=replace(config.learn, enabled=False)), story) == 1


def test_the_settings_of_a_service_name_parts_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(
        '[select]\nsearch = "outside_parts:PatientSearch"\npart_modules = ["outside_parts"]\n'
    )

    assert read_config(path, environ={}).select.search == "outside_parts:PatientSearch"


def test_a_service_starts_with_no_module_that_it_does_not_allow(tmp_path: Path) -> None:
    config = config_of(tmp_path, part_modules=())

    with pytest.raises(SettingError, match="part_modules"):
        publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))


def test_what_cannot_be_frozen_is_said_before_anything_is_served(tmp_path: Path) -> None:
    config = config_of(tmp_path, search="outside_parts:UnfrozenSearch")

    with pytest.raises(SettingError, match="has no method compiled"):
        publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
