"""What was learned lies beside the log, and is the same when it has to be joined again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from little_service import LittleLog, current_of, learn_all, learned_by, little_config, store_of

from fastbandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.learning.learner import Learner
from fastbandit.learning.service_data import ServiceData
from fastbandit.learning.training_history import TrainingHistory
from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service import Config
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame
from fastbandit.types import Interactions


def history_of(config: Config) -> Interactions:
    history = learned_by(config).history
    assert history is not None
    return history


def are_same(one: Interactions, other: Interactions) -> bool:
    pairs = (
        (one.contexts.dense, other.contexts.dense),
        (one.arms.dense, other.arms.dense),
        (one.rewards, other.rewards),
        (one.rows, other.rows),
    )
    return all(np.array_equal(a, b) for a, b in pairs)  # type: ignore[arg-type]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Return a service that learned five times, while an arm changed twice."""
    config, log = little_config(tmp_path), LittleLog(tmp_path)
    for number in range(4):
        log.decide(25, arms=3)
        learn_all(Learner(config))
        if number < 2:
            changed = Arm("arm 1", [float(number), 1.0, 2.0], {"price": 5.0})
            log.write(ArmsChanged([changed]))
    log.close()
    assert current_of(config).version == 5
    return config


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_version_does_not_grow_with_what_was_learned(tmp_path: Path) -> None:
    config, log = little_config(tmp_path, keep=99), LittleLog(tmp_path)
    for count in (30, 130):
        log.decide(count)
        learn_all(Learner(config))

    first, *_, last = store_of(config).list()[1:]
    assert last.cut.interactions > 5 * first.cut.interactions
    sizes = [size_of(one.bandit / "..") for one in (first, last)]
    assert abs(sizes[1] - sizes[0]) < 1_000  # digits of numbers, and the curve


def test_joined_again_it_is_what_it_was(config: Config, tmp_path: Path) -> None:
    before = history_of(config)
    assert before.rows is not None
    assert {*before.rows.tolist()} > {1, 10, 11}  # the three rows of an arm that changed
    shutil.rmtree(tmp_path / "history")

    assert are_same(history_of(config), before)
    assert list((tmp_path / "history").glob("*.safetensors"))


