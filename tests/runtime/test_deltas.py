"""A frozen bandit takes new constants of its arms, and decides as the one that learned them."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
from fakes import vectors_of
from numpy.typing import NDArray

from fastbandit import Bandit, FrozenBandit
from fastbandit.errors import InputError, NotFiniteError, SettingError, ShapeError
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.settings.presets import settings_for

ARMS = 700
CONTEXTS = vectors_of(400, 4, seed=2)
LATER = vectors_of(60, 4, seed=7)
Rows = NDArray[np.int64]


def bandit_of(**more: object) -> Bandit:
    """Make a bandit that learned a little of many arms."""
    short = {"training.reward": {"iterations": 20}, "training.generator": {"iterations": 10}}
    bandit = Bandit(
        arms=vectors_of(ARMS, 3, seed=1),
        context=4,
        reward="real",
        seed=3,
        search="exhaustive",
        preset=settings_for("default").merged(short),
        **more,
    )
    taken = np.random.default_rng(0).integers(ARMS, size=len(CONTEXTS))
    bandit.update(contexts=CONTEXTS, arms=taken, rewards=CONTEXTS[:, 0] + taken % 3)
    return bandit


@pytest.fixture(scope="module")
def learned() -> Bandit:
    return bandit_of()


def observed(bandit: Bandit, seed: int) -> tuple[Bandit, Rows]:
    """Return a copy that observed some rewards, and the rows of their arms."""
    other = copy.copy(bandit)
    rows = np.random.default_rng(seed).integers(ARMS, size=len(LATER))
    other.observe(contexts=LATER, arms=rows, rewards=LATER[:, 1] + 3.0)
    return other, np.unique(rows)


def delta_of(bandit: Bandit, rows: Rows) -> tuple[Rows, NDArray[np.float64], NDArray[np.float64]]:
    model = bandit.policy.model
    assert isinstance(model, HierarchicalReward)
    assert model.own_constants is not None
    return rows, *model.own_constants.posterior(rows)


@pytest.mark.parametrize("explore", [True, False])
def test_it_chooses_what_the_bandit_that_learned_chooses(learned: Bandit, explore: bool) -> None:
    other, rows = observed(learned, 1)
    frozen, wanted = learned.freeze(), other.freeze()
    seeds = np.arange(len(CONTEXTS), dtype=np.uint64)
    before = frozen.select(CONTEXTS, explore=explore, seeds=seeds)

    frozen.apply_delta(*delta_of(other, rows))

    got = frozen.select(CONTEXTS, explore=explore, seeds=seeds)
    told = wanted.select(CONTEXTS, explore=explore, seeds=seeds)
    np.testing.assert_array_equal(got.rows, told.rows)
    np.testing.assert_allclose(got.scores, told.scores, rtol=1e-5)
    assert (got.rows != before.rows).any()


def test_arms_that_are_ids_get_other_weights() -> None:
    bandit = Bandit(ids=range(30), context=4, reward="real", seed=3)
    rows = np.random.default_rng(0).integers(30, size=len(CONTEXTS))
    bandit.update(contexts=CONTEXTS, arms=rows, rewards=CONTEXTS[:, 0] * (rows % 3))
    other, seeds = copy.copy(bandit), np.arange(len(CONTEXTS), dtype=np.uint64)
    frozen, changed = bandit.freeze(), np.arange(5)
    other.observe(contexts=LATER, arms=np.arange(len(LATER)) % 5, rewards=LATER[:, 1] + 3.0)
    model = other.policy.model
    assert isinstance(model, EffectsReward)
    assert model.fitted is not None
    before = frozen.select(CONTEXTS, seeds=seeds).rows

    frozen.apply_delta(changed, *model.fitted.effects.of(changed))

    got, wanted = (one.select(CONTEXTS, seeds=seeds).rows for one in (frozen, other.freeze()))
    np.testing.assert_array_equal(got, wanted)
    assert (got != before).any()


def test_only_the_newest_delta_counts(learned: Bandit) -> None:
    first, rows = observed(learned, 1)
    second, others = observed(learned, 2)
    frozen, wanted = learned.freeze(), learned.freeze()

    frozen.apply_delta(*delta_of(first, rows))
    frozen.apply_delta(*delta_of(second, others))
    wanted.apply_delta(*delta_of(second, others))

    for got, told in zip(frozen.parts[0].arrays, wanted.parts[0].arrays, strict=True):
        np.testing.assert_array_equal(got, told)


def test_whoever_holds_the_model_sees_no_change(learned: Bandit) -> None:
    other, rows = observed(learned, 1)
    frozen = learned.freeze()
    model = frozen.parts[0]
    before = [array.copy() for array in model.arrays]

    frozen.apply_delta(*delta_of(other, rows))

    for array, held in zip(model.arrays, before, strict=True):
        np.testing.assert_array_equal(array, held)
    assert not frozen.parts[0].own_constants.flags.writeable


def test_deltas_come_while_others_decide(learned: Bandit) -> None:
    other, rows = observed(learned, 1)
    frozen, seeds = learned.freeze(), np.arange(len(LATER), dtype=np.uint64)
    old = frozen.select(LATER, seeds=seeds).rows.tolist()
    new = other.freeze().select(LATER, seeds=seeds).rows.tolist()
    nothing = delta_of(learned, rows[:0])
    is_over, got = threading.Event(), []

    def decide() -> None:
        while not is_over.is_set():
            got.append(frozen.select(LATER, seeds=seeds, threads=1).rows.tolist())

    thread = threading.Thread(target=decide)
    thread.start()
    for turn in range(20):
        frozen.apply_delta(*(nothing if turn % 2 else delta_of(other, rows)))
    is_over.set()
    thread.join()

    assert all(one in (old, new) for one in got)


def test_a_saved_bandit_keeps_what_a_delta_told(learned: Bandit, tmp_path: object) -> None:
    other, rows = observed(learned, 1)
    frozen = learned.freeze()
    frozen.apply_delta(*delta_of(other, rows))
    frozen.save(f"{tmp_path}/frozen")

    loaded = FrozenBandit.load(f"{tmp_path}/frozen")

    seeds = np.arange(len(LATER), dtype=np.uint64)
    wanted = other.freeze().select(LATER, seeds=seeds)
    np.testing.assert_array_equal(loaded.select(LATER, seeds=seeds).rows, wanted.rows)


# -- what is refused


def test_a_bandit_without_constants_refuses() -> None:
    bandit = bandit_of(posterior="neural")

    with pytest.raises(SettingError, match="constants or weights of their own"):
        bandit.freeze().apply_delta(np.array([0]), np.zeros(1), np.ones(1))


@pytest.mark.parametrize(
    ("rows", "means", "deviations", "error"),
    [
        ([0, 1], [0.0], [1.0, 1.0], ShapeError),
        ([0.5], [0.0], [1.0], ShapeError),
        ([ARMS], [0.0], [1.0], InputError),
        ([-1], [0.0], [1.0], InputError),
        ([0], [np.nan], [1.0], NotFiniteError),
        ([0], [0.0], [-1.0], NotFiniteError),
    ],
)
def test_what_does_not_fit_changes_nothing(
    learned: Bandit, rows: object, means: object, deviations: object, error: type[Exception]
) -> None:
    frozen = learned.freeze()
    model = frozen.parts[0]

    with pytest.raises(error, match="A delta needs"):
        frozen.apply_delta(np.array(rows), np.array(means), np.array(deviations))

    assert frozen.parts[0] is model
