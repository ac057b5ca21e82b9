"""Arms that workers index are those that one process indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.lookup import Lookup
from fastbandit.cluster.engine import Engine, SerialEngine
from fastbandit.cluster.indexing import EngineSpread, index_arms
from fastbandit.errors import FastbanditError

ARMS = 1_003


@pytest.mark.usefixtures("little_training")
def test_workers_index_arms_as_one_process_does(ray_engine: Engine) -> None:
    features = np.random.default_rng(5).normal(size=(ARMS, 3)).astype(np.float32)
    bandit = Bandit(arms=features, context=3, reward="real", search="ascent")
    bandit.update(contexts=features[:9], arms=range(9), rewards=features[:9, 0])

    index_arms(bandit, ray_engine)

    assert isinstance(bandit.policy.arms, Catalogue)
    ours = bandit.policy.arms.lookup
    assert ours is not None
    theirs = Lookup(ours.vectors, ours.rows)
    assert {"cells", "near"} <= vars(ours).keys()
    for name in ("order", "vectors", "centres", "groups", "far"):
        assert np.array_equal(getattr(ours.partitions, name), getattr(theirs.partitions, name)), (
            name
        )
    assert np.array_equal(ours.near, theirs.near)


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_ranges_make_up_the_whole_in_order(workers: int) -> None:
    spread = EngineSpread(SerialEngine(workers))

    assert spread(np.arange, 7).tolist() == list(range(7))


def test_work_that_fails_is_said() -> None:
    def fail(first: int, last: int) -> Any:
        raise ValueError("no room")

    with pytest.raises(FastbanditError, match=r"cannot be indexed on workers: .*no room"):
        EngineSpread(SerialEngine())(fail, 3)
