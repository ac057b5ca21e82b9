"""After a reset a version that has learned nothing serves, and later ones learn what came since."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from little_service import (
    LittleLog,
    current_of,
    learn_all,
    learned_by,
    little_config,
    store_of,
)

from fastbandit import Bandit, FrozenBandit
from fastbandit.learning.deltas import Deltas
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.events import Arm, ArmsChanged, RewardCame
from fastbandit.storage.log_match import accept_log
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.storage.standing_requests import RESET_FILE, ask


@pytest.fixture
def log(tmp_path: Path) -> LittleLog:
    return LittleLog(tmp_path)


@pytest.fixture
def config(tmp_path: Path, log: LittleLog) -> Config:
    """Return a service that learned twice, where some decisions still wait for rewards."""
    made = little_config(tmp_path)
    for _ in range(2):
        log.decide(20)
        learn_all(Learner(made))
    log.decide(5, reward=False)
    assert current_of(made).version == 2
    return made


def reset(folder: Path) -> int:
    with closing(SqliteLog(folder / "events.db", is_reader=True)) as log:
        ask(folder / RESET_FILE, seq=log.last)
        return log.last


def learned_after(config: Config, seq: int) -> bool:
    """Return whether all that the current version learned was decided after an event."""
    with closing(SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)) as log:
        made = log.read(after=seq)
    contexts = np.array([one.context for one in made if hasattr(one, "context")], np.float32)
    history = learned_by(config).history
    assert history is not None
    assert history.contexts.dense is not None
    return {*map(tuple, history.contexts.dense.tolist())} <= {*map(tuple, contexts.tolist())}


def test_the_version_after_a_reset_has_learned_nothing(
    config: Config, log: LittleLog, tmp_path: Path
) -> None:
    log.write(ArmsChanged([Arm("new", [1.0, 2.0, 3.0], {"price": 1.0})], ["arm 3"]))
    seq = reset(tmp_path)

    steps = learn_all(Learner(config))

    current = current_of(config)
    assert [(one.did, one.version) for one in steps] == [("published", 3), ("waited", 3)]
    assert (current.parent, current.cut.seq, current.cut.interactions) == (2, seq, 0)
    bandit, frozen = Bandit.load(current.bandit), FrozenBandit.load(current.frozen)
    assert (bandit.history, bandit.in_log) == (None, None)
    assert ("new" in bandit, "arm 3" in bandit, len(frozen)) == (True, False, 10)
    assert frozen.select([[0.0, 1.0]], eligible={"price": {"<=": 5}}).uniform


def test_later_versions_learn_only_what_was_decided_after_it(
    config: Config, log: LittleLog, tmp_path: Path
) -> None:
    seq = reset(tmp_path)
    log.write(RewardCame("d40", 9.0))  # of a decision from before
    log.decide(30)
    learn_all(Learner(config))

    current = current_of(config)
    assert (current.version, current.parent) == (4, 3)
    assert current.cut.interactions + current.cut.held == 20  # a version is due at so many
    assert learned_after(config, seq)
    learned = learned_by(config).history
    shutil.rmtree(tmp_path / "history")
    again = learned_by(config).history
    assert learned is not None
    assert again is not None
    assert np.array_equal(learned.rewards, again.rewards)

    log.decide(60)
    learn_all(Learner(config))
    assert current_of(config).version > 4
    shutil.rmtree(tmp_path / "history")
    assert learned_after(config, seq)


def test_decisions_between_the_request_and_its_version_are_learned(
    config: Config, log: LittleLog, tmp_path: Path
) -> None:
    learner = Learner(config)
    seq = reset(tmp_path)
    log.decide(10)
    learn_all(learner)
    log.decide(10)
    learn_all(learner)

    cut = current_of(config).cut
    assert (current_of(config).version, cut.interactions + cut.held) == (4, 20)
    assert learned_after(config, seq)


def test_after_a_rollback_it_is_not_done_again(
    config: Config, log: LittleLog, tmp_path: Path
) -> None:
    before = current_of(config).hash
    reset(tmp_path)
    learn_all(Learner(config))
    assert store_of(config).rollback().hash == before

    assert [one.did for one in learn_all(Learner(config))] == ["waited"]
    assert current_of(config).hash == before
    log.decide(60)
    learn_all(Learner(config))
    assert "begins" not in current_of(config).notes
    assert current_of(config).cut.interactions > 40


def test_asked_for_again_it_is_done_again(config: Config, tmp_path: Path) -> None:
    reset(tmp_path)
    learn_all(Learner(config))
    store_of(config).rollback()
    reset(tmp_path)
    learn_all(Learner(config))

    assert (current_of(config).version, current_of(config).parent) == (4, 2)


@pytest.mark.parametrize("step", ["saved bandit", "saved frozen", "noted", "renamed", "published"])
def test_one_that_ends_at_any_step_is_finished_once(
    config: Config, tmp_path: Path, step: str
) -> None:
    def reached(now: str) -> None:
        if now == step:
            raise KeyboardInterrupt

    reset(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        learn_all(Learner(config, reached=reached))
    learn_all(Learner(config))

    assert store_of(config).versions() == [0, 1, 2, 3]
    assert current_of(config).notes["begins"] == current_of(config).cut.seq
    assert not (tmp_path / RESET_FILE).exists()


def test_popularity_is_counted_from_the_reset_on(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, fresh=100)
    learn_all(Learner(config))
    deltas = Deltas(config)
    log.decide(9)
    assert deltas.step() is not None
    reset(tmp_path)
    learn_all(Learner(config))
    assert deltas.step() is None

    log.decide(4)
    delta = deltas.step()
    assert delta is not None
    assert (delta.version, delta.learned) == (1, 4)


def test_of_a_log_that_lost_its_end_what_comes_next_is_learned(
    config: Config, log: LittleLog, tmp_path: Path
) -> None:
    reset(tmp_path)
    learn_all(Learner(config))
    log.close()
    (tmp_path / "events.db").unlink()
    other = LittleLog(tmp_path)
    other.decide(30)
    with closing(SqliteLog(tmp_path / "events.db", is_reader=True)) as found:
        assert accept_log(found, store_of(config), tmp_path) is not None
    learn_all(Learner(config))
    shutil.rmtree(tmp_path / "history")

    history = learned_by(config).history
    assert history is not None
    assert len(history) == current_of(config).cut.interactions == 16


def test_a_reset_outlives_another_file_of_arms(config: Config, tmp_path: Path) -> None:
    (tmp_path / "arms.csv").unlink()
    reset(tmp_path)
    learn_all(Learner(config))

    assert current_of(config).version == 3
