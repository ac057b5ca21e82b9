"""What arms' own constants cost one decision."""

from __future__ import annotations

from lab.benchmarks.arm_effects import Row, compare


def test_the_search_with_two_lists_finds_what_a_scan_finds(little_training: None) -> None:
    found = compare(600, repeats=1, asked=20)

    assert (found.arms, found.chosen) == (600, 200)
    assert found.quality > 0.95
    assert found.ratio > 0
    assert found.bytes_per_arm > 8


def test_a_row_has_ratio_quality_and_bytes() -> None:
    row = Row(10_000, 3_333, 20.0, 25.0, 1.25, 0.99912, 114.2)

    assert row.cells() == ("10,000", "3,333", "20.0", "25.0", "1.25", "0.9991", "114")
