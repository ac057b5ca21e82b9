"""Models and steps become arrays that compiled code reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import vectors_of

from fastbandit import Dense
from fastbandit.reward.encoders import DenseEncoder
from fastbandit.runtime.effects import BOUNDED, DRAWN
from fastbandit.runtime.model_arrays import bounds_of, effects_arrays, frozen, matrix_of
from fastbandit.score import Affine
from fastbandit.types import Inputs

NUMBERS = 3.0 + 2.0 * vectors_of(50, 4)


def encoder_of(numbers: np.ndarray | None = NUMBERS) -> DenseEncoder:
    encoder = DenseEncoder(Dense(4), 3, rng=torch.Generator().manual_seed(1))
    if numbers is not None:
        encoder.fit(Inputs(dense=numbers))
    return encoder


def test_a_frozen_tensor_is_read_only_and_of_32_bits() -> None:
    array = frozen(torch.ones(2, dtype=torch.float64, requires_grad=True))

    assert array.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2.0


def test_a_matrix_takes_in_the_scale_of_columns() -> None:
    encoder = encoder_of()

    matrix = matrix_of(encoder).detach().numpy()

    expected = encoder(Inputs(dense=NUMBERS)).detach().numpy()
    np.testing.assert_allclose(NUMBERS @ matrix[:, :-1].T + matrix[:, -1], expected, atol=1e-4)


def test_an_encoder_that_saw_nothing_cuts_nothing() -> None:
    assert bounds_of(encoder_of(None)).size == 0


def test_bounds_lie_around_the_numbers_that_were_seen() -> None:
    low, high = bounds_of(encoder_of())

    assert (low <= NUMBERS.min(0)).all()
    assert (high >= NUMBERS.max(0)).all()


@pytest.mark.parametrize(("is_drawn", "kind"), [(True, DRAWN), (False, BOUNDED)])
def test_arms_without_effects_yet_have_blank_weights(is_drawn: bool, kind: int) -> None:
    place = Affine(axes=torch.eye(2), centre=torch.zeros(2))

    arrays = effects_arrays(None, 0.5, is_drawn=is_drawn, to_embedding=place, dim=2)

    assert arrays.counts[1] == kind
    assert arrays.numbers[0] == np.float32(0.5)
    assert arrays.own_means.shape == (0, 1)
