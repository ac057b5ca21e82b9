"""Two towers learn a product of context and arm, and find its largest by an index."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bakeoff.play import first_rows
from lab.equal_latency.retrieval import KINDS, DotProducts
from lab.equal_latency.towers import Fit, Seen, fit_towers
from lab.equal_latency.two_towers import EXPLORATIONS, LastLayer, TwoTowers
from lab.experiments import datasets

pytest.importorskip("faiss")

LITTLE = Fit(hidden=16, width=8, steps=200)


def trained(exploration: str, retrieval: str = "IVF") -> TwoTowers:
    """Return towers that saw 60 rounds of a linear function over 50 arms."""
    environment = datasets.load("h1", arms=50, seed=1, noise=0.1)
    agent = TwoTowers(environment, 0, exploration, retrieval, LITTLE)
    rows = first_rows(1, 60, 50)
    observed = environment.observed(0, rows)
    agent.update(contexts=environment.contexts(0, 60), arms=rows, rewards=observed)
    return agent


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_of_few_arms_finds_the_largest_dot_product(kind: str) -> None:
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((50, 4)).astype(np.float32)
    queries = rng.standard_normal((20, 4)).astype(np.float32)

    index = DotProducts(arms, kind=kind)

    assert (index.best(queries) == (queries @ arms.T).argmax(axis=1)).mean() > 0.9
    assert index.bytes_per_arm > arms.nbytes / len(arms)


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_towers_earn_more_than_arms_taken_at_random(exploration: str) -> None:
    agent = trained(exploration)
    contexts = agent.environment.contexts(60, 40)

    chosen = agent.environment.expected(60, agent.select(contexts))
    uniform = agent.environment.expected(60, first_rows(2, 40, 50))

    assert chosen.mean() > uniform.mean() + 0.1


def test_one_context_gets_the_arm_that_a_batch_of_it_gets() -> None:
    agent = trained("greedy", "HNSW")
    contexts = agent.environment.contexts(60, 5)

    assert [agent.select_one(one) for one in contexts] == agent.select(contexts).tolist()


def test_an_id_of_its_own_tells_apart_arms_with_the_same_features() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=200)
    seen = Seen(
        np.ones((200, 1), np.float32), np.ones((2, 1), np.float32), rows, rows.astype(float)
    )

    towers = fit_towers(seen, LITTLE, is_binary=True, has_own=True, seed=0)

    scores = towers.embed_contexts(seen.contexts[:1]) @ towers.embed_arms(seen.arms).T
    assert scores[0, 1] > scores[0, 0] + 1.0


@pytest.mark.parametrize("is_binary", [False, True])
def test_draws_of_the_last_layer_narrow_as_rewards_come(is_binary: bool) -> None:
    rng = np.random.default_rng(0)
    products = rng.standard_normal((400, 3))
    rewards = products.sum(axis=1) + rng.standard_normal(400)
    rewards = (rewards > 0).astype(float) if is_binary else rewards

    few, many = (
        LastLayer.of(products[:size], rewards[:size], is_binary=is_binary) for size in (20, 400)
    )

    assert many.draw(200, rng).std(axis=0).max() < few.draw(200, rng).std(axis=0).min()
