"""A log among the arms of a frozen bandit: all that there are, and what describes each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.tables import UNTAKEN
from fastbandit.runtime.frozen import FrozenBandit

_TAKEN_OVER = "arms, and what describes them, are those of the snapshot"
MOST_ARMS = 2**20
"""More are not taken over: their ids alone would fill the memory."""


def with_arms_of(rounds: LoggedRounds, bandit: FrozenBandit) -> LoggedRounds:
    """Return the same rounds among all arms of a bandit, with their coordinates as features.

    Rounds stay as they are where they have features, where the bandit knows arms by ids alone or
    has too many, and where some arm that was taken is none of its arms now.
    """
    _, catalogue, codec = bandit.parts
    if rounds.vectors is not None or rounds.ids is None or not codec.arm.is_dense:
        return rounds
    if len(catalogue) > MOST_ARMS:
        return rounds
    rows, live = catalogue.rows.live_rows_of(list(rounds.ids)), catalogue.rows.live_rows
    if (rows < 0).any():
        return rounds
    return replace(
        rounds,
        chosen=np.searchsorted(live, rows)[rounds.chosen],
        ids=catalogue.ids.ids(live),
        arms=len(catalogue),
        vectors=catalogue.points_of(live),
        notes=(*(note for note in rounds.notes if note != UNTAKEN), _TAKEN_OVER),
    )
