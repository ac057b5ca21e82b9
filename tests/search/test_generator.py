"""A search by a generator: it scores all of a few arms, and asks a generator of more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of
from search_arms import DIM, box, gap_of, score_of

from fastbandit import Bandit, Exhaustive, GeneratorSearch, Greedy, ThompsonSampling
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Exploration, Search, SearchFit
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.search.generator import FittedGenerator
from fastbandit.settings.presets import settings_for
from fastbandit.types import Inputs

CONTEXTS = vectors_of(200, 3, seed=1)
SHORT = {"training.reward": {"iterations": 20}, "training.generator": {"iterations": 20}}


def fitted(arms: ArmSpace, exploration: Exploration) -> Search:
    some = GeneratorFit(iterations=250, batch=128, targets=1024, sample=256)
    contexts = Inputs(dense=vectors_of(200, DIM, seed=5))
    rng = torch.Generator().manual_seed(1)
    search = GeneratorSearch()
    task = SearchFit(BowlReward(DIM), exploration, arms, contexts, some, rng)
    return search.fit(task, before=search)


@pytest.mark.parametrize("exploration", [Greedy(), ThompsonSampling()])
@pytest.mark.parametrize("count", [1_000, 6_000])
def test_a_generator_comes_close_to_the_best_arm(count: int, exploration: Exploration) -> None:
    arms = catalogue_of(vectors_of(count, DIM))

    gap = gap_of(fitted(arms, exploration), score_of(arms, exploration), arms)

    assert gap.min() >= -1e-5
    assert gap.mean() < 0.02


def test_a_generator_in_a_box_comes_close_to_the_best_point() -> None:
    arms = box()

    found = fitted(arms, Greedy()).best(score_of(arms, Greedy()), arms, count=1, seeds=seeds_of(32))

    assert found.scores.max() <= 1e-6  # the best point scores 0
    assert found.scores.mean() > -0.05


def test_a_generator_search_without_a_generator_says_what_to_do() -> None:
    arms = catalogue_of(vectors_of(50, DIM))

    with pytest.raises(SettingError, match="trained generator"):
        GeneratorSearch().best(score_of(arms, Greedy()), arms, count=1, seeds=seeds_of(32))


# -- few arms


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


def trained(bandit: Bandit, seed: int = 3) -> Bandit:
    rows = np.random.default_rng(seed).integers(len(vectors_of(300, 3, seed=2)), size=200)
    bandit.update(contexts=CONTEXTS, arms=rows, rewards=CONTEXTS[:, 0] * (rows % 2))
    return bandit


def has_generator(bandit: Bandit) -> bool:
    return isinstance(bandit.policy.search, FittedGenerator)


def test_a_few_arms_are_chosen_from_as_by_an_exhaustive_search() -> None:
    few, all_of_them = trained(bandit_of()), trained(bandit_of(Exhaustive()))

    got, wanted = few.select(CONTEXTS), all_of_them.select(CONTEXTS)

    np.testing.assert_array_equal(got.rows, wanted.rows)
    assert (got.evaluations == 300).all()
    assert not has_generator(few)


def test_compiled_code_chooses_the_same_arms(tmp_path: Path) -> None:
    bandit = trained(bandit_of())
    bandit.save(tmp_path / "bandit")
    seeds = np.arange(len(CONTEXTS), dtype=np.uint64)

    frozen = Bandit.load(tmp_path / "bandit").freeze().select(CONTEXTS, seeds=seeds)

    wanted = bandit.select(CONTEXTS, seeds=seeds)
    np.testing.assert_array_equal(frozen.rows, wanted.rows)


def test_a_catalogue_that_grows_gets_a_generator() -> None:
    bandit = trained(bandit_of())
    bandit.add_arms(vectors_of(900, 3, seed=5), ids=range(300, 1200))
    assert (bandit.select(CONTEXTS).evaluations == 1200).all()  # until the next update

    trained(bandit)

    assert has_generator(bandit)
    assert (bandit.select(CONTEXTS).evaluations < 1200).all()


def test_a_catalogue_that_shrinks_loses_it() -> None:
    bandit = trained(bandit_of(arms=1200))
    assert has_generator(bandit)
    bandit.discard_arms(range(300, 1200))

    trained(bandit)

    assert not has_generator(bandit)
    assert bandit.select(CONTEXTS).rows.max() < 300


def test_a_bound_and_a_generator_that_was_asked_for_are_not_scanned() -> None:
    assert bandit_of(exploration="ucb").blueprint.search.exhaustive_up_to == 0
    assert bandit_of("generator").blueprint.search.exhaustive_up_to == 0
