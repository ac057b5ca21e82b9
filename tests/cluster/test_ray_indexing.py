"""Arms that workers index are those that one process indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fastbandit import Bandit
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.lookup import Lookup
from fastbandit.cluster.engine import Engine, HereEngine
from fastbandit.cluster.indexing import EngineSpread, embed_and_index
from fastbandit.errors import FastbanditError

ARMS = 1_003


def catalogue_and_model() -> tuple[Catalogue, Any]:
    features = np.random.default_rng(5).normal(size=(ARMS, 3)).astype(np.float32)
    policy = Bandit(arms=features, context=3, reward="real").policy
    assert isinstance(policy.arms, Catalogue)
    return policy.arms, policy.model


def test_workers_embed_and_index_arms_as_one_process_does(ray_engine: Engine) -> None:
    catalogue, model = catalogue_and_model()
    with torch.no_grad():
        wanted = catalogue.embedded_by(model.embed_arms)
    found = embed_and_index(catalogue, model, ray_engine)

    torch.testing.assert_close(found.vectors, wanted.vectors)
    ours = found.lookup
    assert ours is not None
    theirs = Lookup(ours.vectors, ours.rows)
    assert {"cells", "near"} <= vars(ours).keys()
    for name in ("order", "vectors", "centres", "groups", "far"):
        assert np.array_equal(getattr(ours.cells, name), getattr(theirs.cells, name)), name
    assert np.array_equal(ours.near, theirs.near)


@pytest.mark.parametrize("workers", [1, 3, 9])
def test_ranges_make_up_the_whole_in_order(workers: int) -> None:
    spread = EngineSpread(HereEngine(workers))

    assert spread(np.arange, 7).tolist() == list(range(7))


def test_work_that_fails_is_said() -> None:
    def fail(first: int, last: int) -> Any:
        raise ValueError("no room")

    with pytest.raises(FastbanditError, match=r"cannot be indexed on workers: .*no room"):
        EngineSpread(HereEngine())(fail, 3)
