"""Arms from a faiss index, or from a table of embeddings."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest
import torch
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.adapters.arm_tables import arms_from_faiss, arms_from_table
from fastbandit.errors import InputError, SettingError, ShapeError

VECTORS = vectors_of(300, 8)
IDS = np.arange(300)[::-1] * 7 + 1


def flat() -> Any:
    index = faiss.IndexFlatIP(8)
    index.add(VECTORS)
    return index


def with_ids(inner: Any) -> Any:
    index = faiss.IndexIDMap2(inner)
    index.add_with_ids(VECTORS, IDS)
    return index


def in_lists(ids: Any = None) -> Any:
    index = faiss.index_factory(8, "IVF4,Flat")
    index.train(VECTORS)
    if ids is None:
        index.add(VECTORS)
    else:
        index.add_with_ids(VECTORS, ids)
    return index


def test_vectors_come_out_of_a_flat_index() -> None:
    known = arms_from_faiss(flat())

    assert np.array_equal(known.features, VECTORS)
    assert known.ids == list(range(300))


@pytest.mark.parametrize(
    "index",
    [
        with_ids(faiss.IndexFlatL2(8)),
        with_ids(faiss.IndexHNSWFlat(8, 8)),
        in_lists(IDS),
        faiss.deserialize_index(faiss.serialize_index(in_lists(IDS))),
    ],
)
def test_ids_go_with_their_vectors(index: Any) -> None:
    known = arms_from_faiss(index)

    found = dict(zip(known.ids, known.features.tolist(), strict=True))
    assert found == dict(zip(IDS.tolist(), VECTORS.tolist(), strict=True))
    assert known.ids == sorted(known.ids)


def test_lists_without_ids_are_put_in_order() -> None:
    assert np.array_equal(arms_from_faiss(in_lists()).features, VECTORS)


def test_ids_can_be_given_by_name() -> None:
    names = [f"item {number}" for number in range(300)]

    assert arms_from_faiss(flat(), ids=names).ids == names
    with pytest.raises(ShapeError, match="2 ids and 300 vectors"):
        arms_from_faiss(flat(), ids=["a", "b"])


def test_vectors_in_fewer_bits_come_back_near() -> None:
    index = faiss.index_factory(8, "SQ8")
    index.train(VECTORS)
    index.add(VECTORS)

    assert np.abs(arms_from_faiss(index).features - VECTORS).max() < 0.05


def test_an_empty_index_is_rejected() -> None:
    with pytest.raises(InputError, match="Add the vectors first"):
        arms_from_faiss(faiss.IndexFlatL2(8))


def test_known_arms_are_what_a_bandit_takes() -> None:
    known = arms_from_faiss(in_lists(IDS))

    bandit = Bandit(arms=known.features, ids=known.ids, context=4)

    assert (len(bandit), len(known)) == (300, 300)
    assert bandit.select(np.zeros((1, 4))).arms[0] in known.ids


# -- tables


def test_a_table_may_be_an_array_a_tensor_or_a_layer() -> None:
    layer = torch.nn.Embedding.from_pretrained(torch.from_numpy(VECTORS))

    for table in (VECTORS, torch.from_numpy(VECTORS), layer, layer.state_dict()):
        assert np.array_equal(arms_from_table(table).features, VECTORS)


def test_an_entry_of_a_state_dict_is_named() -> None:
    towers = {"user.weight": torch.zeros(2, 8), "item.weight": torch.from_numpy(VECTORS)}

    assert len(arms_from_table(towers, name="item.weight")) == 300
    with pytest.raises(SettingError, match=r"user\.weight, item\.weight"):
        arms_from_table(towers)


def test_padding_is_no_arm() -> None:
    known = arms_from_table(VECTORS[:3], ids=["pad", "a", "b"], leave_out=[0])

    assert known.ids == ["a", "b"]
    assert np.array_equal(known.features, VECTORS[1:3])


def test_a_table_needs_rows_and_ids_of_one_length() -> None:
    with pytest.raises(ShapeError, match="2 ids and 3 vectors"):
        arms_from_table(VECTORS[:3], ids=["a", "b"])
    with pytest.raises(ShapeError, match="shape"):
        arms_from_table(np.zeros(3))
