"""Ranks are sent to a service that runs, with actions that its catalogue does not have."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from lab.benchmarks.rank import Row, _write_bodies, make_rows, measure


@pytest.mark.slow
def test_ranks_are_answered_over_one_connection_and_several() -> None:
    own = {"server.console": False}
    rows = measure(actions=5, features=3, seconds=0.2, workers=(1, 2), settings=own)

    assert [(row.workers, row.connections) for row in rows] == [*product((1, 2), (1, 4, 8))]
    assert all(row.per_second > 0 and row.p50_ms > 0 for row in rows)


@pytest.mark.parametrize("are_new", [False, True])
def test_actions_come_again_unless_they_are_new(are_new: bool, tmp_path: Path) -> None:
    _write_bodies(tmp_path / "bodies", 5, 3, are_new=are_new)

    ranks = list(map(json.loads, (tmp_path / "bodies").read_bytes().splitlines()))
    ids = [action["id"] for one in ranks for action in one["actions"]]
    assert (len({*ids}) == len(ids)) is are_new


def test_features_are_numbers_and_categories() -> None:
    (row,) = make_rows(1, 3, seed=0)

    assert [type(value) for value in row.values()] == [float, float, str]


def test_a_row_says_how_long_and_how_many() -> None:
    cells = Row(8, 2, 50, 30, 30_295, 4.567, 9.1, 1_234.5, 612.3, 45.6).cells()

    sizes = ("8 at a time", "2", "50", "30", "30,295")
    assert cells == (*sizes, "4.57", "9.10", "1,234", "612", "46")
