"""Events that a log could not return exactly are rejected."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from little_exports import made

from fastbandit.errors import InputError, NotFiniteError
from fastbandit.storage.events import Arm, ArmsChanged, Event, RewardCame, TimePassed
from fastbandit.storage.log_input import check_events, text_of


def test_ordinary_events_pass() -> None:
    check_events(
        [made("a", ("x", 2**63 - 1)), RewardCame("a", 1.0), ArmsChanged([Arm(7, [0.5])], ["x"])]
    )
    check_events([TimePassed()])


def test_numbers_whose_sum_overflows_pass() -> None:
    largest = 1.7976931348623157e308
    check_events([made("a", propensities=[largest, largest])])


@pytest.mark.parametrize(
    "event",
    [
        made("a", propensities=[nan]),
        made("a", default_reward=inf),
        made("a", epsilon=nan),
        RewardCame("a", -inf),
        ArmsChanged([Arm("x", [0.0, nan])]),
    ],
)
def test_a_number_that_is_not_finite_is_an_error(event: Event) -> None:
    with pytest.raises(NotFiniteError, match="needs finite numbers"):
        check_events([TimePassed(), event])


@pytest.mark.parametrize(
    "event",
    [
        made("a", seed=2**63),
        made("a", (2**63,)),
        made("a", other=-(2**63) - 1),
        RewardCame("a", 1.0, 2**63),
        ArmsChanged([Arm(2**63, [])]),
        ArmsChanged(discarded=[2**63]),
    ],
)
def test_a_whole_number_of_more_than_64_bits_is_an_error(event: Event) -> None:
    with pytest.raises(InputError, match="at most 64 bits"):
        check_events([event])


@pytest.mark.parametrize("value", ["\ud800", {"a": object()}])
def test_what_json_cannot_hold_is_an_error(value: Any) -> None:
    with pytest.raises(InputError, match="An event needs"):
        text_of(value)
