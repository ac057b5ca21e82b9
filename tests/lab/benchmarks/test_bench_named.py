"""Selects by name are sent in alternation with lists, to services that run."""

from __future__ import annotations

import pytest

from lab.benchmarks.named import NAMED, Row, measure


@pytest.mark.slow
def test_selects_by_name_stand_beside_lists() -> None:
    rows = measure(arms=30, seconds=0.5, rounds=1, settings={"server.console": False})

    assert (rows[0].what, rows[0].numbers) == (NAMED, 216)
    assert [row.numbers for row in rows[1:]] == [216, 20]
    assert all(row.per_second > 0 and row.share > 0 for row in rows)


def test_a_share_has_an_interval() -> None:
    cells = Row("as lists", 248, 1_204, 5_000.0, 0.97, 0.95, 0.99, 150.0, 0.98).cells()

    assert cells == ("as lists", "248", "1,204", "5,000", "0.97 [0.95, 0.99]", "150", "0.98")
