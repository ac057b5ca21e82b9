"""A blueprint builds the same parts again."""

from __future__ import annotations

from dataclasses import replace

import torch
from fakes import vectors_of

from fastbandit import Bandit, Box
from fastbandit.arms.box_space import BoxSpace
from fastbandit.interfaces import RewardModel
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.parts import read, write

ARMS = vectors_of(20, 3)


def blueprint(seed: int = 5) -> Blueprint:
    return Bandit(arms=ARMS, context=4, reward="real", posterior="dropout", seed=seed).blueprint


def weights_of(model: RewardModel) -> torch.Tensor:
    return torch.cat([weights.flatten() for weights in model.parameters()])


def test_the_same_seed_builds_the_same_model() -> None:
    one, same = (weights_of(blueprint().model(device="cpu")) for _ in range(2))

    assert torch.equal(one, same)


def test_another_seed_builds_another_model() -> None:
    one, other = (weights_of(blueprint(seed).model(device="cpu")) for seed in (5, 6))

    assert not torch.equal(one, other)


def test_a_negative_seed_is_a_seed() -> None:
    model = replace(blueprint(), seed=-1).model(device="cpu")

    assert not any(weights.requires_grad for weights in model.parameters())


def test_a_policy_has_the_parts_of_its_blueprint() -> None:
    bandit = Bandit(arms=Box([0.0], [1.0]), context=4, reward="real")
    plan, space = bandit.blueprint, BoxSpace(Box([0.0], [1.0]))

    policy = plan.policy(space, device="cpu")

    assert policy.exploration is plan.exploration
    assert policy.search is plan.search
    assert policy.arms is space


def test_a_blueprint_is_read_as_it_was_written() -> None:
    plan = blueprint()

    assert read(write(plan)) == plan
