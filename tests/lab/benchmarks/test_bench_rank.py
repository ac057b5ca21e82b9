"""Ranks are sent to a service that runs, with actions that its catalogue does not have."""

from __future__ import annotations

import pytest

from lab.benchmarks.rank import Row, make_rows, measure


@pytest.mark.slow
def test_ranks_are_answered_over_one_connection_and_several() -> None:
    rows = measure(actions=5, features=3, seconds=0.2, settings={"server.console": False})

    assert [row.connections for row in rows] == [1, 4, 8]
    assert all(row.per_second > 0 and row.p50_ms > 0 for row in rows)


def test_features_are_numbers_and_categories() -> None:
    (row,) = make_rows(1, 3, seed=0)

    assert [type(value) for value in row.values()] == [float, float, str]


def test_a_row_says_how_long_and_how_many() -> None:
    cells = Row(8, 50, 30, 30_295, 4.567, 9.1, 1_234.5).cells()

    assert cells == ("8 at a time", "50", "30", "30,295", "4.57", "9.10", "1,234")
