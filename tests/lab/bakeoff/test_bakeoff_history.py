"""A history holds all interactions of an agent, and scales contexts by all of them."""

from __future__ import annotations

import numpy as np

from fastbandit.features.kinds import Dense
from lab.bakeoff.history import History


def test_a_history_scales_by_all_contexts_so_far() -> None:
    history = History(Dense(1))
    history.add(np.array([[0.0], [2.0]]), [0, 1], [0.0, 1.0])
    early = history.show(np.array([[2.0]]))
    history.add(np.array([[4.0], [6.0]]), [0, 0], [1.0, 1.0])

    assert early == 1.0
    assert history.show(np.array([[3.0]])) == 0.0
    assert history.vectors().shape == (4, 1)
    np.testing.assert_array_equal(history.rows, [0, 1, 0, 0])
