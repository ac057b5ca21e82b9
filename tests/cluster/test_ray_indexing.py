"""Arms that workers index are those that one process indexes."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit import Bandit
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.lookup import Lookup
from fastbandit.cluster.engine import Engine
from fastbandit.cluster.indexing import index_arms

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
    assert {"partitions", "near"} <= vars(ours).keys()
    for name in ("order", "vectors", "centres", "groups", "far"):
        assert np.array_equal(getattr(ours.partitions, name), getattr(theirs.partitions, name)), (
            name
        )
    assert np.array_equal(ours.near, theirs.near)
