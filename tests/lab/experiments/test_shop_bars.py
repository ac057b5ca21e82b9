"""Bars of the synthetic shop are judged by pairs over seeds."""

from __future__ import annotations

import pytest

from lab.experiments.shop_bars import Row, bars_of, print_bars


def rows(seed: int, bandit: float, popular: float, greedy: float) -> list[Row]:
    agents = {"fastbandit": bandit, "popularity": popular, "greedy popularity": greedy}
    return [
        Row(seed, start, name, rate, rate, rate, rate, None)
        for start in ("cold", "warm")
        for name, rate in agents.items()
    ]


def test_the_better_popularity_of_each_seed_counts() -> None:
    early, last, first = bars_of([*rows(0, 0.3, 0.1, 0.2), *rows(1, 0.3, 0.2, 0.1)])

    assert early.ratios == pytest.approx([1.5, 1.5])
    assert (early.verdict, last.verdict, first.verdict) == ("met", "met", "met")


def test_a_bar_within_the_interval_is_undecided_and_one_above_it_is_missed() -> None:
    found = bars_of([*rows(0, 0.11, 0.1, 0.1), *rows(1, 0.12, 0.1, 0.1)])

    assert [bar.verdict for bar in found] == ["undecided", "undecided", "undecided"]
    found = bars_of([row for seed in range(6) for row in rows(seed, 0.11, 0.1, 0.1)])
    assert [bar.verdict for bar in found] == ["met", "missed", "missed"]


def test_one_seed_decides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bars = bars_of(rows(0, 0.3, 0.1, 0.2))
    print_bars(bars)

    assert {bar.verdict for bar in bars} == {"undecided"}
    assert "1 of 1" in capsys.readouterr().out
