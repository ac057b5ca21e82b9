"""Policies that learned nothing decide like any other."""

from __future__ import annotations

import numpy as np

from fastbandit.search.exhaustive import Exhaustive
from lab.planning.untrained import untrained


def test_an_untrained_policy_decides_by_either_search() -> None:
    policy = untrained(300, 3, hidden=8)

    for search in (policy.search, Exhaustive()):
        frozen = policy.frozen(search)
        rows = {frozen.select_one(np.ones(3, np.float32), seed=seed).row for seed in range(20)}

        assert len(frozen) == 300
        assert rows <= set(range(300))
        assert len(rows) > 1  # each seed is another draw
