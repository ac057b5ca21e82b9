"""Each estimator equals its published formula, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from little_log import EVERY, LOGGING, REWARDS, little_log, little_policy, model

from fastbandit.evaluation import SparsePolicy, evaluate
from fastbandit.evaluation.estimators import Terms, importance_weights, replay

# The weights are 1, 3.2, 2.5, 2; what the model expects of the policy is .47, .37, .65, .5,
# and of the logged arms .6, .4, .8, .5.
BY_HAND = {
    "replay": (0.5 * 1.0 + 0.5 * 1.0 + 1.0 * 0.5) / (0.5 + 0.8 + 0.5 + 1.0),
    "ips": (1.0 + 0.0 + 2.5 + 1.0) / 4,
    "snips": 4.5 / 8.7,
    "dm": (0.47 + 0.37 + 0.65 + 0.5) / 4,
    "dr": (0.87 - 0.91 + 1.15 + 0.5) / 4,
    "switch": (0.87 + 0.37 + 1.15 + 0.5) / 4,
    "mips": (0.8 / 0.75 * 1.0 + 0.0 + 0.5 / 0.2 * 1.0 + 1.0 / 0.8 * 0.5) / 4,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_an_estimate_is_the_one_worked_out_by_hand(name: str) -> None:
    logging = SparsePolicy(EVERY, LOGGING, arms=3)

    found = evaluate(
        little_log(),
        little_policy(),
        estimators=[name],
        model=model,
        switch_at=2.5,
        clusters=[0, 0, 1],
        logging=logging,
    )

    assert found[name].value == pytest.approx(BY_HAND[name], abs=1e-9)


def test_clipped_weights_are_cut() -> None:
    found = evaluate(little_log(), little_policy(), estimators=["ips", "snips"], clip=2.0)

    assert found["ips"].value == pytest.approx((1.0 + 0.0 + 2.0 + 1.0) / 4, abs=1e-9)
    assert found["snips"].value == pytest.approx(4.0 / 7.0, abs=1e-9)


def test_what_clipping_biases_is_said() -> None:
    found = evaluate(little_log(), little_policy(), estimators=["ips"], clip=2.0)

    # (3.2 - 2) and (2.5 - 2), over four rounds, with rewards from 0 to 1
    assert found.diagnostics.cut_weight == pytest.approx(1.7 / 4, abs=1e-9)
    assert any("2 of 4 rounds" in said and "0 to 0.425" in said for said in found.words)


def test_replay_of_a_certain_policy_is_the_mean_of_the_matches() -> None:
    matches = np.array([1.0, 0.0, 0.0, 1.0])

    assert replay(np.array(REWARDS), matches).value == pytest.approx(0.75, abs=1e-9)


def test_an_estimate_without_a_match_is_unknown() -> None:
    found = evaluate(
        little_log(chosen=[0, 0, 0, 0]), SparsePolicy.fixed(little_log(), 2), estimators=["snips"]
    )

    assert np.isnan(found["snips"].value)
    assert np.isnan(found["snips"].low)
    assert found.diagnostics.effective_size == 0.0


def test_the_logging_policy_is_worth_what_the_log_earned() -> None:
    rewards, propensities = np.array(REWARDS), np.array([0.5, 0.25, 0.2, 0.5])
    weights = importance_weights(propensities, propensities)

    assert Terms(weights * rewards).value == pytest.approx(rewards.mean(), abs=1e-12)


def test_the_influence_of_rounds_has_the_estimate_as_its_mean() -> None:
    terms = Terms(np.array([1.0, 0.0, 3.0]), np.array([1.0, 2.0, 2.0]))

    assert terms.influence.mean() == pytest.approx(terms.value)
