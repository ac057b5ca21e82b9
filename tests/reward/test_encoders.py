"""Inputs of every kind become embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from fakes import vectors_of
from torch import Generator

from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.reward.encoders import encoder_for
from fastbandit.types import Inputs

BAGS = scipy.sparse.random(9, 40, density=0.1, format="csr", dtype=np.float32, random_state=4)
CASES: dict[str, tuple[Any, Any]] = {
    "dense": (Dense(3), vectors_of(9, 3)),
    "sparse": (Sparse(40), BAGS),
    "image": (Image(9, 12), vectors_of(9, 9 * 12).reshape(9, 9, 12)),
    "ids": (Ids(5), np.arange(9) % 5),
    "dense and ids": (FeaturesAndIds(Dense(3), Ids(9)), (vectors_of(9, 3), np.arange(9))),
    "sparse and ids": (FeaturesAndIds(Sparse(40), Ids(9)), (BAGS, np.arange(9))),
}


@pytest.mark.parametrize("case", CASES)
def test_every_row_is_embedded_by_itself(case: str, rng: Generator) -> None:
    kind, raw = CASES[case]
    inputs = kind.read(raw, what="contexts")
    encoder = encoder_for(kind, 6, rng=rng)
    encoder.fit(inputs)

    whole = encoder(inputs)

    assert whole.shape == (9, 6)
    assert whole.isfinite().all()
    alone = torch.cat([encoder(inputs.take(np.array([row]))) for row in range(9)])
    assert torch.allclose(alone, whole, atol=1e-5)
    stacked = encoder(Inputs.stack([inputs.take(slice(0, 4)), inputs.take(slice(4, 9))]))
    assert torch.allclose(stacked, whole, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_every_weight_of_an_encoder_learns(case: str, rng: Generator) -> None:
    kind, raw = CASES[case]
    inputs = kind.read(raw, what="contexts")
    encoder = encoder_for(kind, 6, rng=rng)
    encoder.fit(inputs)

    encoder(inputs).square().sum().backward()

    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_sparse_rows_are_never_made_dense(rng: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **settings: Any) -> None:
        raise AssertionError("a sparse matrix was made dense")

    for make in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(make, method, refuse)
    columns = np.arange(100) * 19_999
    wide = scipy.sparse.csr_matrix(
        (np.ones(100), columns, np.arange(0, 101, 2)), shape=(50, 2_000_000)
    )
    kind = Sparse(2_000_000)
    encoder = encoder_for(kind, 2, rng=rng)

    assert encoder(kind.read(wide, what="contexts")).shape == (50, 2)


def test_a_sparse_row_is_the_sum_of_its_words_at_length_1(rng: Generator) -> None:
    kind = Sparse(3)
    encoder = encoder_for(kind, 4, rng=rng)
    bags = scipy.sparse.csr_matrix(np.array([[3.0, 0, 4.0], [0, 0, 0], [0, -7.0, 0]]))

    embedded = encoder(kind.read(bags, what="contexts"))

    words: Any = encoder.weight
    assert torch.allclose(embedded[0], 0.6 * words[0] + 0.8 * words[2], atol=1e-6)
    assert not embedded[1].any()
    assert torch.allclose(embedded[2], -words[1], atol=1e-6)


def test_the_order_and_doubling_of_a_bags_words_do_not_matter(rng: Generator) -> None:
    kind = Sparse(4)
    encoder = encoder_for(kind, 4, rng=rng)
    doubled = scipy.sparse.csr_matrix(
        (np.array([1.0, 2, 1], dtype=np.float32), np.array([2, 0, 2]), np.array([0, 3])),
        shape=(1, 4),
    )
    plain = scipy.sparse.csr_matrix(np.array([[2.0, 0, 2.0, 0]]))

    one, two = (encoder(kind.read(bag, what="contexts")) for bag in (doubled, plain))

    assert torch.allclose(one, two, atol=1e-6)


def test_wildly_scaled_columns_are_standardised(rng: Generator) -> None:
    kind = Dense(4)
    encoder = encoder_for(kind, 6, rng=rng)
    plain = vectors_of(200, 4)
    wild = plain.astype(np.float64) * [1e-25, 1.0, 1e9, 1e25] + [0, 0, 3e9, 0]
    inputs = kind.read(wild, what="contexts")
    encoder.fit(inputs)

    standard: Any = encoder.standardise
    numbers = standard(torch.from_numpy(inputs.dense))

    assert torch.allclose(numbers.mean(0), torch.zeros(4), atol=1e-2)
    assert torch.allclose(numbers.std(0), torch.ones(4), atol=1e-2)


def test_a_constant_column_stays_finite(rng: Generator) -> None:
    kind = Dense(2)
    encoder = encoder_for(kind, 3, rng=rng)
    inputs = kind.read(np.array([[1.0, 5e8], [2.0, 5e8]]), what="contexts")
    encoder.fit(inputs)

    assert encoder(inputs).isfinite().all()


def test_the_scale_is_learned_once_and_kept(rng: Generator) -> None:
    kind = Dense(2)
    encoder = encoder_for(kind, 3, rng=rng)
    first = kind.read(vectors_of(20, 2), what="contexts")
    encoder.fit(first)
    before = encoder(first)

    encoder.fit(kind.read(vectors_of(20, 2) * 100, what="contexts"))

    assert torch.equal(encoder(first), before)


def standardise(numbers: Any, rng: Generator) -> Any:
    """Give the scale of columns of numbers."""
    encoder: Any = encoder_for(Dense(numbers.shape[1]), 3, rng=rng)
    encoder.fit(Dense(numbers.shape[1]).read(numbers, what="contexts"))
    return encoder.standardise


@pytest.mark.parametrize("far", [1e6, 1e30])
def test_one_far_number_hardly_moves_the_scale(far: float, rng: Generator) -> None:
    plain = vectors_of(1500, 2)
    wild = plain.copy()
    wild[3, 1] = far

    one, two = standardise(plain, rng), standardise(wild, rng)

    assert torch.allclose(one.shift, two.shift, atol=0.01)
    assert torch.allclose(one.scale, two.scale, rtol=0.02)
    assert two(torch.from_numpy(wild)).abs().max() < 8


@pytest.mark.parametrize("kind", ["normal", "uniform", "flags", "rare counts"])
def test_ordinary_numbers_have_their_own_mean_and_deviation(
    kind: str, numbers: np.random.Generator, rng: Generator
) -> None:
    made = {
        "normal": numbers.normal(3, 20, size=(1500, 1)),
        "uniform": numbers.uniform(-1, 7, size=(1500, 1)),
        "flags": numbers.random((1500, 1)) < 0.01,
        "rare counts": numbers.poisson(3, (1500, 1)) * (numbers.random((1500, 1)) < 0.02),
    }[kind].astype(np.float32)

    standard = standardise(made, rng)

    std = 1.0 if kind == "flags" else made.std(dtype=np.float64)
    assert standard.shift.item() == pytest.approx(made.mean(dtype=np.float64), rel=1e-6)
    assert standard.scale.item() == pytest.approx(std, rel=1e-6)
    assert ((made >= standard.low.item()) & (made <= standard.high.item())).all()


def test_a_long_tail_is_kept_but_for_its_end(numbers: np.random.Generator, rng: Generator) -> None:
    votes = np.exp(2 * numbers.normal(size=(1500, 1))).astype(np.float32)

    standard = standardise(votes, rng)

    seen = standard(torch.from_numpy(votes)).numpy()
    assert 0 < (votes > standard.high.item()).mean() <= 0.011
    assert len(np.unique(seen)) > 0.98 * len(np.unique(votes))
    assert seen.max() < 12


def test_what_is_cut_widens_with_what_is_usual(rng: Generator) -> None:
    standard = standardise(vectors_of(20, 2), rng)
    far = torch.full((1, 2), 60.0)
    before = standard(far)

    standard.fit(100 * vectors_of(20, 2))

    assert before.abs().max() < 20
    assert torch.allclose(standard(far), (far - standard.shift) / standard.scale)


def test_a_scale_saved_without_bounds_cuts_nothing(rng: Generator) -> None:
    standard = standardise(vectors_of(20, 2), rng)
    old = {
        name: kept for name, kept in standard.state_dict().items() if name not in ("low", "high")
    }
    loaded: Any = encoder_for(Dense(2), 3, rng=rng)

    loaded.standardise.load_state_dict(old)
    loaded.standardise.fit(vectors_of(20, 2))

    far = torch.full((1, 2), 1e9)
    assert torch.equal(loaded.standardise(far), (far - standard.shift) / standard.scale)


def test_ids_that_came_later_are_zeros_until_the_next_fit(rng: Generator) -> None:
    encoder = encoder_for(Ids(3), 4, rng=rng)
    later = Inputs(ids=np.array([1, 5]))
    known = encoder(later)[0].clone()

    assert not encoder(later)[1].any()
    encoder.fit(later)

    assert encoder(later)[1].any()
    assert torch.equal(encoder(later)[0], known)


def test_columns_of_zeros_and_ones_are_only_shifted(rng: Generator) -> None:
    kind = Dense(3)
    encoder = encoder_for(kind, 6, rng=rng)
    rare = np.zeros((100, 1), dtype=np.float32)
    rare[0] = 1
    inputs = kind.read(np.hstack([rare, 2 * rare, 1 - rare]), what="contexts")
    encoder.fit(inputs)

    standard: Any = encoder.standardise
    numbers = standard(torch.from_numpy(inputs.dense))

    assert torch.allclose(numbers.mean(0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(numbers[0], torch.tensor([0.99, 99**0.5, -0.99]), atol=1e-3)
    assert torch.allclose(numbers[1], torch.tensor([-0.01, -(99**-0.5), 0.01]), atol=1e-3)


def test_images_of_zeros_and_ones_are_scaled_as_one(rng: Generator) -> None:
    kind = Image(8, 8)
    encoder = encoder_for(kind, 6, rng=rng)
    inputs = kind.read(np.eye(8)[None].repeat(3, axis=0), what="contexts")
    encoder.fit(inputs)

    standard: Any = encoder.standardise
    numbers = standard(torch.from_numpy(inputs.dense))

    assert numbers.mean().item() == pytest.approx(0, abs=1e-5)
    assert numbers.std(correction=0).item() == pytest.approx(1, abs=1e-5)


PENALISED = {
    "dense": ["linear.weight"],
    "sparse": ["weight"],
    "image": ["linear.weight"],
    "ids": ["weight"],
    "dense and ids": ["features.linear.weight", "ids.weight"],
    "sparse and ids": ["features.weight", "ids.weight"],
}
"""The weights that turn the inputs of each encoder into embeddings."""


@pytest.mark.parametrize("case", CASES)
def test_an_encoder_is_penalised_for_its_squared_weights(case: str, rng: Generator) -> None:
    encoder = encoder_for(CASES[case][0], 6, rng=rng)
    weights = dict(encoder.named_parameters())

    expected = sum(weights[name].square().sum().item() for name in PENALISED[case])

    assert expected > 0
    assert encoder.weight_penalty().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_penalty_pulls_every_weight_towards_nothing(case: str, rng: Generator) -> None:
    encoder = encoder_for(CASES[case][0], 6, rng=rng)

    encoder.weight_penalty().backward()

    weights = dict(encoder.named_parameters())
    for name in PENALISED[case]:
        slope = weights[name].grad
        assert slope is not None, name
        assert torch.allclose(slope, 2 * weights[name].detach()), name