@pytest.mark.parametrize("loss", ["none", "all of it"])
def test_after_a_restart_the_next_version_is_the_same(
    config: Config, tmp_path: Path, loss: str
) -> None:
    hashes = []
    for name in ("one that went on", "one that began anew"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("snapshots", "history"):
            shutil.copytree(tmp_path / part, folder / part)
        shutil.copy(tmp_path / "events.db", folder)
        own = replace(config, server=replace(config.server, data_dir=str(folder)))
        log, learner = LittleLog(folder), Learner(own)
        log.now, log._made = 100_000_000, 1_000
        learn_all(learner)
        for _ in range(2):
            log.decide(40)
            if name == "one that began anew":
                if loss == "all of it":
                    shutil.rmtree(folder / "history")
                learner = Learner(own)
            learn_all(learner)
        hashes.append([one.hash for one in store_of(own).list()])

    assert hashes[0] == hashes[1]
    assert len(hashes[0]) >= 4


def test_after_a_rollback_it_learns_on_from_there(config: Config, tmp_path: Path) -> None:
    before = current_of(config).cut.interactions
    store_of(config).rollback(2)
    learned = current_of(config).cut.interactions

    assert len(history_of(config)) == learned < before
    log = LittleLog(tmp_path)
    log.now, log._made = 100_000_000, 1_000
    log.decide(20)
    learn_all(Learner(config))
    assert len(history_of(config)) == current_of(config).cut.interactions > before


def test_a_version_of_before_holds_all_of_it_itself(config: Config, tmp_path: Path) -> None:
    current, before = current_of(config), history_of(config)
    whole = Bandit.load(current.bandit).with_history(before)
    shutil.rmtree(tmp_path / "history")
    data = ServiceData(config)

    bandit, learned = TrainingHistory(data).of(whole, current)

    assert bandit.history is not None
    assert are_same(bandit.history, before)
    assert len(learned) == len(before)
    again, _ = TrainingHistory(data).of(Bandit.load(current.bandit), current)
    assert again.history is not None
    assert are_same(again.history, before)


def test_what_the_log_cannot_tell_apart_stays_with_the_version(
    config: Config, tmp_path: Path
) -> None:
    current, before = current_of(config), history_of(config)
    whole = Bandit.load(current.bandit).with_history(before)
    shutil.rmtree(tmp_path / "history")
    (tmp_path / "events.db").unlink()

    bandit, learned = TrainingHistory(ServiceData(config)).of(whole, current)

    assert bandit is whole
    assert len(learned) == 0


def test_a_bandit_of_a_service_does_not_learn_on_without_its_log(config: Config) -> None:
    bandit = Bandit.load(current_of(config).bandit)

    assert bandit.in_log is not None
    assert bandit.in_log.count == current_of(config).cut.interactions
    with pytest.raises(SettingError, match="in the log of its service"):
        bandit.update(contexts=[[0.0, 1.0]], arms=["arm 1"], rewards=[1.0])


def outcomes_in(folder: Path, count: int) -> None:
    """Log decisions whose quality and cost came, every third without its quality."""
    log = LittleLog(folder)
    for number in range(count):
        log.now += 1_000
        made = DecisionMade(
            id=f"o{number}",
            context=[number / count, 1.0],
            arms=[f"arm {number % 10}"],
            scores=[0.0],
            seed=number,
            version=0,
            catalogue=0,
            wait=1_000_000,
            adds_up=True,
        )
        quality = [RewardCame(made.id, number / count, None, "quality")] if number % 3 else []
        log.write(made, *quality, RewardCame(made.id, 2.0, None, "cost"))
    log.let_pass(5.0)
    log.close()


def weighed(config: Config, **weights: float) -> Config:
    reward = RewardConfig(kind="real", weights=tuple(weights.items()), missing="skip")
    return replace(config, reward=reward)


def test_other_weights_make_a_version_of_the_whole_log_at_once(tmp_path: Path) -> None:
    config = weighed(little_config(tmp_path, held_out=0.0), quality=1.0, cost=-0.5)
    outcomes_in(tmp_path, 90)
    learn_all(Learner(config))
    first, version = history_of(config), current_of(config).version
    assert len(first) == 60
    qualities = first.rewards + 1.0

    other = weighed(config, quality=2.0, cost=-1.0)
    steps = learn_all(Learner(other))

    assert [step.did for step in steps] == ["published", "waited"]
    assert current_of(other).version == version + 1
    again = history_of(other)
    assert again.rewards == pytest.approx(2.0 * qualities - 2.0, abs=1e-5)
    assert np.array_equal(again.contexts.dense, first.contexts.dense)  # type: ignore[arg-type]
    assert learn_all(Learner(other))[0].did == "waited"


def test_what_was_skipped_is_learned_once_the_weights_allow_it(tmp_path: Path) -> None:
    config = weighed(little_config(tmp_path, held_out=0.0), quality=1.0, cost=-0.5)
    outcomes_in(tmp_path, 90)
    learn_all(Learner(config))

    costs = weighed(config, cost=-1.0)
    learn_all(Learner(costs))

    assert history_of(costs).rewards.tolist() == [-2.0] * 90
    assert learned_by(config).history is not None  # and back again
    learn_all(Learner(config))
    assert len(history_of(config)) == 60


def test_weights_of_outcomes_that_never_come_are_refused(tmp_path: Path) -> None:
    config = weighed(little_config(tmp_path, held_out=0.0), quality=1.0)
    outcomes_in(tmp_path, 60)
    learn_all(Learner(config))

    with pytest.raises(SettingError, match="none has all outcomes that reward"):
        Learner(weighed(config, qualtiy=1.0)).step()
