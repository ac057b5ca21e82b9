"""Real training, real searches, judged by their gap to the exhaustive choice."""

from __future__ import annotations

import pytest

from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.policies import NINE, agent_for
from lab.experiments.run import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dim", [4, 16])
@pytest.mark.parametrize("policy", ["GANBandit TS", "GANBandit UCB"])
def test_the_generator_comes_close_to_the_best_arm_at_small_cost(policy: str, dim: int) -> None:
    environment = SyntheticRounds("h3", dim, 5_000, seed=1)
    agent = agent_for(policy, environment, seed=1, rounds=600)

    played = run(environment, agent, rounds=600, batch=300, audits=40)

    assert played.quality is not None
    assert played.quality > 0.97
    assert played.lookups <= 2
    assert played.evaluations <= (128 if dim == 4 else 650)


@pytest.mark.parametrize("policy", ["FastBandit TS", "FastBandit UCB"])
def test_gradient_ascent_comes_close_to_the_best_arm(policy: str) -> None:
    environment = SyntheticRounds("h1", 4, 5_000, seed=1)
    agent = agent_for(policy, environment, seed=1, rounds=600)

    played = run(environment, agent, rounds=600, batch=300, audits=40)

    assert played.quality is not None
    assert played.quality > 0.97


def test_thompson_sampling_learns_what_linear_thompson_sampling_cannot() -> None:
    environment = SyntheticRounds("h2", 4, 1_000, seed=0)
    shares = {}
    for name in ("LinearTS", "GANBandit TS"):
        agent = agent_for(name, environment, seed=0, rounds=1_500)
        shares[name] = run(environment, agent, rounds=1_500, batch=300, audits=0).share

    assert shares["GANBandit TS"] > shares["LinearTS"] + 0.2


def test_rewards_are_the_environments_own() -> None:
    environment = SyntheticRounds("h1", 4, 200, seed=0)

    agent = agent_for("Random", environment, seed=0, rounds=90)
    played = run(environment, agent, rounds=90, batch=30)

    assert len(played.rewards) == len(played.best) == 90
    assert (played.rewards <= played.best + 1e-9).all()
    assert played.quality is None


@pytest.mark.parametrize("policy", NINE)
def test_every_policy_runs_with_the_printed_settings(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = SyntheticRounds("h1", 4, 200, seed=0)
    agent = agent_for(policy, environment, preset="paper", seed=0, rounds=60)

    played = run(environment, agent, rounds=60, batch=30, audits=10)

    assert len(played.rewards) == 60
