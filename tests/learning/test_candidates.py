"""A candidate learns what its training job holds, but for what is held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from little_service import LittleLog, current_of, learn_all, little_config, store_of

from fastbandit import Bandit
from fastbandit.arms.offers import offer_name
from fastbandit.learning.candidates import (
    Candidate,
    TrainingData,
    TrainingJob,
    held_out_of,
    publish_candidate,
    refusal_of,
    train_candidate,
    train_here,
)
from fastbandit.learning.joining import Interaction, Joiner
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import ArmsConfig, Config, LearnConfig
from fastbandit.storage.events import Arm
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog

LENIENT = LearnConfig(min_quality=0.0)


def job_of(config: Config, folder: Path, *, held_out: int) -> TrainingJob:
    """Return a job of twelve interactions for the version after the first."""
    LittleLog(folder).decide(12)
    joiner = Joiner()
    for event in SqliteLog(folder / "events.db", is_reader=True).read():
        joiner.feed(event)
    return TrainingJob(current_of(config), 1, joiner.interactions, [], held_out)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = little_config(tmp_path)
    learn_all(Learner(config))
    return config


@pytest.mark.parametrize(
    ("count", "share", "held"), [(10, 0.2, 2), (3, 0.2, 0), (10**6, 0.5, 1000)]
)
def test_a_share_is_held_out_up_to_a_thousand(count: int, share: float, held: int) -> None:
    assert held_out_of(count, share) == held


def test_what_is_held_out_is_not_learned(config: Config, tmp_path: Path) -> None:
    steps: list[str] = []
    seen: list[TrainingData] = []

    def train(bandit: Bandit, data: TrainingData, curve: object) -> Bandit:
        seen.append(data)
        return train_here(bandit, data, lambda steps, loss: None)

    job = job_of(config, tmp_path, held_out=3)
    candidate = train_candidate(job, reached=steps.append, train=train)

    assert (len(seen[0].rewards), seen[0].version) == (9, 1)
    assert (candidate.bandit.version, candidate.notes["learned"]) == (1, 9)
    assert candidate.checks.held_out == 3
    assert steps == ["trained", "checked"]


def test_a_candidate_is_published_with_its_columns(config: Config, tmp_path: Path) -> None:
    steps: list[str] = []
    job = job_of(config, tmp_path, held_out=0)
    candidate = train_candidate(job, reached=lambda step: None)
    cut = Cut(24, 1, 24, 12)

    publish_candidate(store_of(config), job, candidate, cut=cut, reached=steps.append)

    current = current_of(config)
    assert (current.version, current.parent, current.cut) == (1, 0, cut)
    assert candidate.bandit.columns is not None
    assert steps[:2] == ["saved bandit", "saved frozen"]


def test_a_candidate_that_may_serve_is_not_refused(config: Config, tmp_path: Path) -> None:
    job = job_of(config, tmp_path, held_out=0)
    candidate = train_candidate(job, reached=lambda step: None)
    strict = LearnConfig(min_quality=1.0)
    checks = replace(candidate.checks, quality=0.5)
    worse = Candidate(candidate.bandit, checks, {"learned": 12})

    assert refusal_of(job, candidate, LENIENT, cut=Cut()) is None
    report = refusal_of(job, worse, strict, cut=Cut(7))
    assert report is not None
    assert (report["parent"], report["cut"]["seq"], report["learned"]) == (0, 7, 12)
    assert "quality q of at least 1" in report["reason"]


def test_training_here_is_an_update(config: Config) -> None:
    bandit = Bandit.load(current_of(config).bandit)
    curve: list[int] = []
    arms = ["arm 0", "arm 1", "arm 2"]
    data = TrainingData(np.ones((3, 2), dtype=np.float32), arms, np.ones(3), 4)

    trained = train_here(bandit, data, lambda steps, loss: curve.append(steps))

    assert trained.version == 4
    assert curve


def test_an_arm_that_comes_again_is_learned_as_it_is_read_now(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    config = replace(config, arms=ArmsConfig(any_names=True))
    learn_all(Learner(config))
    features = [{"id": f"x{n}"} for n in range(12)]
    offers = [Arm(offer_name(one["id"], one), one) for one in features]

    for version, times in ((1, 1), (2, 3)):  # what is seen once has no slot
        some = [
            Interaction(n, n, 0, [0.1 * n, 1.0], arm.id, float(n % 2))
            for n, arm in enumerate(offers * times)
        ]
        parent = current_of(config)
        job = TrainingJob(parent, version, some, [], 0, offers=offers)
        candidate = train_candidate(job, reached=lambda step: None)
        terms = {"cut": Cut(version), "reached": lambda step: None}
        publish_candidate(store_of(config), job, candidate, **terms)

    bandit = candidate.bandit
    schema, arms = bandit.blueprint.arm.schema, bandit.policy.arms
    assert len(schema.others.levels) == 12
    rows = arms.table.rows([arm.id for arm in offers])
    now = schema.encode(features)
    assert np.array_equal(arms.features.take(rows).dense, now)
    assert bandit.history is not None
    assert np.array_equal(bandit.history.arms.dense, now[np.tile(np.arange(12), 4)])
