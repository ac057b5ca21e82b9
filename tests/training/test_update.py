"""An update makes a new policy from a copy, and makes it better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import LITTLE, vectors_of
from plans import plan_for
from torch import nn

from fastbandit import Exhaustive, GeneratorSearch, ThompsonSampling
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable
from fastbandit.features.kinds import Dense, Ids
from fastbandit.policy import Policy
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.search.generator import FittedGenerator
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import multiplications_of, update
from fastbandit.types import Inputs, Interactions

SETTINGS = NetworkSettings(embedding=4, hidden=(8,), weight_penalty=0.1, dropout_penalty=1.0)
CONTEXTS, ARMS = vectors_of(100, 3, seed=1), vectors_of(50, 3, seed=2)
ROWS = np.arange(100) % 50
REWARDS = (CONTEXTS * ARMS[ROWS]).sum(1)


def history(rewards: Any = REWARDS) -> Interactions:
    return Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS[ROWS]), rewards)


def model(kind: str = "real") -> DropoutReward:
    rng = torch.Generator().manual_seed(3)
    made = DropoutReward(plan_for(Dense(3), Dense(3), SETTINGS, reward=kind), rng=rng)
    return made.requires_grad_(False)


def policy(search: Any = Exhaustive()) -> Policy:  # noqa: B008
    arms = Catalogue.of(IdTable(count=50), Inputs(dense=ARMS))
    return Policy(model(), ThompsonSampling(), search, arms)


def updated(before: Policy, seed: int = 1) -> Policy:
    rng = torch.Generator().manual_seed(seed)
    return update(before, history(), fresh=100, training=LITTLE, rng=rng)


def test_an_update_never_touches_the_old_policy() -> None:
    before = updated(policy(GeneratorSearch()))
    assert isinstance(before.search, FittedGenerator)
    parts: tuple[torch.nn.Module, ...] = (before.model, before.search.generator)
    states = [{k: v.clone() for k, v in part.state_dict().items()} for part in parts]
    vectors = before.arms.all().points.clone()

    after = updated(before)

    assert after.model is not before.model
    for part, old in zip(parts, states, strict=True):
        assert all(torch.equal(v, old[k]) for k, v in part.state_dict().items())
    assert torch.equal(before.arms.all().points, vectors)


def test_the_same_rng_learns_the_same() -> None:
    one, two, other = updated(policy()), updated(policy()), updated(policy(), seed=2)

    weights = [part.model.network.layers[0].weight for part in (one, two, other)]  # type: ignore[union-attr, index]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_training_leaves_torchs_own_random_state_alone() -> None:
    before = torch.get_rng_state()

    updated(policy(GeneratorSearch()))

    assert torch.equal(torch.get_rng_state(), before)


def test_an_updated_policy_asks_for_no_slopes() -> None:
    after = updated(policy(GeneratorSearch()))

    assert isinstance(after.search, FittedGenerator)
    assert not any(p.requires_grad for p in after.model.parameters())
    assert not any(p.requires_grad for p in after.search.generator.parameters())


def test_real_rewards_are_learned_in_standard_units_and_returned_in_their_own() -> None:
    learned = history(REWARDS * 1000 + 5e6)
    learner = model()
    learner.start(learned, fresh=100)

    standard = learner.standardised(torch.from_numpy(learned.rewards))

    assert standard.mean().item() == pytest.approx(0, abs=1e-2)
    assert standard.std().item() == pytest.approx(1, abs=2e-2)
    assert np.allclose(learner.in_rewards(standard), learned.rewards, rtol=1e-5)


def test_rewards_that_are_all_alike_do_not_divide_by_zero() -> None:
    learner = model()
    learner.start(history(np.full(100, 4.0, dtype=np.float32)), fresh=100)

    assert learner.reward_scale.item() == 1.0


def on_ids(*, embedding_penalty: float, penalties: str = "per observation") -> DropoutReward:
    """Make a model of arms that are ids, of which the histories here show all but the last."""
    held = replace(SETTINGS, embedding_penalty=embedding_penalty, penalties=penalties)
    rng = torch.Generator().manual_seed(3)
    return DropoutReward(plan_for(Dense(3), Ids(6), held), rng=rng)


def on_ids_history() -> Interactions:
    return Interactions(Inputs(dense=CONTEXTS), Inputs(ids=np.arange(100) % 5), REWARDS)


@pytest.mark.parametrize(("penalties", "share"), [("per observation", 1 / 40), ("constant", 1.0)])
def test_the_embedding_penalty_enters_the_loss_by_observations(
    penalties: str, share: float
) -> None:
    learned = on_ids_history()

    def loss(penalty: float) -> float:
        learner = on_ids(embedding_penalty=penalty, penalties=penalties)
        rng = torch.Generator().manual_seed(5)
        rewards = torch.from_numpy(learned.rewards)
        return learner.loss(learned.contexts, learned.arms, rewards, total=40, rng=rng).item()

    plain = on_ids(embedding_penalty=0.0)
    squares = sum(
        encoder.weight_penalty().item() for encoder in (plain.context_encoder, plain.arm_encoder)
    )
    assert loss(2.0) - loss(0.0) == pytest.approx(2.0 * squares * share, rel=1e-3)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_an_id_that_was_never_seen_is_driven_to_nothing_by_the_penalty(penalty: float) -> None:
    arms = Catalogue.of(IdTable(count=6), Inputs(ids=np.arange(6)))
    before = on_ids(embedding_penalty=penalty).requires_grad_(False)
    learner = replace(LITTLE, reward=RewardFit(iterations=200, batch=64))

    after = update(
        Policy(before, ThompsonSampling(), Exhaustive(), arms),
        on_ids_history(),
        fresh=100,
        training=learner,
        rng=torch.Generator().manual_seed(1),
    )

    start, end = (model.embed_arms(Inputs(ids=np.arange(6))) for model in (before, after.model))
    if penalty:
        assert end[5].norm() < 0.05 * start[5].norm()
        assert end[:5].norm(dim=1).min() > 10 * end[5].norm()
    else:
        assert torch.equal(end[5], start[5])


def test_the_largest_product_of_a_step_is_counted() -> None:
    model = nn.Sequential(nn.Embedding(1000, 8), nn.Linear(8, 16), nn.Linear(16, 1))
    assert multiplications_of(model, batch=10) == 10 * 8 * 16

    picture = nn.Sequential(nn.Conv2d(1, 2, 3))
    assert multiplications_of(picture, batch=1) == 2 * 9 * 1024
