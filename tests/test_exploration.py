"""Greedy, upper confidence and Thompson sampling, on a bowl whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import BowlReward, seeds_of, vectors_of

from fastbandit import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.errors import SettingError
from fastbandit.interfaces import Exploration
from fastbandit.noise.philox import Stream, uniforms
from fastbandit.testing.explorations import check_exploration

CONTEXTS = torch.from_numpy(vectors_of(4, 2))
ARMS = torch.from_numpy(vectors_of(9, 2, seed=1))
BOWL = BowlReward(2, posterior=0.5)
ALL: list[Exploration] = [Greedy(), UpperConfidence(2.0), ThompsonSampling(0.5)]


@pytest.mark.parametrize("exploration", ALL)
def test_explorations_keep_their_laws_on_a_bowl(exploration: Exploration) -> None:
    check_exploration(exploration, BOWL, CONTEXTS, ARMS, seeds=seeds_of(4))


def test_upper_confidence_adds_width_times_doubt() -> None:
    score = UpperConfidence(2.0).score(BOWL, CONTEXTS, seeds=seeds_of(4))

    assert torch.allclose(score(ARMS[None]), BOWL.mean(CONTEXTS)(ARMS[None]) + 1.0)


def test_thompson_sampling_draws_from_the_seeds_alone() -> None:
    score = ThompsonSampling(1.0).score(BOWL, CONTEXTS, seeds=seeds_of(4))

    numbers = torch.from_numpy(uniforms(seeds_of(4), 2, Stream.POSTERIOR))
    assert torch.allclose(score.noise, 0.5 * (2 * numbers - 1))


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_a_strength_is_a_finite_number_of_at_least_0(bad: float) -> None:
    for make in (UpperConfidence, ThompsonSampling):
        with pytest.raises(SettingError, match=f"got {bad}"):
            make(bad)
