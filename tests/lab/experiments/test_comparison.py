"""Runs side by side: averages, intervals, and bars."""

from __future__ import annotations

import numpy as np
import pytest
from made_results import play
from scipy import stats

from lab.experiments.comparison import (
    DATASETS,
    Bar,
    Estimate,
    Setting,
    bars_of,
    late_share_of,
    longest,
    of_exhaust,
    seeds_text,
    standings_of,
    t_quantile,
)
from lab.experiments.datasets import NAMES


@pytest.mark.parametrize("seeds", [2, 3, 5, 11, 31, 32, 50, 200])
def test_the_interval_is_that_of_students_t(seeds: int) -> None:
    assert t_quantile(seeds) == pytest.approx(stats.t.ppf(0.975, seeds - 1), abs=2e-3)


def test_a_share_has_a_mean_and_an_interval_over_seeds() -> None:
    (standing,) = standings_of(
        [play("Random", share, seed=n) for n, share in enumerate((0.2, 0.4))]
    )

    assert standing.share is not None
    assert standing.share.mean == pytest.approx(0.3)
    assert standing.share.half == pytest.approx(12.706 * 0.1, rel=1e-3)


def test_one_seed_has_no_interval_and_no_band() -> None:
    (standing,) = standings_of([play("Random")])

    assert standing.share is not None
    assert standing.share.half is None
    assert standing.reward_curve().half is None


def test_curves_are_sums_at_the_ends_of_batches() -> None:
    short_last = play("Random", rounds=25, earned=[1.0, 2.0, 1.0], best=[4.0, 4.0, 2.0])
    (standing,) = standings_of([short_last])

    reward, regret = standing.reward_curve(), standing.regret_curve()

    assert reward.rounds.tolist() == [10, 20, 25]
    assert reward.mean.tolist() == [1, 3, 4]
    assert regret.mean.tolist() == [3, 5, 6]


def test_a_band_is_the_interval_of_the_sums() -> None:
    runs = [play("Random", seed=n, earned=[1.0 + n, 1.0, 1.0]) for n in range(2)]
    (standing,) = standings_of(runs)

    half = standing.reward_curve().half

    assert half is not None
    assert half == pytest.approx(np.full(3, 12.706 * 0.5), rel=1e-3)


def test_the_rounds_are_those_that_were_played() -> None:
    (standing,) = standings_of([play("Random", rounds=500, played=30)])

    assert standing.rounds == 30


def test_a_seed_on_two_devices_counts_once_with_times_of_each() -> None:
    (standing,) = standings_of([play("Random"), play("Random", device="cuda", select_seconds=1.0)])

    assert len(standing.by_seed) == 1
    assert standing.by_device("select_seconds") == {"cpu": 0.002, "cuda": 1.0}


def test_plays_of_another_length_or_with_other_options_stand_apart() -> None:
    runs = [
        play("Random"),
        play("Random", rounds=20, earned=[1.0, 1.0], best=[9.0, 9.0]),
        play("Random", options={"dim": 16}),
    ]

    standings = standings_of(runs)

    assert [(s.setting.label, s.rounds) for s in standings] == [
        ("h1", 30),
        ("h1", 20),
        ("h1 (dim 16)", 30),
    ]
    assert [s.rounds for s in longest(standings)] == [30, 30]


def test_a_policy_is_compared_on_the_seeds_and_rounds_that_both_played() -> None:
    exhaust = [play("Exhaust TS", 0.8), play("Exhaust TS", 0.1, seed=1)]
    short = play("GANBandit TS", 0.4, rounds=20, earned=[4.0, 4.0], best=[10.0, 10.0])
    exhaust[0]["earned"] = [8.0, 8.0, 0.0]

    standings = standings_of([*exhaust, short])
    gan = next(s for s in standings if s.policy == "GANBandit TS")

    assert of_exhaust(gan, standings) == Estimate(pytest.approx(0.5), None)


def test_what_a_search_keeps_has_the_interval_of_pairs_of_seeds() -> None:
    apart = [play("Exhaust TS", share, seed=n) for n, share in enumerate((0.2, 0.9))]
    level = [play("GANBandit TS", 0.5 * share, seed=n) for n, share in enumerate((0.2, 0.9))]
    odd = [play("FastBandit TS", share, seed=n) for n, share in enumerate((0.3, 0.8))]

    standings = standings_of([*apart, *level, *odd])
    found = {s.policy: of_exhaust(s, standings) for s in standings}

    assert found["GANBandit TS"] == Estimate(pytest.approx(0.5), pytest.approx(0.0))
    # one reward of ten less, one more: t is 12.7 with a standard error of 0.1
    assert found["FastBandit TS"] == Estimate(
        pytest.approx(1.0), pytest.approx(12.706 * 0.1 / 0.55)
    )


