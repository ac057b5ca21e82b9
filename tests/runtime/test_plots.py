"""A figure shows reward so far, the arms chosen most, and what is expected of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fastbandit import Bandit, Box
from fastbandit.errors import SettingError
from fastbandit.runtime.plots import TOP, expected_of, most_chosen, rewards_so_far
from fastbandit.training.fit_reward import RewardFit
from fastbandit.types import Inputs, Interactions

CONTEXTS = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)


def short(bandit: Bandit) -> Bandit:
    """Let a bandit learn for a moment only."""
    training = replace(bandit._blueprint.training, reward=RewardFit(iterations=5))
    bandit._blueprint = replace(bandit._blueprint, training=training)
    return bandit


@pytest.fixture(scope="module")
def bandit() -> Bandit:
    arms = np.random.default_rng(1).normal(size=(30, 3))
    one = short(Bandit(arms=arms, context=2, seed=0, progress=False))
    rows = np.arange(40) % 30
    one.update(contexts=CONTEXTS, arms=rows, rewards=(rows % 2).astype(float))
    return one


@pytest.mark.parametrize("context", [None, [0.5, -0.5]])
def test_a_plot_has_three_parts(bandit: Bandit, context: list[float] | None) -> None:
    figure = bandit.plot(context)

    titles = [axes.get_title() for axes in figure.axes]
    whose = "the average context" if context is None else "the context"
    assert {"Reward", "Arms chosen most", f"Expected for {whose}"} <= set(titles)


def test_a_plot_of_a_box_shows_the_reward_alone() -> None:
    one = short(Bandit(arms=Box((0.0,), (1.0,)), context=2, progress=False))
    one.update(contexts=CONTEXTS, arms=np.full((40, 1), 0.5), rewards=np.ones(40))

    assert [axes.get_title() for axes in one.plot().axes] == ["Reward"]


def test_a_plot_needs_something_learned() -> None:
    with pytest.raises(SettingError, match=r"A plot needs a bandit that has learned"):
        Bandit(arms=np.eye(3), context=2).plot()


def test_the_arms_chosen_most_come_first_with_their_mean_reward() -> None:
    rows = np.array([5, 2, 2, *range(10, 40)])
    rewards = np.zeros(len(rows), dtype=np.float32)
    rewards[1] = 1.0
    nothing = Inputs(dense=np.zeros((len(rows), 1), dtype=np.float32))

    found, counts, means = most_chosen(Interactions(nothing, nothing, rewards, rows=rows))

    assert (found[0], counts[0], means[0]) == (2, 2, 0.5)
    assert len(found) == TOP


def test_rewards_are_averaged_over_even_parts() -> None:
    ends, means = rewards_so_far(np.arange(100.0))

    assert ends.tolist() == list(range(2, 101, 2))
    assert means.tolist() == [number + 0.5 for number in range(0, 100, 2)]


def test_what_is_expected_lies_among_the_draws(bandit: Bandit) -> None:
    found = expected_of(bandit.policy, Inputs(dense=CONTEXTS[:1]), np.array([0, 3, 7]))

    assert found.mean.shape == (3,)
    assert (found.low <= found.high).all()
