"""How much each interaction of another policy's log counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import shown, to_floats

MOST = 10.0
"""An interaction counts at most so many times as much as the median one."""
LONGEST = 100_000
"""A longer log counts as so many interactions in all, where nobody says how far to trust it.

An update shows a network some hundred thousand: in a longer log, what comes later would drown.
"""


def log_weights(trust: Any, propensities: Any, *, count: int) -> NDArray[np.float64] | None:
    """Return the weights of `count` interactions, of mean `trust`; None where each counts once.

    Without a trust (None) that is 1, and less for a log longer than `LONGEST`. With propensities
    an interaction counts by their inverse, but no more than ten times the median one.
    """
    is_number = isinstance(trust, int | float | np.number) and not isinstance(trust, bool)
    if trust is not None and not (is_number and 0.0 < trust <= 1.0):
        raise SettingError(
            f"The trust in a log needs to be a number above 0 and at most 1: got {shown(trust)}. "
            f"Say how many of a bandit's own interactions one of the log is worth; leave a log "
            f"out that is worth nothing."
        )
    share = min(1.0, LONGEST / max(1, count)) if trust is None else float(trust)
    if propensities is None:
        return None if share == 1.0 else np.full(count, share)
    inverse = 1.0 / _read_propensities(propensities, count=count)
    if not count:
        return None
    bounded = np.minimum(inverse, MOST * np.median(inverse))
    return share * bounded / bounded.mean()


def _read_propensities(raw: Any, *, count: int) -> NDArray[np.float64]:
    propensities = to_floats(raw, what="propensities").astype(np.float64)
    if propensities.shape != (count,):
        raise ShapeError(
            f"The propensities need shape ({count},), one for each context: got "
            f"{propensities.shape}. Leave out the contexts whose propensity is not known."
        )
    wrong = np.flatnonzero(~((propensities > 0.0) & (propensities <= 1.0)))
    if len(wrong):
        raise InputError(
            f"The propensities need to be above 0 and at most 1: got {propensities[wrong[0]]:g} in "
            f"row {wrong[0]} ({len(wrong)} such rows). Give the probability with which each arm "
            f"was taken, or leave propensities out."
        )
    return propensities
