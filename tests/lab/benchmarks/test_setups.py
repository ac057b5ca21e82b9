"""What is timed learned something, and is measured with the right yardstick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fastbandit.audit import audit
from fastbandit.search.exhaustive import Exhaustive
from lab.benchmarks.setups import (
    Contest,
    Setup,
    Yardstick,
    contest_of,
    yardstick_of,
)
from lab.planning.untrained import untrained

SMALL = Setup(arms=500, dim=3, rounds=60)


@pytest.fixture(scope="module")
def contest(little_training: None) -> Contest:
    return contest_of(SMALL, contexts=40)


def ruler(best: list[float], mean: list[float]) -> Yardstick:
    nothing = np.zeros((len(best), 0), np.float32)
    numbers = (np.array(best, np.float32), np.array(mean, np.float32))
    return Yardstick(nothing, np.zeros(len(best), np.uint64), *numbers)


def test_a_bandit_learns_twice_and_is_asked_about_contexts_it_has_not_seen(
    contest: Contest,
) -> None:
    assert contest.bandit.version == 2
    assert contest.contexts.shape == (40, 3)
    assert len(contest.bandit) == 500


def test_each_step_is_reported(little_training: None) -> None:
    steps: list[str] = []

    contest_of(Setup(arms=30, dim=2, rounds=20), contexts=1, tick=steps.append)

    assert steps == ["drawing arms", "learning (1 of 2)", "learning (2 of 2)"]


def test_hidden_units_are_those_of_the_preset_unless_given(contest: Contest) -> None:
    assert contest.hidden == 32
    assert Setup(arms=1, hidden=7).settings.of("network") == {"hidden": (7,)}


def test_contexts_go_round_where_more_are_asked_for(contest: Contest) -> None:
    inputs, seeds = contest.inputs(50)

    assert inputs.dense is not None
    assert np.array_equal(inputs.dense[40:], contest.contexts[:10])
    assert len(set(seeds.tolist())) == 50


# -- quality


def test_quality_is_one_for_the_best_arm_and_zero_for_an_average_one() -> None:
    some = ruler(best=[3.0, 5.0], mean=[1.0, 1.0])

    assert some.quality([3.0, 5.0]) == 1.0
    assert some.quality([1.0, 1.0]) == 0.0
    assert some.quality([2.0, 5.0]) == 0.75


def test_any_arm_is_the_best_where_all_score_the_same() -> None:
    assert ruler(best=[2.0], mean=[2.0]).quality([2.0]) == 1.0


@pytest.mark.parametrize("exploration", ["ts", "ucb"])
@pytest.mark.usefixtures("little_training")
def test_the_yardstick_agrees_with_an_audit(exploration: str) -> None:
    contest = contest_of(replace(SMALL, exploration=exploration), contexts=40)
    inputs, seeds = contest.inputs(40)

    ruler = yardstick_of(contest, 40)

    scores = contest.bandit.select(contest.contexts, seeds=seeds).scores[:, 0]
    found = audit(contest.policy, inputs, seeds=seeds).quality
    assert ruler.quality(scores) == pytest.approx(found, abs=2e-3)


def test_an_exhaustive_choice_measures_one(contest: Contest) -> None:
    ruler = yardstick_of(contest, 40)
    exact = contest.frozen(Exhaustive())

    assert ruler.quality(exact.select(ruler.contexts, seeds=ruler.seeds).scores[:, 0]) == 1.0


# -- without learning


def test_an_untrained_policy_decides_by_any_search() -> None:
    policy = untrained(200, 3, hidden=8)

    for search in (policy.search, Exhaustive()):
        frozen = policy.frozen(search)
        assert 0 <= frozen.select_one(np.zeros(3), seed=1).row < 200
        assert len(frozen) == 200


def test_an_untrained_policy_has_the_shapes_of_the_default_one(contest: Contest) -> None:
    policy = untrained(500, 3, hidden=None).policy

    bounds = (".low", ".high")  # which depend on the data
    mine, theirs = (
        {n: part.shape for n, part in one.model.state_dict().items() if not n.endswith(bounds)}
        for one in (policy, contest.policy)
    )
    assert mine == theirs
