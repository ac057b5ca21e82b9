"""A search by a generator scores all of a few arms, and trains a generator once there are more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from fakes import vectors_of

from fastbandit import Bandit, Exhaustive
from fastbandit.search.generator import FittedGenerator
from fastbandit.settings.presets import settings_for

CONTEXTS = vectors_of(200, 3, seed=1)
SHORT = {"training.reward": {"iterations": 20}, "training.generator": {"iterations": 20}}


def bandit_of(search: Any = "auto", *, arms: int = 300, exploration: str = "ts") -> Bandit:
    preset = settings_for("default").merged(SHORT)
    return Bandit(
        arms=vectors_of(arms, 3, seed=2),
        context=3,
        reward="real",
        search=search,
        exploration=exploration,
        preset=preset,
        seed=4,
    )


def taught(bandit: Bandit, seed: int = 3) -> Bandit:
    rows = np.random.default_rng(seed).integers(len(vectors_of(300, 3, seed=2)), size=200)
    bandit.update(contexts=CONTEXTS, arms=rows, rewards=CONTEXTS[:, 0] * (rows % 2))
    return bandit


def has_generator(bandit: Bandit) -> bool:
    return isinstance(bandit.policy.search, FittedGenerator)


def test_a_few_arms_are_chosen_from_as_by_an_exhaustive_search() -> None:
    few, all_of_them = taught(bandit_of()), taught(bandit_of(Exhaustive()))

    got, wanted = few.select(CONTEXTS), all_of_them.select(CONTEXTS)

    np.testing.assert_array_equal(got.rows, wanted.rows)
    assert (got.evaluations == 300).all()
    assert not has_generator(few)


def test_compiled_code_chooses_the_same_arms(tmp_path: Path) -> None:
    bandit = taught(bandit_of())
    bandit.save(tmp_path / "bandit")
    seeds = np.arange(len(CONTEXTS), dtype=np.uint64)

    frozen = Bandit.load(tmp_path / "bandit").freeze().select(CONTEXTS, seeds=seeds)

    wanted = bandit.select(CONTEXTS, seeds=seeds)
    np.testing.assert_array_equal(frozen.rows, wanted.rows)


def test_a_catalogue_that_grows_gets_a_generator() -> None:
    bandit = taught(bandit_of())
    bandit.add_arms(vectors_of(900, 3, seed=5), ids=range(300, 1200))
    assert (bandit.select(CONTEXTS).evaluations == 1200).all()  # until the next update

    taught(bandit)

    assert has_generator(bandit)
    assert (bandit.select(CONTEXTS).evaluations < 1200).all()


def test_one_that_shrinks_loses_it() -> None:
    bandit = taught(bandit_of(arms=1200))
    assert has_generator(bandit)
    bandit.discard_arms(range(300, 1200))

    taught(bandit)

    assert not has_generator(bandit)
    assert bandit.select(CONTEXTS).rows.max() < 300


def test_a_bound_and_a_generator_that_was_asked_for_are_not_scanned() -> None:
    assert bandit_of(exploration="ucb").blueprint.search.exhaustive_up_to == 0
    assert bandit_of("generator").blueprint.search.exhaustive_up_to == 0
