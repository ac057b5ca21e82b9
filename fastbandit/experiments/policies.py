"""The paper's policies by their names there, made for an environment."""

from __future__ import annotations

from typing import Any

from fastbandit.errors import SettingError
from fastbandit.experiments.run import Player
from fastbandit.experiments.synthetic import Synthetic

NEURAL = {
    "Exhaust TS": ("ts", "exhaustive"),
    "Exhaust UCB": ("ucb", "exhaustive"),
    "FastBandit TS": ("ts", "ascent"),
    "FastBandit UCB": ("ucb", "ascent"),
    "GANBandit TS": ("ts", "generator"),
    "GANBandit UCB": ("ucb", "generator"),
}
NAMES = ("Random", "Overall best arm", "LinearTS", *NEURAL)


def player_for(name: str, environment: Synthetic, *, preset: str, seed: int) -> Player:
    """Make a policy of the paper that knows nothing yet."""
    arms = environment.arms
    common: dict[str, Any] = {"arms": arms, "reward": "real", "seed": seed}
    if name in NEURAL:
        from fastbandit.bandit import Bandit

        explore, search = NEURAL[name]
        return Bandit(
            context=arms.shape[1],
            explore=explore,
            search=search,
            preset=preset,
            progress=False,
            **common,
        )
    from fastbandit.baselines import BestArmBandit, LinearTS, RandomBandit

    if name == "Random":
        return RandomBandit(arms=arms, seed=seed)
    if name == "Overall best arm":
        return BestArmBandit(**common)
    if name == "LinearTS":
        return LinearTS(context=arms.shape[1], **common)
    raise SettingError(f"A policy needs to be one of {', '.join(NAMES)}: got {name!r}.")
