"""Explanations are timed, and their parts added up."""

from __future__ import annotations

import json

from click.testing import CliRunner

from lab.__main__ import cli
from lab.benchmarks.explain import MOST_GAP, Row


def test_explanations_of_the_library_and_frozen_are_measured(little_training: None) -> None:
    done = CliRunner().invoke(
        cli, ["bench", "explain", "--arms=30", "--calls=2", "--json"], catch_exceptions=False
    )
    rows = json.loads(done.output)

    assert [(row["what"], row["features"]) for row in rows] == [
        ("library", 20),
        ("frozen", 20),
        ("library", 50),
        ("frozen", 50),
    ]
    assert all(row["gap"] <= MOST_GAP for row in rows)


def test_a_row_stands_beside_its_bars() -> None:
    cells = Row("frozen", 20, 2_000, 0.5, 0.8, 1e-16).cells()

    assert cells == ("frozen", "20", "2,000", "0.50", "0.80", "1.0e-16", "1 ms, 1e-06")
