"""Bootstrapped heads and variational weights: their posteriors, and bandits that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import same_decision, same_weights, vectors_of
from little_linear_ends import ARMS, CONTEXTS, made

from fastbandit import Bandit
from fastbandit.features.rewards import RewardKind
from fastbandit.interfaces import Posterior
from fastbandit.reward.bootstrap_model import BootstrapPosterior
from fastbandit.reward.variational_model import VariationalPosterior
from fastbandit.settings.files import Settings
from fastbandit.types import Inputs

QUICK = {
    "training.reward": {"iterations": 40, "batch": 64},
    "training.generator": {"iterations": 20, "targets": 128, "sample": 64},
}


@pytest.mark.parametrize("declared", [BootstrapPosterior(), VariationalPosterior()])
@pytest.mark.parametrize("kind", ["real", "binary"])
def test_more_data_leaves_a_narrower_posterior(declared: Posterior, kind: RewardKind) -> None:
    def posterior(repeats: int) -> float:
        model = made(declared, kind, repeats)
        contexts, arms = Inputs(dense=CONTEXTS[:8]), Inputs(dense=ARMS[:8])
        embedded = model.embed_contexts(contexts), model.embed_arms(arms)[None]
        bound, mean = model.upper(embedded[0], width=1.0), model.mean(embedded[0])
        return float((bound(embedded[1]) - mean(embedded[1])).mean())

    assert posterior(20) < 0.8 * posterior(1)


@pytest.mark.parametrize("posterior", ["bootstrap", "variational"])
@pytest.mark.parametrize("search", ["generator", "ascent", "exhaustive"])
@pytest.mark.parametrize("explore", ["ts", "ucb", "greedy"])
def test_a_bandit_decides_replays_and_goes_on_after_loading(
    posterior: str, search: str, explore: str, tmp_path: Path
) -> None:
    bandit = Bandit(
        arms=vectors_of(30, 2, seed=2),
        context=3,
        posterior=posterior,
        search=search,
        exploration=explore,
        preset=Settings(QUICK),
        progress=False,
    )
    learned: dict[str, Any] = {
        "contexts": CONTEXTS,
        "arms": np.arange(60) % 30,
        "rewards": [0, 1] * 30,
    }
    bandit.update(**learned)
    first = bandit.select(CONTEXTS)
    bandit.save(tmp_path / "saved")

    loaded = Bandit.load(tmp_path / "saved", progress=False)

    assert same_decision(bandit.select(CONTEXTS, seeds=first.seeds), first)
    assert same_decision(loaded.select(CONTEXTS, seeds=first.seeds), first)
    for each in (bandit, loaded):
        each.update(**learned)
    assert same_weights(bandit, loaded)


def test_settings_reach_both_posteriors() -> None:
    sections: dict[str, dict[str, Any]] = {
        "posterior.bootstrap": {"heads": 7},
        "posterior.variational": {"prior_precision": 3.0},
    }
    settings = Settings(sections)

    def posterior(name: str) -> Any:
        return Bandit(arms=ARMS, context=3, posterior=name, preset=settings).blueprint.posterior

    assert posterior("bootstrap") == BootstrapPosterior(heads=7)
    assert posterior("variational") == VariationalPosterior(prior_precision=3.0)


def many_arms(posterior: str, explore: str = "ts") -> Bandit:
    bandit = Bandit(
        arms=vectors_of(600, 2, seed=2),
        context=3,
        posterior=posterior,
        exploration=explore,
        preset=Settings(QUICK),
        progress=False,
    )
    bandit.update(contexts=CONTEXTS, arms=np.arange(60), rewards=[0, 1] * 30)
    return bandit


@pytest.mark.parametrize(
    ("posterior", "explore"), [("variational", "ts"), ("bootstrap", "ts"), ("bootstrap", "greedy")]
)
def test_what_can_be_frozen_chooses_the_same_arms(posterior: str, explore: str) -> None:
    bandit = many_arms(posterior, explore)

    frozen = bandit.freeze().select(CONTEXTS, seeds=bandit.select(CONTEXTS).seeds)

    inputs = bandit.blueprint.context.read(CONTEXTS, what="contexts")
    by_torch = bandit.policy.select(inputs, seeds=frozen.seeds)
    scores = bandit.policy.model.in_rewards(by_torch.scores)
    assert (frozen.rows == by_torch.rows.numpy()).mean() > 0.95
    assert np.allclose(frozen.scores, scores.numpy(), atol=1e-3)
