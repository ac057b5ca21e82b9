"""The network that proposes points."""

from __future__ import annotations

import torch
from fakes import catalogue_of, vectors_of
from search_arms import CONTEXTS, DIM, box, score_of

from fastbandit import Greedy, ThompsonSampling
from fastbandit.search.arm_generator import ArmGenerator, generator_inputs
from fastbandit.search.ranking import Tally


def generator_of(seed: int = 1) -> ArmGenerator:
    rng = torch.Generator().manual_seed(seed)
    return ArmGenerator(2, DIM, heads=5, hidden=8, rng=rng)


def test_every_head_proposes_a_point_inside_the_box() -> None:
    arms = box()

    points = generator_of()(1e3 * torch.randn(7, 2), arms)

    assert points.shape == (7, 5, DIM)
    assert (points >= arms.low).all()
    assert (points <= arms.high).all()


def test_a_network_of_zeros_proposes_the_middle_of_the_arms() -> None:
    arms, network = catalogue_of(vectors_of(50, DIM)), generator_of()
    for weights in network.parameters():
        torch.nn.init.zeros_(weights)

    points = network(torch.ones(1, 2), arms)

    assert torch.allclose(points[0, 0], (arms.high + arms.low) / 2)


def test_the_same_seed_builds_the_same_network() -> None:
    one, same, other = (generator_of(seed).layers[0].weight for seed in (1, 1, 2))

    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_inputs_are_the_context_the_draw_and_a_slope_of_length_1() -> None:
    arms, tally = box(), Tally(32)
    score = score_of(arms, ThompsonSampling())

    inputs = generator_inputs(score, arms, tally)

    assert torch.equal(inputs[:, :DIM], CONTEXTS)
    assert torch.equal(inputs[:, DIM : 2 * DIM], score.noise)
    assert torch.allclose(inputs[:, 2 * DIM :].norm(dim=1), torch.ones(32))
    assert tally.evaluations.tolist() == [2] * 32


def test_the_slope_points_from_the_middle_to_the_best_point() -> None:
    arms = box()

    inputs = generator_inputs(score_of(arms, Greedy()), arms, Tally(32))

    assert torch.allclose(
        inputs[:, DIM:], torch.nn.functional.normalize(CONTEXTS, dim=1), atol=1e-5
    )
