"""What the report says of rewards that drift: policies that forget, beside those that do not."""

from __future__ import annotations

from collections.abc import Sequence

from lab.experiments.comparison import Standing, World, longest, shares_together
from lab.experiments.report_tables import NONE, Table

WORDS = (
    "What a context is worth changes with the rounds, at once (drift switch) or steadily (drift "
    "turn); the best possible reward is that of each round. The table has the share of it, and in "
    "brackets what forgetting adds to the same policy that keeps all of the past, also where "
    "nothing drifts."
)
_DRIFT = ("drift", "period")
_PAIRS = {
    "LinearTS fading": "LinearTS",
    "LinUCB fading": "LinUCB",
    "GANBandit window": "GANBandit TS",
    "GANBandit fading": "GANBandit TS",
}
"""Each policy that forgets, and the one that does not."""


def is_drifting(world: World) -> bool:
    """Tell whether the rewards of a world change with the rounds."""
    return any(name == "drift" and value != "none" for name, value in world.options)


def drift_table(standings: Sequence[Standing]) -> Table:
    """Word the share of each policy in worlds that drift, and in the same without a drift."""
    mine = [s for s in longest(standings) if s.preset == "default"]
    worlds = _with_their_stills([s.world for s in mine])
    found = {(s.policy, s.world): s for s in mine if s.world in worlds}
    policies = dict.fromkeys(s.policy for s in mine if is_drifting(s.world))
    rows = [(policy, *(_cell(policy, world, found) for world in worlds)) for policy in policies]
    return Table(("policy", *(world.label for world in worlds)), tuple(rows))


def _with_their_stills(worlds: Sequence[World]) -> list[World]:
    drifting = dict.fromkeys(world for world in worlds if is_drifting(world))
    stills = dict.fromkeys(_still(world) for world in drifting)
    return [*drifting, *(world for world in stills if world in worlds)]


def _still(world: World) -> World:
    return World(world.dataset, tuple(pair for pair in world.options if pair[0] not in _DRIFT))


def _cell(policy: str, world: World, found: dict[tuple[str, World], Standing]) -> str:
    standing, other = found.get((policy, world)), found.get((_PAIRS.get(policy, ""), world))
    if standing is None or standing.share is None:
        return NONE
    pair = None if other is None else shares_together(standing, other)
    gain = "" if pair is None else f" ({pair[0] - pair[1]:+.3f})"
    return f"{standing.share.mean:.3f}{gain}"
