"""Columns that say nothing do not hide what a log of named values says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fastbandit import Bandit
from fastbandit.exploration import Greedy
from fastbandit.score import Candidates

TOPICS = {"sport": "run shoe fast ball team", "home": "lamp wood table warm soft"}
LOGGED, HELD_OUT, ARMS = 1200, 800, 300


@pytest.mark.slow
def test_a_bandit_predicts_better_than_a_constant_beside_columns_of_noise() -> None:
    rng = np.random.default_rng(0)
    names, rows = list(TOPICS), LOGGED + HELD_OUT
    topics, likes = rng.integers(0, 2, ARMS), rng.integers(0, 2, rows)
    arms = {
        "id": [f"a{row}" for row in range(ARMS)],
        "text": [" ".join(rng.choice(TOPICS[names[t]].split(), 5)) for t in topics],
        "brand": rng.choice([f"b{n}" for n in range(100)], ARMS).tolist(),
        "price": rng.normal(size=ARMS).tolist(),
    }
    contexts = {
        "likes": [names[n] for n in likes],
        "city": rng.choice(["Oslo", "Rome", "Paris"], rows).tolist(),
        "age": rng.normal(size=rows).tolist(),
    }
    taken = rng.integers(0, ARMS, rows)
    rewards = (rng.random(rows) < 0.02 + 0.3 * (topics[taken] == likes)).astype(float)

    bandit = Bandit(context=contexts, arms=arms, seed=0)
    first = {name: values[:LOGGED] for name, values in contexts.items()}
    rest = {name: values[LOGGED:] for name, values in contexts.items()}
    ids = [f"a{row}" for row in taken]
    bandit.fit(contexts=first, arms=ids[:LOGGED], rewards=rewards[:LOGGED])

    chosen = torch.from_numpy(taken[LOGGED:])[:, None]
    inputs = bandit.blueprint.context.read(rest, what="contexts")
    policy = replace(bandit.policy, exploration=Greedy())
    with torch.no_grad():
        score = policy.score(inputs, seeds=np.zeros(HELD_OUT, dtype=np.uint64))
        scores = score.of(Candidates(chosen, policy.arms.at(chosen)))[:, 0]
        predicted = policy.model.in_rewards(scores).double().numpy().clip(1e-6, 1 - 1e-6)
    constant = np.full(HELD_OUT, rewards[:LOGGED].mean())

    assert _loss(predicted, rewards[LOGGED:]) < 0.95 * _loss(constant, rewards[LOGGED:])


def _loss(predicted: np.ndarray, rewards: np.ndarray) -> float:
    return float(-np.log(np.where(rewards > 0.5, predicted, 1 - predicted)).mean())
