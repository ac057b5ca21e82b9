"""Estimates are those of the Open Bandit Pipeline itself, on the same logs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.evaluation import LoggedRounds, SparsePolicy, SwitchDR, evaluate

ope = pytest.importorskip("obp.ope")

ROUNDS, ARMS, SWITCH_AT = 300, 7, 3.0
THEIRS = {
    "replay": ope.ReplayMethod(),
    "ips": ope.InverseProbabilityWeighting(),
    "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
    "dm": ope.DirectMethod(),
    "dr": ope.DoublyRobust(),
    "switch": ope.SwitchDoublyRobust(tau=SWITCH_AT),
}


class Synthetic:
    """A random log, a policy to judge, and what a model expects of each round and arm."""

    def __init__(self, seed: int, *, is_certain: bool) -> None:
        rng = np.random.default_rng(seed)
        logging = rng.dirichlet(np.ones(ARMS), size=ROUNDS)
        self.chosen = np.array([rng.choice(ARMS, p=shares) for shares in logging])
        self.rewards = rng.normal(size=ROUNDS)
        self.propensities = logging[np.arange(ROUNDS), self.chosen]
        self.expected = rng.normal(size=(ROUNDS, ARMS))
        self.target = rng.dirichlet(np.ones(ARMS), size=ROUNDS)
        if is_certain:
            self.target = np.eye(ARMS)[self.target.argmax(axis=1)]

    def ours(self, name: str) -> float:
        log = LoggedRounds(
            contexts=np.arange(ROUNDS, dtype=float)[:, None],
            chosen=self.chosen,
            rewards=self.rewards,
            propensities=self.propensities,
            arms=ARMS,
        )
        every = np.tile(np.arange(ARMS), (ROUNDS, 1))
        policy = SparsePolicy(every, self.target, arms=ARMS)
        estimator = SwitchDR(threshold=SWITCH_AT) if name == "switch" else name
        found = evaluate(log, policy, estimators=estimator, model=self._model)
        return float(found[name].value)

    def theirs(self, name: str) -> float:
        found: Any = THEIRS[name].estimate_policy_value(
            reward=self.rewards,
            action=self.chosen,
            pscore=self.propensities,
            action_dist=self.target[:, :, None],
            estimated_rewards_by_reg_model=self.expected[:, :, None],
            position=np.zeros(ROUNDS, dtype=int),
        )
        return float(found)

    def _model(self, contexts: Any, rows: Any) -> Any:
        return self.expected[contexts[:, 0].astype(int), rows]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", [name for name in THEIRS if name != "replay"])
def test_an_estimate_is_that_of_obp(name: str, seed: int) -> None:
    synthetic = Synthetic(seed, is_certain=False)

    assert synthetic.ours(name) == pytest.approx(synthetic.theirs(name), abs=1e-9)


@pytest.mark.parametrize("name", THEIRS)
def test_an_estimate_of_a_certain_policy_is_that_of_obp(name: str) -> None:
    synthetic = Synthetic(3, is_certain=True)

    assert synthetic.ours(name) == pytest.approx(synthetic.theirs(name), abs=1e-9)
