"""The bound itself."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.runtime.bound import AT_ONCE, bound_of, variances_of


def test_a_bound_lies_a_width_above_the_mean() -> None:
    one, two = (bound_of(np.float32(1.0), np.float32(4.0), np.float32(w), 1) for w in (1, 2))

    assert one == pytest.approx(3.0)
    assert two == pytest.approx(5.0)


def test_a_variance_is_the_length_of_what_the_root_makes_of_a_gradient() -> None:
    root = np.tril(np.random.default_rng(1).normal(size=(5, 5))).astype(np.float32)
    gradients = np.zeros((3 + AT_ONCE, 5), np.float32)
    gradients[:3] = np.random.default_rng(2).normal(size=(3, 5))
    variances = np.empty(3, np.float32)

    variances_of(root, gradients, 3, variances)

    assert variances == pytest.approx(np.square(gradients[:3] @ root.T).sum(1), rel=1e-4)
