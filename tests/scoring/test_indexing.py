"""Arms are indexed in ranges, by as many workers as an engine has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.lookup import Lookup
from fastbandit.cluster.engine import SerialEngine
from fastbandit.cluster.indexing import EngineSpread, index_arms
from fastbandit.errors import FastbanditError


@pytest.mark.usefixtures("little_training")
def test_ranges_make_the_index_that_one_process_makes() -> None:
    features = vectors_of(203, 3)
    bandit = Bandit(arms=features, context=3, reward="real", search="ascent")
    bandit.update(contexts=features[:9], arms=range(9), rewards=features[:9, 0])

    index_arms(bandit, SerialEngine(3))

    assert isinstance(bandit.policy.arms, Catalogue)
    ours = bandit.policy.arms.lookup
    assert ours is not None
    assert np.array_equal(ours.near, Lookup(ours.vectors, ours.rows).near)


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_ranges_make_up_the_whole_in_order(workers: int) -> None:
    spread = EngineSpread(SerialEngine(workers))

    assert spread(np.arange, 7).tolist() == list(range(7))


def test_work_that_fails_is_an_error() -> None:
    def fail(first: int, last: int) -> Any:
        raise ValueError("no room")

    with pytest.raises(FastbanditError, match=r"cannot be indexed on workers: .*no room"):
        EngineSpread(SerialEngine())(fail, 3)
