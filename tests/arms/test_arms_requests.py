"""What every bandit reads and answers."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.arms.ids import IdTable
from fastbandit.arms.requests import ArmTable, read_arms, read_context, take_best
from fastbandit.arms.rows import ArmRows
from fastbandit.errors import SettingError, ShapeError
from fastbandit.features.kinds import Dense

TABLE = ArmTable(IdTable([*"abc"]), Dense(2), "real", seed=3)
CONTEXTS = np.zeros((4, 2), dtype=np.float32)


def test_a_request_has_a_seed_for_each_context() -> None:
    one = TABLE.read_request(CONTEXTS, k=1, eligible=None, first=0)
    later = TABLE.read_request(CONTEXTS, k=1, eligible=None, first=2)

    assert len(set(one.seeds.tolist())) == 4
    assert one.seeds[2:].tolist() == later.seeds[:2].tolist()


def test_a_request_reads_predicates_where_rows_have_columns() -> None:
    rows = ArmRows.of(TABLE.ids, columns={"price": [1, 2, 3]})

    request = TABLE.read_request(CONTEXTS, k=1, eligible={"price": 2}, first=0, rows=rows)

    assert request.eligible is not None
    assert request.eligible.tolist() == [[False, True, False]]


def test_a_uniform_decision_keeps_to_what_is_eligible() -> None:
    request = TABLE.read_request(CONTEXTS, k=2, eligible=["c", "a"], first=0)

    decision = TABLE.decide_uniformly(request, version=0)

    assert all(sorted(arms) == ["a", "c"] for arms in decision.arms)  # type: ignore[type-var]
    assert decision.uniform


def test_feedback_needs_an_arm_for_each_context() -> None:
    with pytest.raises(ShapeError, match="4 contexts and 1 arms"):
        TABLE.read_feedback(contexts=CONTEXTS, arms=["a"], rewards=[1.0] * 4)


def test_no_arms_at_all_are_rejected() -> None:
    with pytest.raises(SettingError, match="neither features nor ids"):
        read_arms(None, None)


def test_a_context_is_a_number_of_features_or_a_kind() -> None:
    assert read_context(3) == Dense(3)
    with pytest.raises(SettingError, match="number of its features"):
        read_context(0)


def test_the_best_eligible_rows_come_first() -> None:
    scores, eligible = np.array([[1.0, 3.0, 2.0]]), np.array([[True, False, True]])

    rows, best = take_best(scores, eligible, count=3)

    assert rows.tolist() == [[2, 0, -1]]
    assert best.tolist() == [[2.0, 1.0, -np.inf]]
