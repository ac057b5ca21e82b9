"""Every way to explore and search decides as it did when its decisions were recorded."""

from __future__ import annotations

import json

import pytest
from golden_bandits import COMBINATIONS, RECORDED, Combination, compare, record_of

WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "combination",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.is_slow else [])
        for one in COMBINATIONS
    ],
)
def test_decisions_are_those_recorded(combination: Combination) -> None:
    wanted, got = WANTED[combination.name], record_of(combination)
    compare(combination.name, wanted, got, alike=combination.alike)


def test_every_recorded_combination_is_tried() -> None:
    assert list(WANTED) == [one.name for one in COMBINATIONS]
