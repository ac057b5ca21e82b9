"""The learner makes versions from the log: each pair once, and only what passes its checks."""

from __future__ import annotations

import json
from itertools import pairwise
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
from fastbandit.learning import candidate_checks
from fastbandit.learning.learner import Learner
from fastbandit.storage.events import Arm, ArmsChanged, Event
from fastbandit.storage.sqlite_log import SqliteLog


@pytest.fixture
def log(tmp_path: Path) -> LittleLog:
    return LittleLog(tmp_path)


def test_the_first_version_needs_no_log(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    steps = learn_all(Learner(config))

    assert [(step.did, step.version) for step in steps] == [("published", 0), ("waited", 0)]
    assert len(FrozenBandit.load(current_of(config).frozen)) == 10


def test_nothing_is_learned_twice_or_left_out(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    for count in (25, 5, 30):
        log.decide(count)
        learn_all(Learner(config))  # each time a new one, as after a restart

    current = current_of(config)
    history = learned_by(config).history
    assert history is not None
    assert current.version == 3
    assert len(history) == current.cut.interactions
    assert current.cut.interactions + current.cut.held == 60
    assert len(np.unique(history.contexts.dense, axis=0)) == len(history)


def test_the_same_log_gives_the_same_hashes_at_whatever_pace(tmp_path: Path) -> None:
    hashes = []
    for name in ("at once", "bit by bit"):
        (tmp_path / name).mkdir()
        config, log = little_config(tmp_path / name), LittleLog(tmp_path / name)
        learner = Learner(config)
        for _ in range(9):
            log.decide(5)
            if name == "bit by bit":
                learn_all(learner)
        learn_all(learner)
        hashes.append([one.hash for one in store_of(config).list()])

    assert len(hashes[0]) == 3
    assert hashes[0] == hashes[1]


def test_a_version_notes_what_it_learned_and_how(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    log.decide(40)
    learn_all(Learner(config))

    notes = current_of(config).notes
    assert notes["arms"] == 10
    assert notes["learned"] == 20
    assert [steps for steps, _ in notes["curve"]] == [20]
    assert notes["checks"]["finite"] is True
    assert notes["checks"]["held_out"] == 4
    others = ("in_service", "constant", "popularity")
    assert all({"loss", "difference", "low", "high"} == {*notes["checks"][name]} for name in others)


def test_any_interaction_is_enough_after_a_while(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, seconds=60.0)
    log.decide(2)
    log.let_pass(59)
    learner = Learner(config)
    learn_all(learner)
    assert current_of(config).version == 0

    log.let_pass(2)
    learn_all(learner)
    assert current_of(config).version == 1
    assert current_of(config).cut.interactions == 2


def test_a_decision_without_a_reward_has_the_default_reward(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    log.decide(25, reward=False)
    log.let_pass(11)
    learn_all(Learner(config))

    history = learned_by(config).history
    assert history is not None
    assert history.rewards.tolist() == [0.0] * 20


def test_changed_arms_are_in_the_next_version(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    learn_all(Learner(config))
    log.decide(15)
    new = Arm("new", [1.0, 2.0, 3.0], {"price": 99.0})
    first, price = _same_as_before(config, "arm 1")
    log.write(ArmsChanged([new, Arm("arm 1", first, {"price": price})], ["arm 2", "nobody"]))
    log.write(ArmsChanged([Arm("arm 3", [0.0, 0.0, 1.0], {"price": 3.0})], []))
    log.write(ArmsChanged([], ["arm 4"]), ArmsChanged([Arm("arm 4", first, {"price": 1.0})], []))
    log.decide(10)
    learn_all(Learner(config))

    frozen = FrozenBandit.load(current_of(config).frozen)
    assert current_of(config).version == 1
    assert len(frozen) == 10
    assert frozen.select_one([0.0, 0.0], eligible={"price": {">": 50}}).arm == "new"
    assert frozen.columns is not None
    assert frozen.columns.rows == 13  # arm 1 is as it was; new, arm 3 and arm 4 have new rows


def _same_as_before(config: object, id: str) -> tuple[list[float], float]:
    bandit = Bandit.load(current_of(config).bandit)  # type: ignore[arg-type]
    row = int(bandit.policy.arms.table.rows([id])[0])  # type: ignore[union-attr]
    return bandit.policy.arms.features.dense[row].tolist(), float(row)  # type: ignore[union-attr]


@pytest.mark.parametrize("arms", [1, 2])
def test_a_tiny_catalogue_can_be_changed_whole(tmp_path: Path, log: LittleLog, arms: int) -> None:
    config = little_config(tmp_path, arms=arms)
    log.decide(10, arms=arms)
    log.write(ArmsChanged([Arm(f"arm {n}", [n, 1.0, 2.0], {"price": 0}) for n in range(arms)]))
    log.decide(10, arms=arms)
    learn_all(Learner(config))

    frozen = FrozenBandit.load(current_of(config).frozen)
    assert (frozen.version, len(frozen)) == (1, arms)
    assert frozen.select_one([0.0, 1.0]).arm in {"arm 0", "arm 1"}


def test_arms_that_are_all_taken_stay_until_others_come(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, arms=2)
    learner = Learner(config)
    log.write(ArmsChanged([], ["arm 0"]), ArmsChanged([], ["arm 1"]))
    log.decide(20, arms=2)
    learn_all(learner)
    frozen = FrozenBandit.load(current_of(config).frozen)
    assert (frozen.version, frozen.select_one([0.0, 1.0]).arm) == (1, "arm 1")

    log.write(ArmsChanged([Arm("new", [1.0, 2.0, 3.0], {"price": 0})]), ArmsChanged([], ["arm 1"]))
    log.decide(20, arms=2)
    learn_all(learner)
    frozen = FrozenBandit.load(current_of(config).frozen)
    assert (frozen.version, frozen.select_one([0.0, 1.0]).arm) == (2, "new")
    assert json.loads((tmp_path / "learner.json").read_text())["state"] == "waiting"


def test_without_a_file_the_first_arms_come_from_the_log(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    config = type(config)(**{**vars(config), "arms": type(config.arms)()})
    learner = Learner(config)
    assert "no arms yet" in learn_all(learner)[-1].reason

    put = log.write(ArmsChanged([Arm(f"arm {n}", [n, 1.0]) for n in range(10)]))
    log.decide(25)
    learn_all(learner)

    assert store_of(config).get(0).cut.seq == put
    assert current_of(config).version == 1


def test_what_fails_a_check_is_refused_and_more_interactions_are_awaited(
    tmp_path: Path, log: LittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = little_config(tmp_path)
    log.decide(20)
    monkeypatch.setattr(candidate_checks, "is_finite", lambda policy: False)
    steps = learn_all(Learner(config))
    log.decide(19)
    log.let_pass(100)
    monkeypatch.undo()
    learn_all(Learner(config))

    (report,) = store_of(config).refused()
    assert [step.did for step in steps] == ["published", "refused", "waited"]
    assert "finite" in steps[1].reason
    assert report["reason"] == steps[1].reason
    assert report["checks"]["quality"] is None
    assert current_of(config).version == 0

    log.decide(1)
    learn_all(Learner(config))
    assert (current_of(config).version, current_of(config).parent) == (2, 0)
    assert current_of(config).cut.interactions == 32  # of 40, a fifth is held out


def test_after_a_rollback_the_learner_resumes_from_it(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    learner = Learner(config)
    log.decide(40)
    learn_all(learner)
    store_of(config).rollback()
    learn_all(learner)
    assert current_of(config).version == 1

    log.decide(20)
    learn_all(learner)
    assert (current_of(config).version, current_of(config).parent) == (3, 1)
    assert current_of(config).cut.interactions + current_of(config).cut.held == 60


def test_old_versions_are_pruned(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, keep=2)
    log.decide(60)
    learn_all(Learner(config))

    assert store_of(config).versions() == [2, 3]


def test_the_learner_says_what_it_waits_for(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    log.decide(23)
    learn_all(Learner(config))

    notes = json.loads((tmp_path / "learner.json").read_text())
    assert notes["state"] == "waiting"
    assert (notes["version"], notes["fresh"], notes["needed"]) == (1, 3, 20)
    assert notes["seconds"] > 0


def test_an_update_that_fails_is_tried_again_at_the_same_event(
    tmp_path: Path, log: LittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = little_config(tmp_path)
    learner = Learner(config)
    learn_all(learner)
    log.decide(25)
    monkeypatch.setattr("fastbandit.learning.learner.train_candidate", _fail)
    with pytest.raises(RuntimeError, match="no memory"):
        learner.step()
    monkeypatch.undo()
    learn_all(learner)

    assert current_of(config).cut.seq == 40  # the 20th reward


def _fail(*job: object, **rest: object) -> None:
    raise RuntimeError("no memory")


def test_served_decisions_are_audited(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, audited=10)
    learner = Learner(config)
    log.decide(20)
    learn_all(learner)
    log.decide(4, version=0)
    log.decide(8, version=1)
    for _ in range(3):
        learn_all(learner)
        learner.audit()
        log.decide(2, version=1)

    audits = json.loads((tmp_path / "audits.json").read_text())
    assert (audits["version"], audits["count"]) == (1, 10)
    assert audits["lowest"] <= audits["quality"] < 1


def test_one_that_is_behind_cuts_at_the_newest_due_point(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path, seconds=5.0)
    log.decide(30)
    log.let_pass(8)
    log.decide(30)
    learn_all(Learner(config))

    current = current_of(config)
    assert [one.version for one in store_of(config).list()] == [0, 1]
    assert current.cut.interactions + current.cut.held == 50  # 20, 30 after 5 s, then 20 more
    history = learned_by(config).history
    assert history is not None
    assert len(history) == current.cut.interactions


def test_one_that_is_behind_reads_the_log_twice(
    tmp_path: Path, log: LittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, counts = SqliteLog.read, list[int]()

    def counted(self: SqliteLog, **terms: int) -> list[Event]:
        counts.append(len(events := read(self, **terms)))
        return events

    monkeypatch.setattr(SqliteLog, "read", counted)
    config = little_config(tmp_path, seconds=5.0)
    for _ in range(6):
        log.decide(30)
        log.let_pass(8)
    learn_all(Learner(config))

    cut = current_of(config).cut
    assert cut.interactions + cut.held == 180
    assert sum(counts) < 4 * 366  # to what is due first and last, then up to it, and from its cut


def test_one_that_is_far_behind_leaves_some_for_the_next_version(
    tmp_path: Path, log: LittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.learning.learner._MOST_FRESH", 40)
    config = little_config(tmp_path, seconds=5.0)
    for _ in range(4):
        log.decide(30)
        log.let_pass(8)
    learn_all(Learner(config))

    store = store_of(config)
    taken = [one.cut.interactions + one.cut.held for one in store.list()]
    assert taken[0] == 0
    assert all(later - before <= 80 for before, later in pairwise(taken))
    assert len(taken) > 2
    assert taken[-1] == 120


def test_what_a_version_holds_is_the_log_up_to_its_cut(tmp_path: Path) -> None:
    """Events after the cut change nothing: one log ends there."""
    found = []
    for name in ("goes on", "ends"):
        (tmp_path / name).mkdir()
        config, log = little_config(tmp_path / name, seconds=0.5), LittleLog(tmp_path / name)
        log.decide(35)
        log.decide(1, reward=name == "goes on")
        log.decide(4 if name == "goes on" else 0)
        learn_all(Learner(config))
        found.append((current_of(config).cut.seq, current_of(config).hash))

    assert found[0] == found[1]
    assert found[0][0] == 71  # of 80


def test_the_lag_is_reported_while_a_version_is_due(tmp_path: Path, log: LittleLog) -> None:
    config = little_config(tmp_path)
    seen: list[dict[str, object]] = []

    def reached(step: str) -> None:
        if step == "trained":
            seen.append(json.loads((tmp_path / "learner.json").read_text()))

    log.decide(20)
    log.let_pass(7)
    learn_all(Learner(config, reached=reached))

    assert [one["lag_seconds"] for one in seen] == [7.0]
    last = json.loads((tmp_path / "learner.json").read_text())
    assert (last["lag_seconds"], last["measured_at"]) == (0.0, None)
