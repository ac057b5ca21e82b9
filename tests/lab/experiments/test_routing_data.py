"""Synthetic traffic for language models: fixed by its seed, rated by a tenth, and drifting."""

from __future__ import annotations

import numpy as np

from fastbandit import Schema
from lab.experiments.routing_data import NAMES, PRICES, latencies, make_traffic


def test_traffic_is_fixed_by_its_seed() -> None:
    one, other, third = (make_traffic(300, seed=seed) for seed in (1, 1, 2))

    assert one.prompts == other.prompts != third.prompts
    assert np.array_equal(one.observed, other.observed)
    assert np.array_equal(one.told, other.told)


def test_a_tenth_of_the_requests_is_rated_some_of_them_late() -> None:
    traffic = make_traffic(10_000, seed=3)
    rated = np.flatnonzero(traffic.told >= 0)
    delays = traffic.told[rated] - rated

    assert 0.08 < len(rated) / 10_000 < 0.12
    assert delays.min() >= 1
    assert 0.2 < (delays >= 200).mean() < 0.4


def test_dearer_models_cost_more_and_are_slower() -> None:
    traffic = make_traffic(200, seed=4)

    assert np.allclose(traffic.costs / PRICES, traffic.costs[:, :1] / PRICES[0])
    assert (np.argsort(latencies()) == np.argsort(PRICES)).all()
    assert abs(traffic.expected.mean() / traffic.costs.mean() - 1) < 0.1


def test_one_model_gets_worse_and_one_joins_half_way() -> None:
    traffic = make_traffic(4_000, seed=5)
    medium = traffic.qualities[:, NAMES.index("medium")]

    assert medium[1_500:].mean() < medium[:1_300].mean() - 0.1
    assert traffic.live(1_999).tolist() == [True] * 7 + [False]
    assert traffic.live(2_000).all()


def test_prompts_are_texts_with_a_length_and_a_language() -> None:
    kinds = [kind for _, kind, _, _ in Schema.infer(make_traffic(300, seed=6).prompts).rows()]

    assert kinds == ["text", "number", "category"]


def test_rows_are_those_that_were_asked_for() -> None:
    traffic = make_traffic(50, seed=7)

    assert traffic.rows(np.array([3, 4])) == traffic.table(3, 5)
