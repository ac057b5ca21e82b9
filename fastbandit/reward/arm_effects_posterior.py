"""ArmEffectsPosterior: what each arm has of its own, beside what features say.

Arms known by their ids alone, few enough to be scanned, have weights of their own. Others have a
network over features, a regression beside it, and a constant of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Generator

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.features.kinds import FeaturesAndIds, Ids, Point
from fastbandit.interfaces import Plan, RewardModel, asks, scans
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.reward.last_layer_model import LastLayerPosterior
from fastbandit.reward.linear_model import LinearReward
from fastbandit.reward.matches import text_spans


@part("posterior", name="arm-effects")
class ArmEffectsPosterior:
    """Each arm's own weights over features of the context, or a constant beside a network.

    At most so many principal directions of contexts are `features`, beside the `units` of a
    network (0: none), trained anew when the history is `grow` times as long. Widths are the
    standard deviations of an arm's constant and of its other weights before anything is seen.
    With `own_weights` arms have weights of their own even where they have features beside ids:
    right for few arms that come again and again. Their features are then not read.
    """

    features: int = 64
    units: int = setting(default=64, least=0)
    grow: float = setting(default=1.25, above=0)
    constant_width: float = setting(default=0.1, above=0)
    slope_width: float = setting(default=0.8, above=0)
    own_weights: bool = setting(default=False, came_later=True)

    def build(self, plan: Plan, *, rng: Generator) -> RewardModel:
        if isinstance(plan.arm, Point):
            raise SettingError(
                "Arm effects need a catalogue of arms: got a box, every point of which is an arm "
                "that is hardly chosen twice. Leave out posterior=."
            )
        if self._has_weights(plan.arm) and scans(plan.search, None):
            return EffectsReward(
                reward=plan.reward,
                most=self.features,
                units=self.units,
                grow=self.grow,
                widths=(self.constant_width, self.slope_width),
                alike=text_spans(plan.context),
                rng=rng,
            )
        return _beside_a_network(plan, rng=rng)

    def _has_weights(self, arm: Any) -> bool:
        return isinstance(arm, Ids) or (self.own_weights and isinstance(arm, FeaturesAndIds))


def _beside_a_network(plan: Any, *, rng: Generator) -> HierarchicalReward:
    """Build a network over features, a regression beside it, and room for arms' constants."""
    if asks(plan.exploration) == "upper":
        return HierarchicalReward(GradientPosterior().build(plan, rng=rng), None)
    if isinstance(plan.arm, FeaturesAndIds):
        network = LastLayerPosterior().build(plan, rng=rng)
        linear = LinearReward(replace(plan, arm=plan.arm.features), rng=rng)
        return HierarchicalReward(network, linear, knows_ids=True)
    plain = DropoutReward(plan, rng=rng)
    is_read = not isinstance(plan.arm, Ids)
    return HierarchicalReward(plain, LinearReward(plan, rng=rng) if is_read else None)
