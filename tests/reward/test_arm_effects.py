"""Arms' own linear models have exact posteriors, and widths that do not collapse."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.reward import arm_effects
from fastbandit.reward.arm_effects import ArmEffects, Priors, Seen

SIZE = 4


def seen(count: int, *, arms: int = 5, seed: int = 0, noise: float = 0.1) -> Seen:
    """Return interactions of arms whose own weights are their number in one direction."""
    rng = np.random.default_rng(seed)
    z = np.c_[np.ones(count), rng.normal(size=(count, SIZE - 1)) / np.sqrt(SIZE - 1)]
    rows = rng.integers(arms, size=count)
    rewards = 0.5 + rows * z[:, 1] + noise * rng.normal(size=count)
    return Seen(z, rows, rewards, np.ones(count))


def joint_solution(some: Seen, effects: ArmEffects, widths: tuple[float, float]) -> np.ndarray:
    """Solve for shared and own weights at once: one ridge regression on all columns."""
    arms = len(effects.means)
    design = np.zeros((len(some.rows), SIZE * (arms + 1)))
    design[:, :SIZE] = some.z
    for place, row in enumerate(some.rows):
        design[place, SIZE * (row + 1) : SIZE * (row + 2)] = some.z[place]
    own = np.r_[1 / widths[0] ** 2, np.full(SIZE - 1, 1 / widths[1] ** 2)]
    shared = np.r_[1e-9, np.full(SIZE - 1, 1 / 0.3**2)]
    penalty = np.diag(np.r_[shared, np.tile(own, arms)])
    precision = design.T @ design / effects.noise + penalty
    return np.linalg.solve(precision, design.T @ some.rewards / effects.noise)


def test_weights_are_those_of_one_regression_on_all_columns() -> None:
    some = seen(400)

    found = ArmEffects.fit(some, 5, priors=Priors(), before=(0.1, 0.8))

    wanted = joint_solution(some, found, (0.1, 0.8)).reshape(-1, SIZE)
    assert np.allclose(found.shared, wanted[0], atol=1e-6)
    assert np.allclose(found.means, wanted[1:], atol=1e-6)


def test_an_arm_s_deviations_are_those_of_its_own_posterior() -> None:
    some = seen(200)

    found = ArmEffects.fit(some, 5, priors=Priors(), before=(0.1, 0.8))

    mine = some.z[some.rows == 2]
    prior = np.diag([1 / 0.1**2, *[1 / 0.8**2] * (SIZE - 1)])
    covariance = np.linalg.inv(mine.T @ mine / found.noise + prior)
    assert np.allclose(found.deviations[2], np.sqrt(np.diagonal(covariance)))


def test_the_order_of_interactions_changes_nothing_beyond_rounding() -> None:
    some = seen(300)
    order = np.random.default_rng(1).permutation(300)
    other = Seen(some.z[order], some.rows[order], some.rewards[order], some.weights)

    one, two = (ArmEffects.fit(each, 5, priors=Priors()) for each in (some, other))

    assert np.allclose(one.means, two.means, atol=1e-9)
    assert np.allclose(one.deviations, two.deviations, atol=1e-9)


def test_an_interaction_that_counts_twice_is_one_that_came_twice() -> None:
    some = seen(100)
    doubled = Seen(
        *(np.concatenate([part, part]) for part in (some.z, some.rows, some.rewards)),
        weights=np.ones(200),
    )
    weighed = Seen(some.z, some.rows, some.rewards, np.full(100, 2.0))

    one, two = (ArmEffects.fit(each, 5, priors=Priors()) for each in (doubled, weighed))

    assert np.allclose(one.means, two.means)


@pytest.mark.parametrize("each", [1, 2, 3])
def test_widths_do_not_collapse_on_arms_seen_a_few_times(each: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(50), each)
    z = np.c_[np.ones(len(rows)), rng.normal(size=(len(rows), 3))]
    widths = None
    for _ in range(30):
        rewards = (rng.random(len(rows)) < 0.1).astype(float)
        found = ArmEffects.fit(
            Seen(z, rows, rewards, np.ones(len(rows))), 50, priors=Priors(), before=widths
        )
        widths = found.widths

    assert min(found.widths) > 0.01


def test_arms_that_all_earn_alike_shrink_together() -> None:
    rng = np.random.default_rng(0)
    z = np.c_[np.ones(4_000), rng.normal(size=(4_000, 3))]
    rows, widths = rng.integers(20, size=4_000), None
    rewards = 0.3 + z[:, 1] + 0.1 * rng.normal(size=4_000)
    for _ in range(20):
        found = ArmEffects.fit(
            Seen(z, rows, rewards, np.ones(4_000)), 20, priors=Priors(), before=widths
        )
        widths = found.widths

    assert np.abs(found.means).max() < 0.1
    assert found.shared[1] == pytest.approx(1.0, abs=0.1)


def test_of_many_arms_that_were_never_chosen_only_a_few_take_part() -> None:
    some = seen(400, arms=10)

    found = ArmEffects.fit(some, 5_000, priors=Priors())

    is_wide = found.deviations[:, 0] > 0
    assert is_wide[:10].all()
    assert is_wide[10:].sum() == 20  # the root of 400
    assert (found.means[~is_wide, 0] < 0).all()
    assert len(np.unique(found.means[~is_wide, 0])) > 4_900


def test_an_arm_that_comes_later_has_the_prior() -> None:
    found = ArmEffects.fit(seen(100), 5, priors=Priors())

    means, deviations = found.of(np.array([0, 7]))

    assert (means[1] == 0).all()
    assert np.array_equal(deviations[1], found.prior)
    assert np.array_equal(means[0], found.means[0])


def test_arms_beyond_the_most_that_weigh_have_a_constant_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arm_effects, "WEIGHING", 2)
    some = seen(300)

    found = ArmEffects.fit(some, 5, priors=Priors())

    weighs = (found.deviations[:, 1:] > 0).all(axis=1)
    often = np.argsort(-np.bincount(some.rows))[:2]
    assert set(np.flatnonzero(weighs)) == set(often)
    assert (found.deviations[:, 0] > 0).all()
