"""Inputs, interactions and decisions: rows that are taken and joined together."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from fastbandit.types import Decision, Inputs, Interactions


def inputs(*values: float) -> Inputs:
    dense = np.array(values, dtype=np.float32)[:, None]
    return Inputs(dense, csr_matrix(dense), np.arange(len(values)))


def interactions(count: int, *, weights: bool = False, rows: bool = True) -> Interactions:
    values = inputs(*range(count))
    return Interactions(
        values,
        values,
        np.arange(count, dtype=np.float32),
        np.full(count, 0.5) if weights else None,
        np.arange(count) if rows else None,
    )


def test_rows_of_all_kinds_are_taken_together() -> None:
    taken = inputs(5.0, 6.0, 7.0).take(np.array([2, 0]))

    assert len(taken) == 2
    assert taken.dense is not None
    assert taken.sparse is not None
    assert taken.ids is not None
    assert taken.dense[:, 0].tolist() == [7.0, 5.0]
    assert taken.sparse.toarray()[:, 0].tolist() == [7.0, 5.0]
    assert taken.ids.tolist() == [2, 0]


def test_inputs_that_are_cut_and_joined_are_the_same() -> None:
    whole = inputs(5.0, 6.0, 7.0)

    again = Inputs.stack([whole.take(slice(0, 1)), whole.take(slice(1, 3))])

    assert np.array_equal(again.dense, whole.dense)
    assert (again.sparse != whole.sparse).nnz == 0
    assert np.array_equal(again.ids, whole.ids)


def test_interactions_without_weights_count_once() -> None:
    joined = Interactions.stack([interactions(2), interactions(3, weights=True)])

    assert joined.weights is not None
    assert joined.weights.tolist() == [1.0, 1.0, 0.5, 0.5, 0.5]
    assert joined.total == 3.5
    assert interactions(4).total == 4.0


def test_rows_are_known_only_if_all_are() -> None:
    assert Interactions.stack([interactions(2), interactions(1, rows=False)]).rows is None
    assert Interactions.stack([interactions(2), interactions(1)]).rows is not None


def test_interactions_are_taken_with_their_weights_and_rows() -> None:
    taken = interactions(4, weights=True).take(slice(1, 3))

    assert len(taken) == 2
    assert taken.rows is not None
    assert taken.weights is not None
    assert taken.rewards.tolist() == [1.0, 2.0]
    assert taken.rows.tolist() == [1, 2]
    assert taken.weights.tolist() == [0.5, 0.5]


def test_a_decision_is_of_contexts_that_were_not_clipped_unless_it_says_so() -> None:
    counts = np.zeros(2, dtype=np.int64)
    decision = Decision(
        arms=["a", "b"],
        rows=counts[:, None],
        scores=np.zeros((2, 1), dtype=np.float32),
        seeds=np.arange(2, dtype=np.uint64),
        version=0,
        uniform=True,
        evaluations=counts,
        lookups=counts,
    )

    assert len(decision) == 2
    assert decision.clipped.tolist() == [False, False]
