"""Weights say whether to trust an estimate."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.evaluation.diagnostics import diagnose


def test_the_effective_size_is_the_one_of_its_formula() -> None:
    found = diagnose(np.array([1.0, 3.2, 2.5, 2.0]))

    assert found.effective_size == pytest.approx(8.7**2 / 21.49, abs=1e-9)
    assert found.mean_weight == pytest.approx(8.7 / 4, abs=1e-9)
    assert found.largest_weight == 3.2
    assert found.match_share == 1.0


def test_weights_whose_mean_is_far_from_1_are_reported() -> None:
    words = diagnose(np.full(1_000, 0.5)).sentences

    assert any("should be near 1: the policy takes arms that the log hardly" in w for w in words)


def test_noisy_weights_are_reported() -> None:
    weights = np.zeros(1_000)
    weights[0] = 3_000.0

    assert any("too noisy to tell" in said for said in diagnose(weights).sentences)