def test_only_searches_are_compared_with_the_exhaustive_one() -> None:
    standings = standings_of([play("Exhaust TS"), play("LinearTS"), play("GANBandit UCB")])
    ratios = {s.policy: of_exhaust(s, standings) for s in standings}

    assert ratios == {"Exhaust TS": Estimate(1.0, None), "LinearTS": None, "GANBandit UCB": None}


def test_nothing_is_a_share_of_a_best_that_is_not_positive() -> None:
    (standing,) = standings_of([play("Random", best=[-1.0, 0.0, 0.0], earned=[-2.0, -1.0, 0.0])])

    assert standing.share is None
    assert standing.regret.mean == pytest.approx(2.0)


def test_bars_are_judged_by_the_numbers_in_the_files() -> None:
    shares = {"GANBandit TS": 0.785, "Exhaust TS": 0.8, "GANBandit UCB": 0.7, "Exhaust UCB": 0.8}
    runs = [play(name, shares[name], seed=seed) for name in shares for seed in (0, 1)]
    runs += [play("LinearTS", 0.8)]

    bars = {bar.name: bar.verdict for bar in bars_of(standings_of(runs))}

    assert bars == {
        "GANBandit TS ≥ 0.98 × Exhaust TS": "met",
        "GANBandit UCB ≥ 0.98 × Exhaust UCB": "missed",
        "Exhaust TS ≥ LinearTS": "undecided",
        "Exhaust TS ≥ Overall best arm": None,
        "Exhaust TS ≥ Learned best arm": None,
    }


def gan_bar(*shares: tuple[float, float]) -> Bar:
    """Return the bar of GANBandit TS whose seeds earned these shares, and Exhaust TS those."""
    runs = []
    for seed, (gan, exhaust) in enumerate(shares):
        runs += [play("GANBandit TS", gan, seed=seed), play("Exhaust TS", exhaust, seed=seed)]
    return next(bar for bar in bars_of(standings_of(runs)) if bar.shares is not None)


def test_a_bar_within_the_interval_over_seeds_is_undecided() -> None:
    assert gan_bar((0.4, 0.5), (0.5, 0.5), (0.5, 0.5)).verdict == "undecided"
    assert gan_bar((0.5, 0.5), (0.9, 0.5)).verdict == "undecided"


def test_a_bar_that_all_seeds_miss_or_clear_by_the_same_is_decided() -> None:
    assert gan_bar((0.4, 0.5), (0.41, 0.5), (0.4, 0.5)).verdict == "missed"
    assert gan_bar((0.5, 0.5), (0.501, 0.5), (0.5, 0.5)).verdict == "met"


def test_one_seed_or_none_in_common_decides_nothing() -> None:
    apart = [play("GANBandit TS", 0.9, seed=0), play("Exhaust TS", 0.1, seed=1)]

    assert gan_bar((0.9, 0.1)).verdict == "undecided"
    assert bars_of(standings_of(apart))[0].verdict == "undecided"


def test_fewer_than_ten_seeds_are_counted() -> None:
    assert [seeds_text(count) for count in (1, 3, 10)] == [" (1 seed)", " (3 seeds)", ""]


def test_late_shares_are_those_of_the_last_quarter() -> None:
    run = play("Random", earned=[0.0, 0.0, 0.0, 8.0], best=[10.0] * 4)

    assert late_share_of(run) == pytest.approx(0.8)
    assert late_share_of(play("Random", 0.5)) == pytest.approx(0.5)


def test_bars_judge_the_default_preset_alone() -> None:
    runs = [play(policy, preset="paper") for policy in ("Exhaust TS", "GANBandit TS")]

    assert bars_of(standings_of(runs)) == []


def test_every_dataset_has_its_order_and_an_unknown_one_comes_last() -> None:
    assert tuple(name for name in DATASETS if name != "drawn-faces") == NAMES
    assert Setting("zoo").sort_key > Setting("hartmann6").sort_key
