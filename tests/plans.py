"""A plan for tests of reward models: what they are built for, with parts that none of them asks."""

from fastbandit import Exhaustive, Greedy
from fastbandit.features.rewards import RewardKind
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.model import NetworkSettings
from fastbandit.settings.blueprint import Blueprint
from fastbandit.training.update import Training
from fastbandit.types import Features


def plan_for(
    context: Features, arm: Features, network: NetworkSettings, *, reward: RewardKind = "real"
) -> Blueprint:
    """Return a plan of these features, this network and this kind of reward."""
    return Blueprint(
        context=context,
        arm=arm,
        reward=reward,
        network=network,
        posterior=DropoutPosterior(),
        exploration=Greedy(),
        search=Exhaustive(),
        training=Training(),
        seed=0,
    )
