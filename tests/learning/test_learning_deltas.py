"""Between two versions rewards change arms' own constants, and nothing is learned twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from little_service import (
    SECOND,
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
from fastbandit.learning.shrunken_means import OTHERS
from fastbandit.settings.service import Config
from fastbandit.storage.deltas import Delta
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame

CONTEXTS = np.random.default_rng(9).normal(size=(40, 2)).astype(np.float32)
SEEDS = np.arange(40, dtype=np.uint64)


@pytest.fixture
def log(tmp_path: Path) -> LittleLog:
    return LittleLog(tmp_path)


@pytest.fixture
def config(tmp_path: Path, log: LittleLog) -> Config:
    """A config whose learner has published a version, with some interactions held out."""
    made = little_config(tmp_path)
    log.decide(25)
    learn_all(Learner(made))
    assert current_of(made).version == 1
    return made


def stepped(deltas: Deltas) -> Delta:
    delta = deltas.step()
    assert delta is not None
    return delta


def test_what_serves_decides_as_the_bandit_that_observed_it_all(
    config: Config, log: LittleLog
) -> None:
    log.decide(8, version=1)
    delta = stepped(Deltas(config))
    current = current_of(config)
    bandit = learned_by(config)
    history = bandit.history
    assert history is not None
    fresh = [(one.context, one.arms[0], one.context[0]) for one in decisions(log)][len(history) :]
    contexts, arms, rewards = zip(*fresh, strict=True)
    bandit.observe(contexts=np.array(contexts), arms=list(arms), rewards=rewards)

    frozen = FrozenBandit.load(current.frozen)
    frozen.apply_delta(delta.rows, delta.means, delta.deviations)

    assert delta.learned == len(fresh) == 33 - len(history)
    for explore in (True, False):
        got = frozen.select(CONTEXTS, seeds=SEEDS, explore=explore)
        wanted = bandit.freeze().select(CONTEXTS, seeds=SEEDS, explore=explore)
        np.testing.assert_array_equal(got.rows, wanted.rows)
        np.testing.assert_allclose(got.scores, wanted.scores, rtol=1e-4, atol=1e-5)


def decisions(log: LittleLog) -> list[DecisionMade]:
    return [event for event in log._log.read() if isinstance(event, DecisionMade)]


def test_each_holds_all_that_changed_since_the_snapshot(config: Config, log: LittleLog) -> None:
    deltas = Deltas(config)
    log.decide(3, version=1)
    first = stepped(deltas)
    assert deltas.step() is None  # nothing came
    log.decide(3, version=1)
    second = stepped(deltas)

    assert (first.number, second.number) == (1, 2)
    assert second.learned == first.learned + 3
    assert {*first.rows.tolist()} <= {*second.rows.tolist()}
    assert second.seq == decisions(log)[-1].seq + 1
    newest = store_of(config).newest_delta(current_of(config))
    assert newest is not None
    assert newest.to_bytes() == second.to_bytes()


def test_another_learner_resumes_where_the_last_one_died(config: Config, log: LittleLog) -> None:
    log.decide(3, version=1)
    first = stepped(Deltas(config))
    assert Deltas(config).step() is None
    log.decide(3, version=1)

    second = stepped(Deltas(config))

    assert (second.number, second.learned) == (2, first.learned + 3)


def test_a_damaged_one_is_made_anew(config: Config, log: LittleLog) -> None:
    log.decide(3, version=1)
    first = stepped(Deltas(config))
    store_of(config).deltas.path(1).write_bytes(b"{")

    again = stepped(Deltas(config))

    assert again.to_bytes() == first.to_bytes()


def test_versions_are_the_same_with_deltas_and_without(tmp_path: Path) -> None:
    hashes, weights = [], []
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        config, log = little_config(tmp_path / name), LittleLog(tmp_path / name)
        learner = Learner(config)
        deltas = Deltas(config, known=learner.bandit_of)
        for _ in range(9):
            log.decide(5)
            learn_all(learner)
            if name == "with":
                deltas.step()
        versions = store_of(config).list()
        hashes.append([one.hash for one in versions])
        state = Bandit.load(versions[-1].bandit).policy.model.state_dict()
        weights.append({key: value.numpy().tobytes() for key, value in state.items()})

    assert len(hashes[0]) == 3
    assert hashes[0] == hashes[1]
    assert weights[0] == weights[1]


def test_a_new_version_starts_anew(config: Config, log: LittleLog) -> None:
    learner = Learner(config)
    deltas = Deltas(config, known=learner.bandit_of)
    log.decide(5, version=1)
    stepped(deltas)
    log.decide(20, version=1)
    learn_all(learner)
    log.decide(1, version=1)  # made by the version before, and counted all the same

    delta = stepped(deltas)

    current = current_of(config)
    assert (delta.version, delta.number, delta.snapshot) == (2, 1, current.hash)
    assert delta.learned == 51 - current.cut.interactions
    assert [path.name for path in (store_of(config).folder / "deltas").iterdir()] == [
        "000002.delta"
    ]


def test_arms_that_came_since_wait_for_the_next_version(config: Config, log: LittleLog) -> None:
    deltas = Deltas(config)
    stepped(deltas)
    log.write(ArmsChanged(upserted=[Arm("new", [0.1, 0.2, 0.3], {"price": 1.0})]))
    made = DecisionMade("n", [1.0, 0.0], ["new"], [0.0], 1, 1, 1, 10 * SECOND)
    log.write(made, RewardCame("n", 1.0))

    assert deltas.step() is None


@pytest.mark.parametrize("name", ["no version", "no reward"])
def test_nothing_to_change_gives_none(tmp_path: Path, log: LittleLog, name: str) -> None:
    config = little_config(tmp_path)
    if name == "no reward":
        learn_all(Learner(config))
        log.decide(2, reward=False)

    assert Deltas(config).step() is None
    assert not (tmp_path / "snapshots" / "deltas").exists()


def test_those_of_version_0_hold_the_popularity_of_arms(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    learn_all(Learner(config))
    deltas = Deltas(config)
    log.decide(3)
    stepped(deltas)
    log.decide(6)
    delta = stepped(deltas)

    tried = {int(one.arms[0].split()[1]) for one in decisions(log)}
    assert (delta.version, delta.number, delta.learned) == (0, 2, 9)
    assert delta.rows.tolist() == [OTHERS, *sorted(tried)]
    frozen = FrozenBandit.load(current_of(config).frozen)
    frozen.apply_delta(delta.rows, delta.means, delta.deviations)
    assert not frozen.select(CONTEXTS, seeds=SEEDS).uniform


def test_a_step_that_fails_is_made_again_whole(
    config: Config, log: LittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltas = Deltas(config)
    log.decide(3, version=1)
    with monkeypatch.context() as broken:
        broken.setattr(Bandit, "observe", None)
        with pytest.raises(TypeError):
            deltas.step()

    wanted = stepped(Deltas(config))
    store_of(config).deltas.path(1).unlink()
    assert stepped(deltas).to_bytes() == wanted.to_bytes()
