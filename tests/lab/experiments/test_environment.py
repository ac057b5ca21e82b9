"""A tabled environment shows each instance in the seed's order, and pays what its table says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fastbandit.errors import InputError, SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.types import Inputs
from lab.experiments.environment import Tabled, as_raw

TABLE = np.array([[0, 0.5, 0], [0.25, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0.75, 0]], np.float32)
"""What three arms are worth to five instances."""


def environment(table: Any = TABLE, **settings: Any) -> Tabled:
    """Make an environment whose contexts are the numbers of the instances."""
    contexts = np.arange(table.shape[0], dtype=np.float32)[:, None]
    return Tabled("little", Dense(1), Inputs(dense=contexts), table, **settings)


def wide(arms: int = 2, *, rounds: int = 4_000, worth: float = 0.0, **settings: Any) -> Tabled:
    return environment(np.full((rounds, arms), worth, np.float32), reward="real", **settings)


def order_of(env: Tabled) -> list[int]:
    """Return the instance of each round."""
    return [int(number) for number in env.contexts(0, env.rounds)[:, 0]]


def test_each_instance_comes_once_in_an_order_of_the_seeds_own() -> None:
    orders = [order_of(environment(seed=seed)) for seed in range(6)]

    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len({tuple(order) for order in orders}) > 3
    assert order_of(environment(seed=3)) == orders[3]


def test_instances_come_as_often_as_they_are_visited() -> None:
    env = environment(visits=np.array([1, 1, 4, 1]))

    assert env.rounds == 4
    assert sorted(order_of(env)) == [1, 1, 1, 4]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_rounds_are_the_same_for_any_batches(size: int) -> None:
    env = environment()
    starts = range(0, 5, size)

    contexts = [env.contexts(first, min(size, 5 - first)) for first in starts]
    ceilings = [env.ceiling(first, min(size, 5 - first)) for first in starts]

    assert np.array_equal(np.concatenate(contexts), env.contexts(0, 5))
    assert np.array_equal(np.concatenate(ceilings), env.ceiling(0, 5))


@pytest.mark.parametrize("table", [TABLE, csr_matrix(TABLE)], ids=["dense", "sparse"])
def test_what_is_expected_stands_in_the_table(table: Any) -> None:
    env, order = environment(table), order_of(environment())
    rows = np.array([0, 1, 2, 1, 0])

    assert env.size == 3
    assert np.array_equal(env.expected(0, rows), TABLE[order, rows])
    assert np.array_equal(env.expected(2, rows[2:]), TABLE[order, rows][2:])
    assert env.expected(0, rows).dtype == np.float64


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_the_ceiling_is_the_best_arm_of_each_round(make: Any, sign: int) -> None:
    env = environment(make(sign * TABLE), reward="real")

    every = [env.expected(0, np.full(5, row)) for row in range(3)]

    assert env.ceiling(0, 5).shape == (5,)
    assert np.array_equal(env.ceiling(0, 5), np.max(every, axis=0))


@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_the_best_arm_earns_most_in_the_rounds_given_and_no_others(make: Any) -> None:
    found = set()
    for seed in range(8):
        env = environment(make(TABLE), seed=seed)
        for rounds in (1, 2, 5):
            sums = [env.expected(0, np.full(rounds, row)).sum() for row in range(3)]
            assert sums[env.best_arm(rounds)] == max(sums)
            found.add(env.best_arm(rounds))

    assert found == {0, 1, 2}


def test_binary_rewards_come_as_often_as_expected() -> None:
    env = environment(np.full((4_000, 1), 0.3, np.float32))

    rewards = env.observed(0, np.zeros(4_000, dtype=np.int64))

    assert set(rewards) == {0.0, 1.0}
    assert rewards.mean() == pytest.approx(0.3, abs=0.02)


def test_the_draw_of_a_binary_reward_depends_on_the_round_alone() -> None:
    env = environment(np.tile(np.array([0.2, 0.6], np.float32), (200, 1)))
    low, high = (env.observed(0, np.full(200, row)) for row in (0, 1))

    assert (high >= low).all()
    assert np.array_equal(env.observed(50, np.ones(150, dtype=np.int64)), high[50:])
    other = environment(env.expected_rewards, seed=1)
    assert not np.array_equal(other.observed(0, np.ones(200, dtype=np.int64)), high)


def test_certain_rewards_are_never_drawn_differently() -> None:
    env = environment(np.tile(np.array([0, 1], np.float32), (500, 1)))

    assert not env.observed(0, np.zeros(500, dtype=np.int64)).any()
    assert env.observed(0, np.ones(500, dtype=np.int64)).all()


def test_real_rewards_are_seen_as_they_are_without_noise() -> None:
    env = environment(reward="real")
    rows = np.array([0, 1, 2, 1, 0])

    assert np.array_equal(env.observed(0, rows), env.expected(0, rows))


def test_real_rewards_have_the_noise_asked_for() -> None:
    env = wide(noise=0.5, worth=3.0)

    rewards = env.observed(0, np.zeros(4_000, dtype=np.int64))

    assert rewards.mean() == pytest.approx(3.0, abs=0.03)
    assert rewards.std() == pytest.approx(0.5, rel=0.05)


def test_noise_depends_on_the_round_and_the_seed_alone() -> None:
    rows = np.arange(20) % 2
    env, other = wide(rounds=20, noise=0.5), wide(rounds=20, noise=0.5, seed=1)

    noise = env.observed(0, rows)

    assert len(set(noise)) == 20
    assert np.array_equal(env.observed(5, 1 - rows[5:]), noise[5:])
    assert not np.isin(other.observed(0, rows), noise).any()


def test_noise_changes_nothing_about_binary_rewards() -> None:
    rows = np.array([0, 1, 2, 1, 0])

    assert np.array_equal(environment(noise=9.0).observed(0, rows), environment().observed(0, rows))


def test_what_is_expected_has_no_noise() -> None:
    assert not wide(rounds=20, noise=0.5).expected(0, np.zeros(20, dtype=np.int64)).any()


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_noise_is_a_deviation(noise: float) -> None:
    with pytest.raises(SettingError, match=f"at least 0: got {noise}"):
        environment(noise=noise)


def test_every_instance_needs_its_rewards() -> None:
    with pytest.raises(InputError, match=r"got 5 instances and rewards of shape \(4, 3\)"):
        Tabled("little", Dense(1), Inputs(dense=np.zeros((5, 1), np.float32)), TABLE[:4])


@pytest.mark.parametrize(("first", "count"), [(0, 6), (4, 2), (5, 1)])
def test_a_round_after_the_last_is_refused(first: int, count: int) -> None:
    message = f"little has 5 rounds: got round {first + count - 1}. Play fewer"

    for ask in (environment().contexts, environment().ceiling):
        with pytest.raises(SettingError, match=message):
            ask(first, count)
    with pytest.raises(SettingError, match=message):
        environment().observed(first, np.zeros(count, dtype=np.int64))


@pytest.mark.parametrize("row", [-1, 3])
@pytest.mark.parametrize("table", [TABLE, csr_matrix(TABLE)], ids=["dense", "sparse"])
def test_an_arm_that_is_not_there_is_refused(table: Any, row: int) -> None:
    env = environment(table)

    for ask in (env.expected, env.observed):
        with pytest.raises(InputError, match=rf"from 0 to 2: got {row}\. Leave out"):
            ask(0, np.array([0, row]))


BAGS = csr_matrix(np.array([[1, 0, 0, 2], [0, 3, 0, 0]], np.float32))
PAIRS = np.array([[1, 2], [3, 4]], np.float32)
NUMBERS = np.array([4, 0])
KINDS: dict[str, tuple[Any, Inputs]] = {
    "dense": (Dense(2), Inputs(dense=PAIRS)),
    "sparse": (Sparse(4), Inputs(sparse=BAGS)),
    "image": (Image(8, 9), Inputs(dense=np.ones((2, 8, 9), np.float32))),
    "ids": (Ids(5), Inputs(ids=NUMBERS)),
    "dense and ids": (FeaturesAndIds(Dense(2), Ids(5)), Inputs(dense=PAIRS, ids=NUMBERS)),
    "sparse and ids": (FeaturesAndIds(Sparse(4), Ids(5)), Inputs(sparse=BAGS, ids=NUMBERS)),
}


def plain(inputs: Inputs) -> list[Any]:
    """Return all parts as lists, to be compared."""
    bags = None if inputs.sparse is None else inputs.sparse.toarray()
    parts = (inputs.dense, bags, inputs.ids)
    return [None if part is None else part.tolist() for part in parts]


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_in_raw_form_read_back_as_they_were(kind: str) -> None:
    features, inputs = KINDS[kind]

    assert plain(features.read(as_raw(inputs), what="contexts")) == plain(inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_an_environment_shows_instances_of_any_kind(kind: str) -> None:
    features, inputs = KINDS[kind]
    env = Tabled("little", features, inputs, TABLE[:2])

    seen = features.read(env.contexts(1, 1), what="contexts")

    picked = [one for one in range(2) if plain(seen) == plain(inputs.take(np.array([one])))]
    assert env.ceiling(1, 1)[0] in {TABLE[one].max() for one in picked}
    assert picked
