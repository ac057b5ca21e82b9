"""The shapes that obp documents: a contextual policy, and bandit_feedback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, Box
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
    assert policy.policy_type == "contextual"


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


def test_a_list_longer_than_the_arms_is_refused() -> None:
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


def test_a_large_action_distribution_is_refused() -> None:
    with pytest.raises(SettingError, match="raise most_bytes"):
        ObpPolicy(bandit()).action_dist(CONTEXTS, most_bytes=20 * 5 * 8 - 1)


def test_feedback_is_read_in_the_words_of_update() -> None:
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
def test_feedback_that_lacks_something_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_feedback(feedback(**changes))
