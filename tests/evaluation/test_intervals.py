"""Intervals are repeatable, have the width of their formula, and narrow as rounds come."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.errors import SettingError
from fastbandit.evaluation.estimators import Contributions
from fastbandit.evaluation.intervals import (
    Interval,
    bernstein_interval,
    bootstrap,
    intervals_of,
    normal_interval,
)

COIN = Contributions(np.array([0.0, 1.0, 0.0, 1.0]))


def numbers(count: int) -> Contributions:
    return Contributions(np.random.default_rng(1).normal(size=count))


def test_the_normal_interval_is_the_one_of_its_formula() -> None:
    half = 1.959963984540054 * np.sqrt(1.0 / 3.0) / 2.0

    assert normal_interval(COIN) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-9)


def test_the_bernstein_interval_is_the_one_of_its_formula() -> None:
    log = np.log(4.0 / 0.05)
    half = np.sqrt(2.0 / 3.0 * log / 4.0) + 7.0 * log / 9.0

    assert bernstein_interval(COIN) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-9)


def test_the_bootstrap_has_the_spread_of_a_mean() -> None:
    drawn = bootstrap([numbers(500)], resamples=2_000, seed=0)

    assert drawn.std() == pytest.approx(1.0 / np.sqrt(500), rel=0.1)


def test_many_rounds_are_drawn_in_blocks_with_the_same_spread() -> None:
    drawn = bootstrap([numbers(40_000)], resamples=200, seed=0)

    assert drawn.std() == pytest.approx(1.0 / 200.0, rel=0.2)
    assert drawn.mean() == pytest.approx(numbers(40_000).value, abs=1e-3)


def test_a_ratio_is_drawn_as_a_ratio() -> None:
    tops = np.random.default_rng(0).random(300)
    drawn = bootstrap([Contributions(2.0 * tops, tops)], resamples=50, seed=0)

    assert drawn == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["bootstrap", "normal", "bernstein"])
def test_a_seed_repeats_an_interval(kind: str) -> None:
    terms = [numbers(200)]

    assert intervals_of(terms, Interval(kind), seed=3) == intervals_of(
        terms, Interval(kind), seed=3
    )


@pytest.mark.parametrize("kind", ["bootstrap", "normal", "bernstein"])
def test_more_confidence_needs_a_wider_interval(kind: str) -> None:
    ((low, high),) = intervals_of([numbers(200)], Interval(kind, confidence=0.8))
    ((lower, higher),) = intervals_of([numbers(200)], Interval(kind, confidence=0.99))

    assert lower < low < high < higher


@pytest.mark.parametrize("kind", ["normal", "bernstein"])
def test_one_round_says_nothing_of_an_interval(kind: str) -> None:
    ((low, high),) = intervals_of([Contributions(np.ones(1))], Interval(kind))

    assert np.isnan([low, high]).all()


def test_resamples_need_to_be_some() -> None:
    with pytest.raises(SettingError, match="resamples needs to be at least 1: got 0"):
        Interval(resamples=0)
