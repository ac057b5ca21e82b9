"""A learner of coba: probabilities, and whole experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.adapters.coba import CobaLearner
from fastbandit.errors import InputError, SettingError

pytestmark = pytest.mark.usefixtures("little_training")
ACTIONS = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


def trained(**changes: Any) -> CobaLearner:
    """Give a learner that has seen the first action win."""
    learner = CobaLearner(**{"update_every": 30, **changes})
    for number in range(30):
        action = ACTIONS[number % 3]
        learner.learn((0.5, -0.5), action, float(action == ACTIONS[0]), 1 / 3)
    return learner


def test_before_the_first_update_all_actions_are_as_likely() -> None:
    assert CobaLearner().predict((1.0, 2.0), ["a", "b"]) == {"pmf": [0.5, 0.5]}


def test_probabilities_include_epsilon_and_sum_to_1() -> None:
    pmf = trained(epsilon=0.3).predict((0.5, -0.5), ACTIONS)["pmf"]

    assert sum(pmf) == pytest.approx(1)
    assert min(pmf) >= 0.1 - 1e-12


def test_a_score_is_the_probability_that_predict_returns() -> None:
    learner = trained()

    pmf = learner.predict((0.5, -0.5), ACTIONS)["pmf"]
    assert [learner.score((0.5, -0.5), ACTIONS, action) for action in ACTIONS] == pmf
    assert learner.score((0.5, -0.5), ACTIONS[::-1], list(ACTIONS[0])) == pmf[0]


def test_only_the_actions_offered_have_probabilities() -> None:
    assert trained().predict((0.5, -0.5), ACTIONS[1:2]) == {"pmf": [1.0]}


def test_actions_may_be_new() -> None:
    learner = trained()

    pmf = learner.predict((0.5, -0.5), [*ACTIONS, (3.0, 3.0)])["pmf"]

    assert len(pmf) == 4


def test_a_learner_without_contexts_takes_actions_by_name() -> None:
    learner = CobaLearner(update_every=10)
    for number in range(10):
        learner.learn(None, "ab"[number % 2], float(number % 2), 0.5)

    assert sum(learner.predict(None, ["a", "b"])["pmf"]) == pytest.approx(1)


def test_sparse_contexts_are_rejected() -> None:
    with pytest.raises(InputError, match=r"Environments\.dense"):
        CobaLearner().predict({"age": 3}, ["a", "b"])


def test_settings_are_checked_when_a_learner_is_made() -> None:
    with pytest.raises(SettingError, match="draws"):
        CobaLearner(draws=0)
    with pytest.raises(SettingError, match="at least 1"):
        CobaLearner(update_every=0)


def test_an_experiment_of_coba_runs_with_it() -> None:
    coba = pytest.importorskip("coba", reason="coba is not installed")
    coba.CobaContext.logger = coba.NullLogger()
    environments = coba.Environments.from_linear_synthetic(
        120, n_actions=3, n_context_features=4, n_action_features=2, seed=1
    )
    learners = [CobaLearner(update_every=40, draws=20), coba.RandomLearner()]

    result = coba.Experiment(environments, learners).run(quiet=True)

    rows = result.interactions.to_dicts()
    mine = [row["reward"] for row in rows if row["learner_id"] == 0]
    assert len(mine) == 120
    assert np.isfinite(mine).all()
    told = {row["family"]: row for row in result.learners.to_dicts()}
    assert told["fastbandit"]["draws"] == 20


def test_coba_gets_the_probabilities_it_draws_by() -> None:
    safety = pytest.importorskip("coba.safety", reason="coba is not installed")
    learner = trained()
    action, probability, _ = safety.SafeLearner(learner, seed=3).predict((0.5, -0.5), ACTIONS)

    assert probability == learner.score((0.5, -0.5), ACTIONS, action)
