"""An update makes a new policy from a copy, and makes it better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import LITTLE, BowlReward, catalogue_of, vectors_of

from fastbandit import Exhaustive, GeneratorSearch, ThompsonSampling
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, Ids
from fastbandit.policy import Policy
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.search.fit_generator import (
    GeneratorFit,
    fit_generator,
    lessons,
    winner_takes_all,
)
from fastbandit.training.fit_reward import RewardFit, cooled, fit_reward
from fastbandit.training.update import update
from fastbandit.types import Inputs, Interactions

SETTINGS = NetworkSettings(embedding=4, hidden=(8,), weight_penalty=0.1, dropout_penalty=1.0)
CONTEXTS, ARMS = vectors_of(100, 3, seed=1), vectors_of(50, 3, seed=2)
ROWS = np.arange(100) % 50
REWARDS = (CONTEXTS * ARMS[ROWS]).sum(1)


def history(rewards: Any = REWARDS) -> Interactions:
    return Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS[ROWS]), rewards)


def model(kind: str = "real") -> DropoutReward:
    rng = torch.Generator().manual_seed(3)
    made = DropoutReward(Dense(3), Dense(3), settings=SETTINGS, reward=kind, rng=rng)
    return made.requires_grad_(False)


def policy(search: Any = Exhaustive()) -> Policy:  # noqa: B008
    arms = Catalogue.of(IdTable(count=50), Inputs(dense=ARMS))
    return Policy(model(), ThompsonSampling(), search, arms)


def updated(before: Policy, seed: int = 1) -> Policy:
    rng = torch.Generator().manual_seed(seed)
    return update(before, history(), fresh=100, training=LITTLE, rng=rng)


def test_an_update_never_touches_the_old_policy() -> None:
    before = updated(policy(GeneratorSearch()))
    assert isinstance(before.search, GeneratorSearch)
    parts = (before.model, before.search.generator)
    kept = [{k: v.clone() for k, v in part.state_dict().items()} for part in parts]  # type: ignore[union-attr]
    vectors = before.arms.all().points.clone()

    after = updated(before)

    assert after.model is not before.model
    for part, old in zip(parts, kept, strict=True):
        assert all(torch.equal(v, old[k]) for k, v in part.state_dict().items())  # type: ignore[union-attr]
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

    assert isinstance(after.search, GeneratorSearch)
    assert after.search.generator is not None
    assert not any(p.requires_grad for p in after.model.parameters())
    assert not any(p.requires_grad for p in after.search.generator.parameters())


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_the_loss_falls(kind: str) -> None:
    rewards = REWARDS if kind == "real" else (REWARDS > 0).astype(np.float32)
    told = history(rewards)
    learner = model(kind).requires_grad_(True)
    learner.start(told, fresh=100)

    def loss() -> float:
        rng = torch.Generator().manual_seed(5)
        with torch.no_grad():
            rows = torch.from_numpy(rewards)
            return learner.loss(told.contexts, told.arms, rows, total=100, rng=rng).item()

    before = loss()
    fit_reward(learner, told, RewardFit(iterations=150, batch=64), rng=torch.Generator())

    assert loss() < before - 0.2


def test_real_rewards_are_learned_in_standard_units_and_given_back_in_their_own() -> None:
    told = history(REWARDS * 1000 + 5e6)
    learner = model()
    learner.start(told, fresh=100)

    standard = learner.standardised(torch.from_numpy(told.rewards))

    assert standard.mean().item() == pytest.approx(0, abs=1e-2)
    assert standard.std().item() == pytest.approx(1, abs=2e-2)
    assert np.allclose(learner.in_rewards(standard), told.rewards, rtol=1e-5)


def test_rewards_that_are_all_alike_do_not_divide_by_zero() -> None:
    learner = model()
    learner.start(history(np.full(100, 4.0, dtype=np.float32)), fresh=100)

    assert learner.reward_scale.item() == 1.0


def on_ids(*, embedding_penalty: float, penalties: str = "per observation") -> DropoutReward:
    """Make a model of arms that are ids, of which the histories here show all but the last."""
    held = replace(SETTINGS, embedding_penalty=embedding_penalty, penalties=penalties)
    rng = torch.Generator().manual_seed(3)
    return DropoutReward(Dense(3), Ids(6), settings=held, reward="real", rng=rng)


def on_ids_history() -> Interactions:
    return Interactions(Inputs(dense=CONTEXTS), Inputs(ids=np.arange(100) % 5), REWARDS)


@pytest.mark.parametrize(("penalties", "share"), [("per observation", 1 / 40), ("constant", 1.0)])
def test_the_embedding_penalty_enters_the_loss_by_observations(
    penalties: str, share: float
) -> None:
    told = on_ids_history()

    def loss(penalty: float) -> float:
        learner = on_ids(embedding_penalty=penalty, penalties=penalties)
        rng = torch.Generator().manual_seed(5)
        rewards = torch.from_numpy(told.rewards)
        return learner.loss(told.contexts, told.arms, rewards, total=40, rng=rng).item()

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


def test_a_lesson_is_the_best_arm_of_its_draw() -> None:
    arms = catalogue_of(vectors_of(200, 3))
    contexts = torch.from_numpy(vectors_of(40, 3, seed=3))
    settings = replace(LITTLE.generator, sample=400, hops=3, beam=4)
    bowl, how = BowlReward(3), ThompsonSampling()

    told, targets = lessons(
        GeneratorSearch(), bowl, how, arms, contexts, settings, rng=torch.Generator()
    )

    wanted = told[:, :3] + told[:, 3:6]  # the context, and the draw's shift of its bowl
    reached = (arms.to_embedding(targets) - wanted).square().sum(1)
    best = torch.cdist(wanted, torch.from_numpy(vectors_of(200, 3))).square().amin(1)
    assert told.shape == (128, 3 + 3 + 3)
    assert (reached - best).max() < 0.5
    assert (reached - best).mean() < 0.01


def test_the_nearest_head_is_pulled_and_the_others_a_little() -> None:
    points = torch.tensor([[[0.0], [3.0]]], requires_grad=True)

    loss = winner_takes_all(points, torch.tensor([[1.0]]), 0.01)
    loss.backward()

    assert loss.item() == pytest.approx(1 + 0.01 * (1 + 4) / 2)
    assert points.grad is not None
    assert points.grad.flatten().tolist() == pytest.approx([-2 - 0.01, 0.01 * 2])


def test_a_generator_goes_on_from_the_one_it_was() -> None:
    arms = catalogue_of(vectors_of(200, 3))
    contexts = Inputs(dense=vectors_of(40, 3, seed=3))
    still = replace(LITTLE.generator, iterations=0)
    parts = (BowlReward(3), ThompsonSampling(), arms, contexts)
    first = fit_generator(GeneratorSearch(), *parts, still, rng=torch.Generator().manual_seed(1))

    second = fit_generator(first, *parts, still, rng=torch.Generator().manual_seed(2))

    one, two = first.generator, second.generator
    assert one is not None
    assert two is not None
    assert one is not two
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_the_learning_rate_falls_from_all_to_a_hundredth() -> None:
    assert cooled(0.0) == pytest.approx(1.0)
    assert cooled(1.0) == pytest.approx(0.01)
    assert cooled(0.2) > cooled(0.8)
