"""Gaussian-process bandits: what is believed, what is pretended, what is drawn."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import MissingExtraError, SettingError
from lab.baselines import GaussianProcessTS, GaussianProcessUCB, gaussian_process
from lab.baselines.gaussian_process import Candidates, Kernel, Posterior, fit_kernel
from lab.baselines.points import cover
from lab.experiments.continuum import Continuum
from lab.experiments.run import run

pytest.importorskip("sklearn")

LINE = Box((0.0,), (1.0,))


def kernel(*, noise: float = 0.01, length: float = 0.2) -> Kernel:
    return Kernel(1.0, np.array([length]), noise)


def posterior(points: Any, rewards: Any, counts: Any = None, **settings: Any) -> Posterior:
    points = np.asarray(points, dtype=np.float64)[:, None]
    counts = np.ones(len(points)) if counts is None else np.asarray(counts, dtype=np.float64)
    return Posterior(kernel(**settings), points, np.asarray(rewards, dtype=np.float64), counts)


def ones(count: int) -> Any:
    return np.ones((count, 1))


# -- what is believed


def test_the_posterior_is_that_of_scikit_learn() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    points, rewards = np.array([0.1, 0.4, 0.45, 0.9]), np.array([0.0, 1.0, 0.8, 0.3])
    other = GaussianProcessRegressor(Matern(0.2, nu=2.5), alpha=0.01, optimizer=None)
    other.fit(points[:, None], rewards - rewards.mean())

    ours = Candidates(posterior(points, rewards), cover(50, 1))

    means, stds = other.predict(cover(50, 1), return_std=True)
    assert np.allclose(ours.means, means + rewards.mean(), atol=1e-6)
    assert np.allclose(np.sqrt(ours.variances), stds, atol=1e-5)


def test_averaged_rewards_say_as_much_as_the_rewards_themselves() -> None:
    each = posterior([0.2, 0.2, 0.2, 0.7], [0.0, 0.6, 0.9, 0.1])
    averaged = posterior([0.2, 0.7], [0.5, 0.1], [3, 1])

    one, two = (Candidates(p, cover(20, 1)) for p in (each, averaged))

    assert np.allclose(one.means, two.means, atol=1e-5)
    assert np.allclose(one.variances, two.variances, atol=1e-5)


def test_of_many_points_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "_STORED_POINTS", 30)
    points, rewards = cover(100, 1), np.arange(100.0)

    found, means, counts = gaussian_process._distinct(points, rewards, seed=1)
    again = gaussian_process._distinct(points, rewards, seed=1)
    other = gaussian_process._distinct(points, rewards, seed=2)

    assert len(found) == len(means) == len(counts) == 30
    assert np.array_equal(found, again[0])
    assert not np.array_equal(found, other[0])
    assert np.allclose(means, 99 * found[:, 0])


def test_lengths_and_noise_are_found_from_rewards(numbers: np.random.Generator) -> None:
    points = numbers.random((200, 2))
    rewards = np.sin(12 * points[:, 0]) + 0.1 * numbers.normal(size=200)

    found = fit_kernel(points, rewards, start=None)

    assert found.noise == pytest.approx(0.01, rel=0.4)
    assert found.lengths[0] < 0.5
    assert found.lengths[1] > 2.0


def test_a_fit_uses_at_most_so_many_rewards_the_first_among_them() -> None:
    rows = gaussian_process._fit_rows(5_000)

    assert len(rows) == len(set(rows.tolist())) == 300
    assert rows[:150].tolist() == list(range(150))
    assert rows[-1] == 4_999


def test_a_kernel_stays_until_there_are_half_as_many_rewards_again() -> None:
    bandit = GaussianProcessUCB(box=LINE)
    kernels = []
    for count in (20, 5, 5):
        arms = bandit.select(ones(count)).arms
        bandit.update(contexts=ones(count), arms=arms, rewards=np.sin(9 * arms[:, 0]))
        kernels.append(bandit._kernel)

    assert kernels[0] is kernels[1]
    assert kernels[1] is not kernels[2]


# -- what is pretended


def test_a_fantasy_reward_changes_variances_as_a_reward_would() -> None:
    before = Candidates(posterior([0.3], [0.5]), cover(40, 1))
    picked, _ = before.pick(2, width=2.0, repeats=1)

    first = float(before.points[picked[0], 0])
    after = Candidates(posterior([0.3, first], [0.5, 0.5]), before.points)
    expected = (before.means + 2.0 * np.sqrt(after.variances)).argmax()

    assert picked[1] == expected


def test_a_batch_spreads() -> None:
    candidates = Candidates(posterior([0.5], [1.0], noise=0.1, length=0.1), cover(1000, 1))

    picked, bounds = candidates.pick(30, width=2.0, repeats=1)

    assert len(set(picked)) > 20
    assert (np.diff(bounds) <= 1e-9).all()


def test_of_a_large_batch_several_decisions_share_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "_PICKS", 8)
    bandit = GaussianProcessUCB(box=LINE)
    bandit.update(contexts=ones(3), arms=[[0.1], [0.5], [0.9]], rewards=[0.0, 1.0, 0.0])

    arms = bandit.select(ones(20)).arms

    assert len(np.unique(arms)) <= 7
    assert np.array_equal(arms[:6], arms[7:13])


# -- what is drawn


def test_draws_vary_as_the_posterior_does() -> None:
    candidates = Candidates(posterior([0.2, 0.6], [0.0, 1.0]), cover(6, 1))
    root = candidates.covariance_root

    assert np.allclose(np.diag(root @ root.T), candidates.variances, atol=1e-6)


def test_a_wider_posterior_spreads_the_draws() -> None:
    spreads = []
    for scale in (0.0, 0.3, 1.0):
        bandit = GaussianProcessTS(box=LINE, scale=scale)
        bandit.update(contexts=ones(3), arms=[[0.1], [0.5], [0.9]], rewards=[0.0, 1.0, 0.2])
        spreads.append(bandit.select(ones(50)).arms.std())

    assert spreads[0] < 1e-6
    assert spreads[0] < spreads[1] < spreads[2]


# -- on known functions


@pytest.mark.parametrize("make", [GaussianProcessUCB, GaussianProcessTS])
def test_the_highest_peak_of_the_sines_is_found(make: Any) -> None:
    world = Continuum("sines", noise=0.1)
    played = run(world, make(box=world.arms), rounds=300, batch=50)

    assert played.rewards[-50:].mean() > 0.95 * played.best[0]


def test_in_two_dimensions_the_look_comes_ever_closer() -> None:
    world = Continuum("branin", noise=0.0)
    bandit = GaussianProcessUCB(box=world.arms)
    for first in (0, 40, 80):
        arms = bandit.select(ones(40)).arms
        rewards = world.observed(first, arms)
        bandit.update(contexts=ones(40), arms=arms, rewards=rewards)

    assert world.expected(0, bandit.select(ones(1), explore=False).arms)[0] > 0.995


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (GaussianProcessUCB, {"width": -1.0}),
        (GaussianProcessTS, {"width": np.nan}),
        (GaussianProcessTS, {"scale": -0.1}),
    ],
)
def test_settings_out_of_range_are_rejected(make: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        make(box=LINE, **settings)


def test_without_scikit_learn_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.gaussian_process", None)
    bandit = GaussianProcessUCB(box=LINE)

    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[lab\]'"):
        bandit.update(contexts=ones(2), arms=[[0.1], [0.2]], rewards=[0.0, 1.0])

    assert bandit.select(ones(1)).uniform
