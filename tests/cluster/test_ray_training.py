"""Workers of Ray train a bandit as one process would, and return it whole."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastbandit import Bandit
from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.partitions import build_partitions
from fastbandit.cluster.engine import Engine
from fastbandit.cluster.ray_training import RayTraining, _fitted, packed, unpacked
from fastbandit.errors import FastbanditError, NotFiniteError
from fastbandit.learning.candidates import TrainingData, train_here
from fastbandit.settings.files import Settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray warns of itself
SHORT = {
    "training.reward": {"iterations": 300, "batch": 64},
    "training.generator": {"iterations": 100, "batch": 64, "pairs": 256, "sample": 64},
}


def bandit() -> Bandit:
    features = np.random.default_rng(5).normal(size=(90, 2)).astype(np.float32)
    features[:, 0] = np.arange(90) / 20
    preset = Settings(sections=SHORT)
    return Bandit(
        arms=features, context=3, reward="real", seed=1, search="generator", preset=preset
    )


def data(rounds: int) -> TrainingData:
    rng = np.random.default_rng(3)
    contexts = rng.normal(size=(rounds, 3)).astype(np.float32)
    arms = rng.integers(90, size=rounds)
    rewards = np.cos(contexts[:, 0] + arms / 20) + 0.1 * rng.normal(size=rounds)
    return TrainingData(contexts, arms.tolist(), rewards, version=4)


def ignore(steps: int, loss: float) -> None:
    pass


def test_workers_learn_together_what_one_learns_alone(ray_engine: Engine) -> None:
    curve: list[int] = []
    before = bandit()
    alone = train_here(bandit(), data(400), ignore)
    together = RayTraining(ray_engine.workers)(
        before, data(400), lambda steps, loss: curve.append(steps)
    )

    contexts = data(450).contexts[400:]
    assert (before.version, together.version) == (0, 4)
    assert curve == [50, 100, 150, 200, 250, 300]
    assert together.audit(contexts).quality == pytest.approx(
        alone.audit(contexts).quality, abs=0.05
    )
    gap = (
        together.select(contexts, explore=False).scores
        - alone.select(contexts, explore=False).scores
    )
    assert np.abs(gap).mean() < 0.3


@dataclass
class Deadly:
    """Contexts that kill one worker, the first time that they are read."""

    contexts: Any
    mark: Path

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if torch.distributed.get_rank() == 1 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.asarray(self.contexts, dtype=dtype)


def test_where_a_worker_dies_all_begin_again_and_learn_the_same(
    ray_engine: Engine, tmp_path: Path
) -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers know no tests
    fresh = data(60)
    deadly: Any = Deadly(fresh.contexts, tmp_path / "died")
    training = RayTraining(ray_engine.workers, storage=str(tmp_path))
    died = training(bandit(), replace(fresh, contexts=deadly), ignore)
    lived = training(bandit(), fresh, ignore)

    assert deadly.mark.exists()
    ours, theirs = (one.policy.model.state_dict() for one in (died, lived))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_index_comes_back_with_the_bandit(ray_engine: Engine) -> None:
    learned = RayTraining(ray_engine.workers)(bandit(), data(60), ignore)
    lookup = learned.policy.arms.lookup  # type: ignore[union-attr]
    assert lookup is not None

    wanted = build_partitions(lookup.vectors.numpy())
    assert {"partitions", "near"} <= vars(lookup).keys()
    assert np.array_equal(lookup.partitions.order, wanted.order)
    assert np.array_equal(lookup.near, neighbour_graph(wanted))


def test_a_bandit_travels_as_its_files() -> None:
    one = train_here(bandit(), data(60), ignore)
    other = unpacked(packed(one))

    contexts = data(5).contexts
    assert other.version == 4
    assert other.select(contexts).arms == one.select(contexts).arms


class Failing:
    """Stands for Ray Train, whose workers failed."""

    class TrainingFailedError(Exception):
        worker_failures: dict[int, Exception]

    def __init__(self, *failures: Exception) -> None:
        self.error = self.TrainingFailedError("all is lost")
        self.error.worker_failures = dict(enumerate(failures))

    def fit(self) -> Any:
        raise self.error


def test_what_workers_refuse_is_said_as_they_said_it() -> None:
    failing = Failing(RuntimeError("gone"), NotFiniteError("Rewards need finite numbers."))

    with pytest.raises(NotFiniteError, match="finite"):
        _fitted(failing, failing)


@pytest.mark.parametrize("failures", [(), (RuntimeError("all is lost"),)])
def test_workers_that_fail_again_and_again_are_named(failures: tuple[Exception, ...]) -> None:
    failing = Failing(*failures)

    with pytest.raises(FastbanditError, match=r"failed 3 times \(all is lost\)"):
        _fitted(failing, failing)
