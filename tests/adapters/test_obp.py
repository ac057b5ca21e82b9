"""The shapes that obp documents: a contextual policy, and bandit_feedback."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, Box, Schema
from fastbandit.adapters.obp import ObpPolicy, from_feedback, to_feedback
from fastbandit.errors import InputError, SettingError, ShapeError

pytestmark = pytest.mark.usefixtures("little_training")
CONTEXTS = vectors_of(20, 3)


def bandit(**changes: Any) -> Bandit:
    return Bandit(**{"arms": vectors_of(5, 2), "ids": list("abcde"), "context": 3, **changes})


def feedback(**changes: Any) -> dict[str, Any]:
    """Give what the datasets of obp give."""
    told = {
        "n_rounds": 20,
        "n_actions": 5,
        "context": CONTEXTS.astype(np.float64),
        "action_context": np.eye(5, dtype=int),
        "action": np.arange(20) % 5,
        "position": np.zeros(20, dtype=int),
        "reward": (CONTEXTS[:, 0] > 0).astype(int),
        "expected_reward": np.full((20, 5), 0.5),
        "pscore": np.full(20, 0.2),
    }
    return {**told, **changes}


def simulate(policy: ObpPolicy, told: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Do what the simulator of obp does: learn where the policy takes the logged action."""
    chosen = []
    for action, reward, position, context in zip(
        told["action"], told["reward"], told["position"], told["context"], strict=True
    ):
        actions = policy.select_action(context.reshape(1, -1))
        if actions[position] == action:
            policy.update_params(action=action, reward=reward, context=context.reshape(1, -1))
        chosen.append(actions)
    return np.array(chosen)


def test_a_policy_has_the_attributes_that_simulators_read() -> None:
    policy = ObpPolicy(bandit(), len_list=3)

    assert (policy.n_actions, policy.len_list, policy.dim) == (5, 3, 3)


def test_without_obp_the_type_of_a_policy_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obp.policy.policy_type", None)

    assert ObpPolicy(bandit()).policy_type == "contextual"


def test_a_simulation_runs_and_learns() -> None:
    policy = ObpPolicy(bandit(), len_list=2, batch_size=2)

    chosen = simulate(policy, feedback())

    assert chosen.shape == (20, 2)
    assert all(len(set(actions)) == 2 for actions in chosen.tolist())
    assert policy.bandit.version >= 1


def test_initialize_forgets() -> None:
    policy = ObpPolicy(bandit(search="exhaustive"), batch_size=4)
    first = simulate(policy, feedback())

    policy.initialize()

    assert (policy.n_trial, policy.bandit.version) == (0, 0)
    assert np.array_equal(simulate(policy, feedback()), first)


def test_contexts_by_name_go_through_the_schema_of_the_bandit() -> None:
    named = [{"city": "Oslo", "age": 3}, {"city": "Rome", "age": None}]
    one = bandit(context=Schema.infer(named))
    policy = ObpPolicy(one, batch_size=1)

    policy.update_params(policy.select_action(named[:1])[0], 1.0, named[0])
    found = to_feedback(policy.bandit, contexts=named, arms=["a", "b"], rewards=[0, 1])

    assert policy.bandit.version == 1
    assert found["context"].tolist() == Schema.infer(named).encode(named).tolist()


def test_a_bandit_of_positions_refuses_contexts_by_name() -> None:
    with pytest.raises(InputError, match="came with names"):
        ObpPolicy(bandit()).update_params(0, 1.0, {"city": "Oslo"})


def test_a_list_longer_than_the_arms_is_rejected() -> None:
    with pytest.raises(SettingError, match="len_list needs to be between 1 and the 5 arms"):
        ObpPolicy(bandit(), len_list=6)


def test_one_context_at_a_time() -> None:
    with pytest.raises(ShapeError, match=r"\(1, 3\)"):
        ObpPolicy(bandit()).select_action(CONTEXTS[:2])


def test_a_box_has_no_actions() -> None:
    with pytest.raises(SettingError, match="a box"):
        ObpPolicy(Bandit(arms=Box((0.0,), (1.0,)), context=3))


def test_an_action_distribution_sums_to_1_at_each_place() -> None:
    shares = ObpPolicy(bandit(), len_list=2).action_dist(CONTEXTS[:4], draws=50)

    assert shares.shape == (4, 5, 2)
    assert shares.sum(axis=1) == pytest.approx(1)


def test_a_large_action_distribution_is_rejected() -> None:
    with pytest.raises(SettingError, match="raise most_bytes"):
        ObpPolicy(bandit()).action_dist(CONTEXTS, most_bytes=20 * 5 * 8 - 1)


def test_feedback_is_read_as_update_takes_it() -> None:
    log, learner = from_feedback(feedback()), bandit(ids=None)

    learner.update(contexts=log.contexts, arms=log.arms, rewards=log.rewards)

    assert (learner.version, len(log)) == (1, 20)
    assert log.propensities is not None
    assert log.arm_features is not None
    assert (log.propensities[0], log.arm_features.shape) == (0.2, (5, 5))


def test_feedback_goes_there_and_back() -> None:
    arms = [*"abcde"] * 4
    told = to_feedback(
        bandit(), contexts=CONTEXTS, arms=arms, rewards=[1] * 20, propensities=[0.2] * 20
    )

    assert set(told) == set(feedback()) - {"expected_reward"}
    assert told["action"].tolist() == [*range(5)] * 4
    again = from_feedback(told)
    assert np.array_equal(again.contexts, CONTEXTS)
    assert again.positions is not None
    assert not again.positions.any()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reward": None}, "none for 'reward'"),
        ({"action": np.full(20, 0.5)}, "whole numbers"),
        ({"pscore": np.full(19, 0.2)}, r"lengths \[19, 20\]"),
    ],
)
def test_feedback_that_lacks_something_is_rejected(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_feedback(feedback(**changes))


# -- obp itself


def test_the_simulator_of_obp_runs_a_bandit() -> None:
    simulator = pytest.importorskip("obp.simulator")
    policy = ObpPolicy(bandit(), batch_size=2)

    found = simulator.run_bandit_simulation(feedback(), policy)

    assert found.shape == (20, 5, 1)
    assert np.array_equal(found.sum(axis=1), np.ones((20, 1)))
    assert policy.n_trial == sum(found[np.arange(20), feedback()["action"], 0])


def test_obp_estimates_what_a_bandit_would_have_earned_on_a_log_of_ours() -> None:
    ope = pytest.importorskip("obp.ope")
    told = feedback()
    logged = to_feedback(
        bandit(),
        contexts=CONTEXTS,
        arms=[list("abcde")[row] for row in told["action"]],
        rewards=told["reward"],
        propensities=told["pscore"],
    )
    evaluation = ope.OffPolicyEvaluation(
        bandit_feedback=logged, ope_estimators=[ope.InverseProbabilityWeighting()]
    )

    shares = ObpPolicy(bandit()).action_dist(CONTEXTS)
    found = evaluation.estimate_policy_values(action_dist=shares)

    weights = shares[np.arange(20), logged["action"], 0] / told["pscore"]
    assert found["ipw"] == pytest.approx((weights * told["reward"]).mean())
