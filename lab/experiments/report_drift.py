"""What the report says of rewards that drift: policies that forget, beside those that do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.experiments.comparison import Setting, Standing, longest, paired_shares, seeds_text
from lab.experiments.report_tables import NONE, Table

TEXT = (
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


def is_drifting(setting: Setting) -> bool:
    """Return whether the rewards of a setting change with the rounds."""
    return any(name == "drift" and value != "none" for name, value in setting.options)


def drift_text(standings: Sequence[Standing]) -> str:
    """Return what the table shows, and of how many seeds at least."""
    fewest = min((len(standing.by_seed) for standing in standings), default=0)
    return f"{TEXT} Each is a mean over seeds{seeds_text(fewest)}."


def drift_table(standings: Sequence[Standing]) -> Table:
    """Return a table of the share of each policy in settings with and without a drift."""
    mine = [s for s in longest(standings) if s.preset == "default"]
    settings = _with_their_stills([s.setting for s in mine])
    found = {(s.policy, s.setting): s for s in mine if s.setting in settings}
    policies = dict.fromkeys(s.policy for s in mine if is_drifting(s.setting))
    rows = [
        (policy, *(_cell(policy, setting, found) for setting in settings)) for policy in policies
    ]
    return Table(("policy", *(setting.label for setting in settings)), tuple(rows))


def _with_their_stills(settings: Sequence[Setting]) -> list[Setting]:
    drifting = dict.fromkeys(setting for setting in settings if is_drifting(setting))
    stills = dict.fromkeys(_still(setting) for setting in drifting)
    return [*drifting, *(setting for setting in stills if setting in settings)]


def _still(setting: Setting) -> Setting:
    return Setting(
        setting.dataset, tuple(pair for pair in setting.options if pair[0] not in _DRIFT)
    )


def _cell(policy: str, setting: Setting, found: dict[tuple[str, Setting], Standing]) -> str:
    standing, other = found.get((policy, setting)), found.get((_PAIRS.get(policy, ""), setting))
    if standing is None or standing.share is None:
        return NONE
    pair = None if other is None else paired_shares(standing, other)
    gain = "" if pair is None else f" ({np.mean(pair[0]) - np.mean(pair[1]):+.3f})"
    return f"{standing.share.mean:.3f}{gain}"
