"""Contexts near those of a history."""

from __future__ import annotations

import torch
from fakes import vectors_of

from fastbandit.optim.nearby import contexts_near, embed_all
from fastbandit.types import Inputs


def test_without_jitter_contexts_are_those_of_the_history() -> None:
    embedded = torch.from_numpy(vectors_of(5, 3))

    near = contexts_near(embedded, 40, 0.0, rng=torch.Generator().manual_seed(1))

    assert near.shape == (40, 3)
    assert torch.cdist(near, embedded).amin(1).max() < 1e-3


def test_jitter_moves_contexts_along_differences_of_others() -> None:
    embedded = torch.tensor([[0.0, 0.0], [1.0, 0.0]])

    near = contexts_near(embedded, 400, 0.5, rng=torch.Generator().manual_seed(1))

    assert (near[:, 1] == 0).all()
    assert near[:, 0].min() < -0.1
    assert near[:, 0].min() >= -0.5
    assert near[:, 0].max() <= 1.5


def test_the_same_rng_draws_the_same_contexts() -> None:
    embedded = torch.from_numpy(vectors_of(5, 3))

    one, two = (
        contexts_near(embedded, 9, 0.5, rng=torch.Generator().manual_seed(7)) for _ in range(2)
    )

    assert torch.equal(one, two)


def test_many_contexts_are_embedded_in_their_order_a_chunk_at_a_time() -> None:
    contexts, sizes = Inputs(dense=vectors_of(10_000, 2)), []

    def embed(inputs: Inputs) -> torch.Tensor:
        sizes.append(len(inputs))
        return torch.as_tensor(inputs.dense)

    embedded = embed_all(embed, contexts)

    assert torch.equal(embedded, torch.as_tensor(contexts.dense))
    assert sizes == [8192, 10_000 - 8192]
