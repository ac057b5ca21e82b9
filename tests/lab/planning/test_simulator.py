"""The simulator agrees with what can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.planning.simulator import Costs, Scene, simulate

EXACT = Costs(
    select_s=1e-3, reward_s=0.5e-3, commit_s=1e-3, event_s=0.0, spread=0.0, commit_spread=0.0
)
STEADY = Scene(deciders=4, seconds=2.0, rate=1_600.0, is_log_shared=True)


def test_one_connection_gets_an_answer_after_deciding_and_writing() -> None:
    became = simulate(Scene(deciders=1, seconds=1.0, connections=1), EXACT)

    assert became.p50_s == pytest.approx(2e-3)
    assert became.per_second == pytest.approx(500, rel=0.01)
    assert became.group == 1.0


def test_many_connections_keep_the_loop_busy() -> None:
    became = simulate(Scene(deciders=1, seconds=1.0, connections=16), EXACT)

    assert became.per_second == pytest.approx(1_000, rel=0.03)
    assert became.busy == pytest.approx(1.0, abs=0.02)


def test_an_idle_queue_answers_as_many_as_come() -> None:
    became = simulate(STEADY, EXACT)

    assert became.per_second == pytest.approx(1_600, rel=0.05)
    assert became.busy == pytest.approx(0.4, rel=0.05)
    assert (became.lost, became.refused) == (0, 0)


def test_requests_wait_longer_the_busier_a_decider_is() -> None:
    costs = replace(EXACT, commit_s=0.0)
    idle, half, full = (
        simulate(Scene(deciders=1, seconds=10.0, rate=rate), costs) for rate in (20, 500, 950)
    )

    assert idle.p50_s == pytest.approx(1e-3)
    assert half.p50_s < 2 * idle.p50_s < 0.3 * full.p50_s
    assert half.busy == pytest.approx(0.5, abs=0.03)


def test_a_shared_log_limits_what_deciders_reach() -> None:
    costs = replace(EXACT, select_s=1e-5, event_s=1e-3)
    scene = Scene(deciders=4, seconds=2.0, connections=400, is_log_shared=True, most_waiting=1_000)

    became = simulate(scene, costs)

    assert became.per_second == pytest.approx(1_000, rel=0.1)


def test_logs_of_their_own_do_not() -> None:
    costs = replace(EXACT, select_s=1e-5, event_s=1e-3)
    scene = Scene(deciders=4, seconds=2.0, connections=400, most_waiting=1_000)

    became = simulate(scene, costs)

    assert became.per_second > 3_000


def test_rewards_cost_less_than_selects() -> None:
    few = simulate(STEADY, EXACT)
    many = simulate(replace(STEADY, rewards_share=1.0), EXACT)

    assert many.per_second == pytest.approx(2 * few.per_second, rel=0.1)
    assert many.busy == pytest.approx(1.5 * few.busy, rel=0.1)


def test_a_decider_that_fails_loses_what_it_held_and_the_others_go_on() -> None:
    became = simulate(replace(STEADY, rate=3_000.0, fails_at=0.5, noticed_s=0.2, back_s=1.0), EXACT)

    assert 0 < became.lost < 20
    assert became.answered > 0.97 * became.sent
    assert became.failed_share < 0.01


def test_who_asks_a_machine_that_is_gone_waits_until_that_is_noticed() -> None:
    fails = replace(STEADY, deciders=2, seconds=1.0, rate=1_500.0, fails_at=0.5, back_s=9.0)
    costs = replace(EXACT, select_s=0.5e-3)

    noticed = simulate(replace(fails, noticed_s=0.1), costs)
    unnoticed = simulate(replace(fails, noticed_s=9.0), costs)

    assert noticed.sent - noticed.answered < unnoticed.sent - unnoticed.answered
    assert unnoticed.answered > 0.9 * unnoticed.sent


def test_more_than_may_wait_are_refused() -> None:
    became = simulate(replace(STEADY, rate=20_000.0, most_waiting=10), EXACT)

    assert became.refused > 0.5 * became.sent
    assert became.p99_s < 0.05


def test_a_push_that_slows_deciders_shows_in_the_times() -> None:
    pushed = replace(STEADY, rate=2_400.0, slow_from=0.0, slow_until=2.0, slowness=1.5)

    assert (
        simulate(pushed, EXACT).p99_s > 1.3 * simulate(replace(pushed, slowness=1.0), EXACT).p99_s
    )


def test_the_same_seed_gives_the_same_story() -> None:
    costs = replace(EXACT, spread=0.4, commit_spread=0.4)

    assert simulate(STEADY, costs) == simulate(STEADY, costs)
    assert simulate(STEADY, costs) != simulate(replace(STEADY, seed=1), costs)
