"""An id stands for one request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from fastbandit.serving.problems import Rejection
from fastbandit.serving.retries import check_same_request
from tests.serving.little_workers import decision


@pytest.mark.parametrize("change", [{}, {"version": 9}, {"arms": ["b"]}, {"scores": [0.1]}])
def test_a_retry_asks_the_same_whatever_is_decided_now(change: dict[str, Any]) -> None:
    made = decision("a")

    check_same_request(made, structs.replace(made, **change), is_named=False)


@pytest.mark.parametrize(
    "change", [{"context": [9.0]}, {"explored": False}, {"arms": ["a", "b"]}, {"eligible": ["a"]}]
)
def test_another_request_under_the_same_id_is_rejected(change: dict[str, Any]) -> None:
    made = decision("a")

    with pytest.raises(Rejection) as raised:
        check_same_request(made, structs.replace(made, **change), is_named=False)
    assert (raised.value.status, raised.value.problem.field) == (409, "id")


def test_another_arm_of_the_baseline_is_another_request_where_callers_name_it() -> None:
    made = decision("a", other="x")
    again = structs.replace(made, other="y")

    check_same_request(made, again, is_named=False)
    with pytest.raises(Rejection):
        check_same_request(made, again, is_named=True)
