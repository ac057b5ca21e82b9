"""The demo: six policies in one environment, each judged by what it chose."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from quick_demo import POLICIES, quick_demo

from fastbandit.demo.comparison import YARDSTICK, DemoResult
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import SettingError


def test_all_six_policies_take_part(result: DemoResult) -> None:
    assert tuple(outcome.policy for outcome in result.outcomes) == POLICIES


def test_every_curve_has_one_point_for_each_round(result: DemoResult) -> None:
    curves = [result.best, *(outcome.earned for outcome in result.outcomes)]

    assert {curve.shape for curve in curves} == {(150,)}


def test_the_best_curve_is_that_of_the_best_arms(result: DemoResult) -> None:
    environment = Synthetic(result.function, result.dim, result.arms, seed=result.seed)

    best = environment.best(environment.contexts(0, result.rounds))[1]

    assert result.best == pytest.approx(np.cumsum(best))


def test_no_policy_earns_more_than_the_best_possible_in_any_round(result: DemoResult) -> None:
    best = np.diff(result.best)

    assert all((np.diff(outcome.earned) <= best + 1e-9).all() for outcome in result.outcomes)


def test_the_first_batch_is_the_same_random_one_for_all(result: DemoResult) -> None:
    random, *others = result.outcomes

    for outcome in others:
        assert outcome.earned[:60] == pytest.approx(random.earned[:60])


def test_the_share_is_the_reward_earned_over_the_best_possible(result: DemoResult) -> None:
    for outcome in result.outcomes:
        assert outcome.share == pytest.approx(outcome.earned[-1] / result.best[-1])


def test_quality_is_given_where_a_network_is_searched(result: DemoResult) -> None:
    has_quality = {outcome.policy for outcome in result.outcomes if outcome.quality is not None}

    assert has_quality == set(POLICIES) - {"Random", "LinearTS"}


def test_the_exhaustive_search_has_quality_one(result: DemoResult) -> None:
    quality = {outcome.policy: outcome.quality for outcome in result.outcomes}

    assert quality["Exhaust TS"] == pytest.approx(1.0)


def test_speedups_are_over_the_yardstick_of_the_same_run(result: DemoResult) -> None:
    by_name = {outcome.policy: outcome for outcome in result.outcomes}
    yardstick, ucb = by_name[YARDSTICK], by_name["GANBandit UCB"]

    assert yardstick.batch_speedup == yardstick.single_speedup == 1.0
    ratio = yardstick.batch_milliseconds / ucb.batch_milliseconds
    assert ucb.batch_speedup == pytest.approx(ratio)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rewards(result: DemoResult) -> None:
    again = quick_demo()

    for one, two in zip(result.outcomes, again.outcomes, strict=True):
        assert one.earned == pytest.approx(two.earned)


def test_progress_counts_every_step_up_to_the_last(
    result: DemoResult, steps: list[tuple[int, int, str]]
) -> None:
    done = [step[0] for step in steps]

    assert done == list(range(len(steps)))
    assert {step[1] for step in steps} == {done[-1]}


def test_the_json_form_survives_the_round_trip(result: DemoResult) -> None:
    report = result.to_json()

    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_json_curves_end_where_the_batches_end(result: DemoResult) -> None:
    report = result.to_json()

    assert report["ends"] == [60, 120, 150]
    assert report["policies"][0]["earned"][-1] == result.outcomes[0].earned[-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "at least one round: got 0"),
        ({"rounds": 100, "batch": 60}, "at least two batches"),
        ({"arms": 0}, "arms=0"),
        ({"dim": 0}, "dim=0"),
        ({"function": "h9"}, "got 'h9'"),
    ],
)
def test_settings_that_make_no_demo_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        quick_demo(**settings)


@pytest.mark.slow
def test_an_environment_with_one_arm_leaves_nothing_to_lose() -> None:
    alone = quick_demo(arms=1, rounds=4, batch=2)

    assert [outcome.share for outcome in alone.outcomes] == pytest.approx([1.0] * 6)
