"""The settings of rewards: what of what was logged counts, and how it is combined."""

from __future__ import annotations

import json

from fastbandit.declaration import part
from fastbandit.errors import SettingError
from fastbandit.features.rewards import Weights
from fastbandit.settings.ranges import ANY_NUMBER, SECONDS, entry, one_of


@part("service", name="reward")
class RewardConfig:
    """What counts as the reward of a decision."""

    kind: str = entry("binary", "binary (0 and 1) or real", one_of("binary", "real"), is_asked=True)
    wait_seconds: float = entry(
        600.0, "how long a reward may take; later ones are not learned from", SECONDS, is_asked=True
    )
    default: float = entry(0.0, "reward of an arm for which none came in time", ANY_NUMBER)
    combine: str = entry(
        "first", "where several come: first, or sum (real only)", one_of("first", "sum")
    )
    weights: Weights = entry(
        (), "weights of outcomes by name, such as {quality = 1.0, cost = -0.5} (real only)"
    )
    missing: str = entry(
        "default",
        "where no reward, or not every weighted outcome, came: default, or skip to learn nothing",
        one_of("default", "skip"),
    )

    @property
    def adds_up(self) -> bool:
        """Whether several rewards of a decision count: parts of a sum, or outcomes."""
        return self.combine == "sum" or bool(self.weights)

    @property
    def combination(self) -> str:
        """How rewards are made of what was logged, as versions note it; "" where nothing is set."""
        if not self.weights and self.missing == "default":
            return ""
        return json.dumps({"weights": dict(sorted(self.weights)), "missing": self.missing})

    def __post_init__(self) -> None:
        if self.kind != "binary":
            return
        if self.weights:
            raise SettingError(
                "Rewards that are combined of outcomes need to be real numbers: got "
                "reward.weights with reward.kind = 'binary'. Set reward.kind = 'real'."
            )
        if self.default not in (0, 1):
            raise SettingError(
                f"Binary rewards need to be 0 or 1: got reward.default = {self.default!r}. Use "
                f"0 or 1, or set reward.kind = 'real'."
            )
        if self.combine == "sum":
            raise SettingError(
                "Rewards that add up need to be real numbers: got reward.combine = 'sum' with "
                "reward.kind = 'binary'. Set reward.kind = 'real', or combine = 'first'."
            )
