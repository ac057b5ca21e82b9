"""An exploration turns any linear model into scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.baselines.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.baselines.ridge import DisjointRidge, LinearModel, Prior, SharedRidge
from fastbandit.errors import SettingError
from fastbandit.noise.philox import decision_seeds

CONTEXTS = np.random.default_rng(1).normal(size=(5, 3))
SEEDS = decision_seeds(0, 0, 5)


def models() -> list[LinearModel]:
    arms = np.random.default_rng(0).normal(size=(4, 2))
    rows, rewards = np.arange(5) % 4, np.arange(5.0)
    blank = [SharedRidge.blank(arms, 3, Prior(1.0)), DisjointRidge.blank(4, 3, Prior(1.0))]
    return [model.learn(CONTEXTS, rows, rewards) for model in blank]


@pytest.mark.parametrize("model", models(), ids=["shared", "disjoint"])
def test_a_width_or_scale_of_zero_is_greedy(model: LinearModel) -> None:
    greedy = Greedy().score(model, CONTEXTS, SEEDS)

    for exploration in (UpperConfidence(width=0.0), ThompsonSampling(scale=0.0)):
        assert np.allclose(exploration.score(model, CONTEXTS, SEEDS), greedy)


@pytest.mark.parametrize("model", models(), ids=["shared", "disjoint"])
def test_an_upper_bound_lies_so_many_deviations_above_the_mean(model: LinearModel) -> None:
    found = UpperConfidence(width=2.0).score(model, CONTEXTS, SEEDS)

    assert np.allclose(found, model.means(CONTEXTS) + 2.0 * model.stds(CONTEXTS))


def test_another_seed_is_another_draw() -> None:
    (model, _), draw = models(), ThompsonSampling()

    one, other = (draw.score(model, CONTEXTS, decision_seeds(seed, 0, 5)) for seed in (0, 1))

    assert not np.allclose(one, other)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "1"])
def test_widths_and_scales_out_of_range_are_rejected(wrong: Any) -> None:
    for make in (ThompsonSampling, UpperConfidence):
        with pytest.raises(SettingError, match=r"needs to be .* at least 0: got"):
            make(wrong)
