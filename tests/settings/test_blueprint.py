"""A blueprint builds the same parts again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import vectors_of

from fastbandit import Bandit, Box, Schema
from fastbandit.arms.box_space import BoxSpace
from fastbandit.errors import FastbanditError
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


def test_a_bandit_with_an_open_schema_learns_to_read_names_that_come() -> None:
    bandit = Bandit(context=Schema.open(slots=8, hashed=4), ids=["a", "b"], search="exhaustive")
    rows = [{"user": {"city": "Oslo" if n % 2 else "Rome"}} for n in range(20)]

    bandit.select(rows)
    bandit.update(contexts=rows, arms=["a", "b"] * 10, rewards=[0, 1] * 10)

    assert bandit.blueprint.context.schema.others.levels == ("user.city=Rome", "user.city=Oslo")
    bandit.update(contexts=[{"user": {"age": 3.0}}] * 2, arms=["a", "b"], rewards=[0, 1])
    assert bandit.blueprint.context.schema.others.numbers == ("user.age",)
    assert bandit.freeze().parts[2].schema == bandit.blueprint.context.schema


def test_an_update_that_fails_leaves_an_open_schema_as_it_was() -> None:
    bandit = Bandit(context=Schema.open(slots=8, hashed=4), ids=["a", "b"], search="exhaustive")
    before = bandit.blueprint

    with pytest.raises(FastbanditError):
        bandit.update(contexts=[{"x": 1.0}], arms=["unknown"], rewards=[1])

    assert bandit.blueprint is before


def test_arms_of_an_open_schema_are_read_by_their_new_names() -> None:
    arms = Schema.open(slots=8, hashed=4).table([{"price": 1.0}, {"price": 2.0}])
    bandit = Bandit(context=1, arms=arms, ids=["a", "b"], search="exhaustive")

    bandit.upsert_arms([{"price": 3.0, "kind": "new"}], ids=["c"])

    schema = bandit.blueprint.arm.schema
    assert (schema.others.numbers, schema.others.levels) == (("price",), ("kind=new",))
    assert bandit.policy.arms.features.dense.shape == (3, schema.dim)
