"""Version 0 serves before anything was learned, or says at once why it never could."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from little_service import current_of, learn_all, little_config, store_of

from fastbandit import FrozenBandit
from fastbandit.errors import FastbanditError, SettingError
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import ArmsConfig


@pytest.mark.parametrize("arms", [1, 10])
@pytest.mark.parametrize("explore", ["ts", "ucb"])
def test_every_arm_is_as_likely_as_another(tmp_path: Path, arms: int, explore: str) -> None:
    config = little_config(tmp_path, arms=arms)
    config = replace(config, select=replace(config.select, exploration=explore))
    snapshot = publish_initial_version(config, store_of(config))

    frozen = FrozenBandit.load(snapshot.frozen)
    chosen = frozen.select_one([0.0, 1.0])
    assert (chosen.version, chosen.score) == (0, 0.0)
    assert frozen.propensities([0.0, 1.0], epsilon=0.0).of(chosen.arm) == 1 / arms


def test_predicates_hold_from_the_start(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    snapshot = publish_initial_version(config, store_of(config))
    frozen = FrozenBandit.load(snapshot.frozen)

    found = {frozen.select_one([0.0, 1.0], eligible={"price": {"<": 2}}).arm for _ in range(40)}

    assert found == {"arm 0", "arm 1"}


def test_what_could_never_be_served_is_refused_at_once(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    select = replace(config.select, exploration="ucb", search="exhaustive")
    config = replace(config, select=select)

    with pytest.raises(SettingError, match="cannot be frozen"):
        publish_initial_version(config, store_of(config))
    assert store_of(config).current() is None


def test_arms_that_cannot_be_read_leave_nothing_behind(tmp_path: Path) -> None:
    config = replace(little_config(tmp_path), arms=ArmsConfig(file=str(tmp_path / "no.csv")))

    with pytest.raises(FastbanditError, match="found none"):
        publish_initial_version(config, store_of(config))
    assert not store_of(config).folder.exists()


def test_a_first_version_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    learn_all(Learner(config))
    before = current_of(config)
    learn_all(Learner(little_config(tmp_path, arms=3)))

    assert current_of(config) == before
