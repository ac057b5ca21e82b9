"""Seeds of decisions: numbered, or given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.errors import SettingError, ShapeError
from fastbandit.runtime.seeds import SeedCounter, read_seed


def test_a_seed_is_that_of_its_number() -> None:
    counter = SeedCounter(7, 0)

    first, seeds = counter.seeds_for(3, None)

    assert first == 0
    assert seeds.tolist() == [counter.seed_of(number) for number in range(3)]
    assert counter.decisions == 3


def test_given_seeds_are_not_counted() -> None:
    counter = SeedCounter(7, 5)

    assert counter.seeds_for(2, [1, 2])[0] is None
    assert counter.decisions == 5


def test_a_number_is_given_back_unless_others_followed() -> None:
    counter = SeedCounter(7, 0)
    counter.give_back(counter.take(2), 2)
    first = counter.take(2)
    counter.take(1)

    counter.give_back(first, 2)

    assert counter.decisions == 3


@pytest.mark.parametrize("seeds", [[1], [1.0, 2.0], [-1, 2]])
def test_seeds_are_whole_numbers_one_for_each_context(seeds: list[Any]) -> None:
    with pytest.raises(ShapeError, match=r"Decision\.seeds"):
        SeedCounter(7, 0).seeds_for(2, seeds)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "one"])
def test_one_seed_is_a_whole_number_of_64_bits(seed: Any) -> None:
    with pytest.raises(SettingError, match=r"Chosen\.seed"):
        read_seed(seed)


def test_any_whole_number_is_a_seed() -> None:
    assert read_seed(np.int32(4)) == 4
