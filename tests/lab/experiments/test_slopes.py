"""Slopes of logarithms, their intervals, and tables of what grows."""

import numpy as np
import pytest

from lab.experiments.slopes import format_bytes, growth_table, slope_numbers, slope_of


def test_the_slope_is_that_of_logarithms() -> None:
    found = slope_of([10, 100, 1000], [2.0, 20.0, 200.0])

    assert found is not None
    assert found.mean == pytest.approx(1.0)
    assert found.half == pytest.approx(0.0, abs=1e-9)


def test_two_sizes_have_a_slope_without_an_interval_and_one_has_none() -> None:
    flat = slope_of([10, 1000], [3.0, 3.0])

    assert flat is not None
    assert flat.mean == pytest.approx(0.0)
    assert flat.half is None
    assert slope_of([10], [3.0]) is None
    assert slope_numbers("slope", None) == {"slope": None, "slope_half": None}


def test_intervals_hold_the_true_slope_about_19_times_in_20() -> None:
    rng = np.random.default_rng(0)
    sizes, held = [10, 30, 100, 300, 1000], 0
    for _ in range(400):
        values = np.array(sizes) ** 0.5 * np.exp(0.2 * rng.standard_normal(5))
        found = slope_of(sizes, values.tolist())
        assert found is not None
        assert found.half is not None
        held += abs(found.mean - 0.5) <= found.half

    assert held / 400 == pytest.approx(0.95, abs=0.03)


def test_a_table_has_a_column_for_each_size_and_the_slope_to_a_cap() -> None:
    results = [
        {"policy": "one", "rounds": [10, 100, 1000], "bytes": [10, 100, 100]},
        {"policy": "two", "rounds": [10], "bytes": [2_500_000]},
    ]

    table = growth_table(
        results, over="rounds", of="bytes", letter="T", form=format_bytes, until=100
    )

    assert table.headings == ("policy", "T = 10", "T = 100", "T = 1,000", "slope to 100", "slope")
    assert table.rows[0][:5] == ("one", "10 B", "100 B", "100 B", "1.00")
    assert table.rows[1] == ("two", "2.5 MB", "–", "–", "–", "–")
