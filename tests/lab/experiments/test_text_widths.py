"""Held-out losses of a synthetic shop, by the width of its texts."""

from __future__ import annotations

from lab.experiments.text_widths import measure


def test_a_loss_stands_beside_those_of_a_constant_and_the_truth(little_training: None) -> None:
    rows = list(measure(0, 60, (4, 8), held_out=500))

    assert [(row.rounds, row.width) for row in rows] == [(60, 4), (60, 8)]
    assert all(row.truth < row.constant and row.loss > 0 for row in rows)
    assert len(rows[0].cells()) == 6
