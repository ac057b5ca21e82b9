"""KernelUCB: kernel regression through a few interactions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import LinUCB
from fastbandit.errors import SettingError
from lab.baselines import KernelUCB
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.run import run

WORLD = SyntheticRounds("h1", 3, 40, noise=0.3, seed=1)
CURVED = SyntheticRounds("h2", 2, 60, noise=0.3, seed=1)


def trained(
    make: type[Any], world: SyntheticRounds = WORLD, *, batches: int = 1, **more: Any
) -> Any:
    bandit = make(arms=world.arms, context=world.dim, **more)
    for first in range(0, 60 * batches, 60):
        contexts, rows = world.contexts(first, 60), np.arange(first, first + 60) * 7 % world.size
        rewards: Any = world.observed(first, rows)
        rewards = rewards > 0 if more.get("reward") == "binary" else rewards
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)
    return bandit


def exact(bandit: Any, seen: Any, contexts: Any) -> tuple[Any, Any]:
    """Give means and deviations of kernel ridge regression on all pairs seen."""
    model, (old, rows, rewards) = bandit._model, seen
    arms = np.asarray(CURVED.arms, dtype=np.float64)

    def gauss(one: Any, two: Any, unit: float) -> Any:
        gaps = np.square(one[:, None] - two[None]).sum(2)
        return np.exp(-0.5 * gaps / (model.length * unit) ** 2)

    among = gauss(old, old, model.unit) * gauss(arms[rows], arms[rows], model.arm_unit)
    inverse = np.linalg.inv(among + model.ridge * np.eye(len(rows)))
    alike = gauss(contexts, old, model.unit)[:, None] * gauss(arms, arms[rows], model.arm_unit)
    known = np.einsum("bni,ij,bnj->bn", alike, inverse, alike)
    return alike @ inverse @ rewards, np.sqrt(np.maximum(1.0 - known, 0.0))


def test_means_and_deviations_are_nearly_those_of_all_interactions() -> None:
    bandit = trained(KernelUCB, CURVED, length=0.7)
    contexts, rows = np.asarray(CURVED.contexts(0, 60), float), np.arange(60) * 7 % 60
    fresh = np.asarray(CURVED.contexts(500, 5), dtype=np.float64)

    means, stds = exact(bandit, (contexts, rows, CURVED.observed(0, rows)), fresh)

    assert len(bandit._model.stored.rows) < 60
    assert np.abs(bandit._model.means(fresh) - means).mean() < 0.05 * means.std()
    assert np.abs(bandit._model.stds(fresh) - stds).max() < 0.15


def test_no_more_interactions_stay_than_asked_for_and_none_wait_then() -> None:
    model = trained(KernelUCB, CURVED, batches=3, length=0.2, points=25)._model

    assert len(model.stored.rows) == len(model.moment) == 25
    assert len(model.waiting.rows) == 0
    more = model.learn(model.stored.contexts, model.stored.rows, model.stored.rewards)
    assert len(more.stored.rows) == 25
    assert not np.array_equal(more.moment, model.moment)


def test_a_curved_function_is_learned_that_no_linear_policy_can() -> None:
    def share(make: type[Any], **more: Any) -> float:
        return run(CURVED, make(arms=CURVED.arms, context=2, **more), rounds=600, batch=100).share

    assert share(KernelUCB, length=0.5) > share(LinUCB) + 0.15


@pytest.mark.parametrize("wrong", [{"points": 0}, {"length": 0.0}, {"width": -1.0}])
def test_settings_that_make_no_sense_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="needs"):
        KernelUCB(arms=WORLD.arms, context=3, **wrong)
