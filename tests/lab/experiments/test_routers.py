"""Routers score models that they know, and learn which are good for what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab.experiments.routers import BanditRouter, FixedRouter, LinearRouter
from lab.experiments.routing_data import make_traffic

TRAFFIC = make_traffic(300, seed=1)
GOOD, BAD = 4, 2


def ratings(rows: Any) -> Any:
    return np.where(rows == GOOD, 0.9, 0.2)


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("kind", ["bandit", "bandit's bound", "greedy", "bound"])
def test_a_router_prefers_what_was_rated_well(kind: str) -> None:
    settings: dict[str, Any] = {"models": 7, "seed": 0}
    router: Any = None
    if kind.startswith("bandit"):
        width = 0.1 if kind.endswith("bound") else None
        router = BanditRouter(TRAFFIC.prompts, **settings, units=0, width=width)
    else:
        router = LinearRouter(TRAFFIC.prompts, **settings, width=0.1 if kind == "bound" else 0.0)
    rows = np.where(np.arange(200) % 2, GOOD, BAD)

    router.learn(TRAFFIC.rows(np.arange(200)), rows, ratings(rows))

    scores = router.scores(TRAFFIC.table(200, 300))
    assert (scores[:, GOOD] > scores[:, BAD]).mean() > 0.9
    assert np.isneginf(scores[:, 7]).all()
    router.add(7)
    assert np.isfinite(router.scores(TRAFFIC.table(200, 300))).all()


def test_before_anything_is_learned_a_bandit_ranks_at_random() -> None:
    router = BanditRouter(TRAFFIC.prompts, models=7, seed=0)

    first = router.scores(TRAFFIC.table(0, 300)).argmax(axis=1)

    assert np.bincount(first, minlength=8)[:7].min() > 20


def test_epsilon_draws_so_many_at_random() -> None:
    router = LinearRouter(TRAFFIC.prompts, models=7, seed=0, epsilon=0.3)

    drawn = router.scores(TRAFFIC.table(0, 300)).max(axis=1) > 1_000

    assert 0.2 < drawn.mean() < 0.4


def test_fixed_scores_come_in_their_order() -> None:
    router = FixedRouter(np.arange(20.0).reshape(10, 2))

    assert router.scores(TRAFFIC.table(0, 4)).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert router.scores(TRAFFIC.table(4, 5)).tolist() == [[8, 9]]
