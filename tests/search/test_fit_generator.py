"""A generator learns the best arm of each draw, and goes on from what it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import LITTLE, BowlReward, catalogue_of, vectors_of

from fastbandit import ThompsonSampling
from fastbandit.errors import SettingError
from fastbandit.interfaces import SearchFit
from fastbandit.search.fit_generator import (
    GeneratorFit,
    best_of_samples,
    fit_generator,
    winner_takes_all,
)
from fastbandit.types import Inputs

CONTEXTS = Inputs(dense=vectors_of(40, 3, seed=3))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sample": 0}, "needs sample to be a whole number of at least 1: got 0"),
        ({"hops": -1}, "needs hops to be a whole number of at least 0: got -1"),
        ({"beam": 9, "sample": 8}, "got beam=9 and sample=8. Lower the beam"),
    ],
)
def test_a_generator_needs_something_to_learn_from(changed: dict[str, int], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        replace(GeneratorFit(), **changed)  # type: ignore[arg-type]


def test_a_beam_may_be_the_whole_sample() -> None:
    assert GeneratorFit(beam=8, sample=8).beam == 8


def task(settings: GeneratorFit, seed: int = 0) -> SearchFit:
    return SearchFit(
        BowlReward(3),
        ThompsonSampling(),
        catalogue_of(vectors_of(200, 3)),
        CONTEXTS,
        settings,
        torch.Generator().manual_seed(seed),
    )


def test_a_target_is_the_best_arm_of_its_draw() -> None:
    work = task(replace(LITTLE.generator, sample=400, hops=3, beam=4))

    inputs, targets = best_of_samples(
        work, torch.from_numpy(CONTEXTS.dense), rng=torch.Generator().manual_seed(0)
    )

    wanted = inputs[:, :3] + inputs[:, 3:6]  # the context, and the draw's shift of its bowl
    reached = (work.arms.to_embedding(targets) - wanted).square().sum(1)
    best = torch.cdist(wanted, torch.from_numpy(vectors_of(200, 3))).square().amin(1)
    assert inputs.shape == (128, 3 + 3 + 3)
    assert (reached - best).max() < 0.5
    assert (reached - best).mean() < 0.01


def test_the_nearest_head_is_pulled_and_the_others_a_little() -> None:
    points = torch.tensor([[[0.0], [3.0]]], requires_grad=True)

    loss = winner_takes_all(points, torch.tensor([[1.0]]), 0.01)
    loss.backward()

    assert loss.item() == pytest.approx(1 + 0.01 * (1 + 4) / 2)
    assert points.grad is not None
    assert points.grad.flatten().tolist() == pytest.approx([-2 - 0.01, 0.01 * 2])


def test_a_generator_goes_on_from_the_one_of_before() -> None:
    still = replace(LITTLE.generator, iterations=0)
    one = fit_generator(task(still, seed=1), None, heads=4, hidden=8)

    two = fit_generator(task(still, seed=2), one, heads=4, hidden=8)

    assert one is not two
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_generator_of_another_shape_starts_anew() -> None:
    still = replace(LITTLE.generator, iterations=0)
    one = fit_generator(task(still), None, heads=4, hidden=8)

    two = fit_generator(task(still), one, heads=5, hidden=8)

    assert two.heads == 5


def test_training_brings_the_heads_nearer_to_the_targets() -> None:
    work = task(LITTLE.generator)
    embedded = torch.from_numpy(CONTEXTS.dense)
    inputs, targets = best_of_samples(work, embedded, rng=torch.Generator().manual_seed(9))

    def distance(iterations: int) -> float:
        settings = replace(LITTLE.generator, iterations=iterations)
        fitted = fit_generator(task(settings), None, heads=4, hidden=16)
        with torch.no_grad():
            return winner_takes_all(fitted(inputs, work.arms), targets, 0.0).item()

    assert distance(100) < 0.7 * distance(0)
