"""What each arm has of its own: weights over the context, or a constant beside a network."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import vectors_of

from fastbandit import Bandit, Box
from fastbandit.errors import SettingError
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.exhaustive import Exhaustive


def test_arms_that_are_ids_have_weights_of_their_own_by_default() -> None:
    bandit = Bandit(ids=["a", "b"], context=3)

    assert isinstance(bandit.policy.model, EffectsReward)
    assert isinstance(bandit.policy.search, Exhaustive)


def test_many_ids_are_left_to_a_network() -> None:
    bandit = Bandit(ids=range(30_000), context=3)

    assert not isinstance(bandit.policy.model, EffectsReward)


def test_a_box_has_no_arm_effects() -> None:
    with pytest.raises(SettingError, match="Arm effects need a catalogue of arms: got a box"):
        Bandit(arms=Box((0.0,), (1.0,)), context=2, posterior="arm-effects")


@pytest.mark.parametrize(
    ("exploration", "network", "has_regression"),
    [("ts", DropoutReward, True), ("ucb", GradientReward, False)],
)
def test_arms_with_features_have_a_network_and_where_it_is_drawn_a_regression_beside_it(
    exploration: str, network: type[Any], has_regression: bool
) -> None:
    bandit = Bandit(
        arms=vectors_of(20, 2), context=3, posterior="arm-effects", exploration=exploration
    )

    model = bandit.policy.model

    assert isinstance(model, HierarchicalReward)
    assert type(model.network) is network
    assert (model.linear is not None) == has_regression


def test_arms_with_features_may_have_weights_of_their_own() -> None:
    own = ArmEffectsPosterior(own_weights=True)

    bandit = Bandit(arms=vectors_of(20, 2), context=3, posterior=own, embed_ids=True)

    assert isinstance(bandit.policy.model, EffectsReward)
    assert isinstance(bandit.policy.search, Exhaustive)
