"""Compiled layers and their bends, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.runtime.network import bend, linear, squash


@pytest.mark.parametrize("width", [1, 7, 8, 33])
@pytest.mark.parametrize("inputs", [4, 8, 60])
def test_a_layer_is_a_sum_over_its_inputs(inputs: int, width: int) -> None:
    weights, biases = vectors_of(inputs, width), vectors_of(1, width, seed=1)[0]
    numbers, sums = vectors_of(1, inputs, seed=2)[0], np.empty(width, dtype=np.float32)

    linear(weights, biases, numbers, sums)

    np.testing.assert_allclose(sums, biases + numbers @ weights, rtol=1e-5, atol=1e-5)


def test_squashing_is_a_hyperbolic_tangent() -> None:
    numbers = np.linspace(-12, 12, 4001, dtype=np.float32)
    squashed = numbers.copy()

    squash(squashed, len(squashed))

    np.testing.assert_allclose(squashed, np.tanh(numbers.astype(np.float64)), atol=5e-7)


def test_a_bend_keeps_a_tenth_of_what_lies_below_zero() -> None:
    numbers = np.array([-2, -0.5, 0, 3, -7], dtype=np.float32)

    bend(numbers, 4)

    np.testing.assert_allclose(numbers, [-0.2, -0.05, 0, 3, -7])
