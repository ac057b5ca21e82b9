"""Features by name, each of which can be set back to what is typical."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.runtime.feature_groups import MOST, FeatureGroups, names_and_spans
from fastbandit.types import Inputs

ROW = Inputs(dense=np.array([[1.0, 2.0, 3.0]], np.float32))


def test_columns_without_a_schema_are_numbered() -> None:
    assert names_and_spans(Dense(2), prefix="arm") == {"arm[0]": slice(0, 1), "arm[1]": slice(1, 2)}


def test_a_schema_names_spans_of_columns() -> None:
    kind: Any = SimpleNamespace(dim=3, schema=SimpleNamespace(spans={"age": slice(0, 3)}))

    assert names_and_spans(kind, prefix="context") == {"age": slice(0, 3)}


def test_an_image_is_one_feature() -> None:
    assert names_and_spans(Image(8, 8), prefix="context") == {"context": slice(0, 64)}


def test_very_many_columns_share_names() -> None:
    spans = names_and_spans(Dense(1000), prefix="context")

    assert len(spans) <= MOST
    assert spans["context[996:1000]"] == slice(996, 1000)


def test_what_is_not_there_is_typical() -> None:
    groups = FeatureGroups.of(ROW, Dense(3), typical=[7.0, 8.0, 9.0], prefix="context")

    mixed = groups.mixed(np.array([[True, False, True]]))

    assert mixed.dense is not None
    assert mixed.dense.tolist() == [[1.0, 8.0, 3.0]]


def test_a_sparse_row_has_a_group_for_each_entry() -> None:
    row = Inputs(sparse=csr_matrix(np.array([[0.0, 2.0, 0.0, 3.0]], np.float32)))
    groups = FeatureGroups.of(row, Sparse(4), prefix="context")

    mixed = groups.mixed(np.array([[False, True]]))

    assert groups.names == ("context[1]", "context[3]")
    assert mixed.sparse is not None
    assert mixed.sparse.toarray().tolist() == [[0.0, 0.0, 0.0, 3.0]]


def test_an_id_is_the_last_group() -> None:
    kind = FeaturesAndIds(Dense(3), Ids(5))
    row = Inputs(dense=ROW.dense, ids=np.array([4]))
    groups = FeatureGroups.of(row, kind, prefix="arm", id_name="arm itself")

    mixed = groups.mixed(np.array([[True] * 4, [True, True, True, False]]))

    assert groups.names[-1] == "arm itself"
    assert mixed.ids is not None
    assert mixed.ids[0] == 4 < mixed.ids[1]
