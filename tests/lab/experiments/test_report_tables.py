"""The words of the report's tables."""

from __future__ import annotations

import pytest
from made_results import play, replayed, runtime, scaling, training

from lab.experiments.comparison import Setting, bars_of, standings_of
from lab.experiments.paper_figures import AVERAGES, DATASETS, printed
from lab.experiments.report_tables import (
    Table,
    averages_table,
    bars_table,
    replays_of,
    replays_table,
    runtime_table,
    scaling_table,
    shares_table,
    speedup_table,
    standings_table,
    training_table,
)


def by_heading(table: Table, row: int = 0) -> dict[str, str]:
    return dict(zip(table.headings, table.rows[row], strict=True))


def test_a_standing_is_worded_with_its_interval_and_its_comparison() -> None:
    runs = [
        play("GANBandit TS", share, seed=n, quality=0.9 + 0.1 * n)
        for n, share in enumerate((0.6, 0.8))
    ]
    runs += [play("Exhaust TS", 0.7, seed=seed) for seed in (0, 1)]

    row = by_heading(standings_table(standings_of(runs)), row=1)

    assert row["policy"] == "GANBandit TS"
    assert row["share of best"] == "0.700 ± 1.271"
    assert row["÷ Exhaust"] == "1.000"
    assert (row["q"], row["lowest q"]) == ("0.9500", "0.9000")
    assert (row["ms per decision"], row["s per update"]) == ("2", "1.5")
    assert (row["seeds"], row["T"]) == ("2", "30")


def test_one_seed_has_no_plus_minus() -> None:
    row = by_heading(standings_table(standings_of([play("Random", 0.25)])))

    assert row["share of best"] == "0.250"
    assert row["q"] == "–"


def test_times_of_two_devices_are_named() -> None:
    runs = [play("Random"), play("Random", device="cuda", select_seconds=0.001)]

    row = by_heading(standings_table(standings_of(runs)))

    assert row["ms per decision"] == "2 (cpu), 1 (cuda)"


def test_the_short_table_has_datasets_as_columns_and_the_lowest_mean_quality() -> None:
    runs = [
        play("GANBandit TS", 0.5, quality=0.98),
        play("GANBandit TS", 0.75, quality=0.96, dataset="bibtex"),
        play("GANBandit TS", 0.1, options={"dim": 16}),
        play("GANBandit TS", 0.1, preset="paper"),
        play("NeuralLinear", 0.1),
    ]

    table = shares_table(standings_of(runs))

    assert table.headings[1:] == ("h1", "Bibtex", "q at least")
    assert table.rows == (("GANBandit TS", "0.500", "0.750", "0.9600"),)


def test_the_short_table_is_of_the_seeds_that_all_policies_played() -> None:
    runs = [play("Random", 0.2), play("GANBandit TS", 0.5), play("GANBandit TS", 0.9, seed=1)]

    table = shares_table(standings_of(runs))

    assert [row[1] for row in table.rows] == ["0.200", "0.500"]


def test_bars_are_worded_with_their_numbers() -> None:
    runs = [play("GANBandit TS", 0.6), play("Exhaust TS", 0.8), play("LinearTS", 0.5)]

    table = bars_table(bars_of(standings_of(runs)))

    assert table.rows == (("h1", "missed: 0.750", "–", "met: 0.800, 0.500", "–", "–"),)


def test_run_times_stand_beside_the_printed_ones() -> None:
    qualities = {(Setting("h1"), "Exhaust TS"): 1.0}

    table = runtime_table([runtime("Exhaust TS")], qualities)

    single = ("8.24 s", "4.12 s", "2")
    batch = ("7 ms", "14 ms", "0.5")
    assert table.rows == (("h1", "Exhaust TS", "10,000", *single, *batch, "4.56 s", "1.0000"),)


def test_a_dataset_that_the_paper_has_not_is_shown_without_its_figures() -> None:
    table = runtime_table([runtime("Exhaust TS", dataset="omniglot", single=None)], {})

    assert table.rows[0][3:6] == ("–", "–", "–")


def test_speed_ups_are_over_the_exhaustive_search_with_the_same_exploration() -> None:
    results = [
        runtime("Exhaust TS"),
        runtime("GANBandit TS", single=8.24e-3, batch=7e-5, train=9.12),
        runtime("GANBandit UCB"),
    ]

    table = speedup_table(results)

    assert table.rows == (("h1", "GANBandit TS", "1,000×", "22,762×", "100×", "8,537×", "2×"),)


def test_averages_are_over_the_datasets_of_the_paper() -> None:
    results = [
        runtime("Exhaust TS", single=2.0),
        runtime("Exhaust TS", single=4.0, dataset="bibtex"),
        runtime("Exhaust TS", single=99.0, dataset="omniglot"),
    ]

    row = averages_table(results).rows[0]

    assert row[:4] == ("Exhaust TS", "2", "3 s", "4.03 s")
    assert row[-3:] == ("4.56 s", "9.12 s", "0.5")


def test_training_ratios_end_with_those_of_the_paper() -> None:
    table = training_table([training()])

    assert table.rows[0] == ("h1", "default", "2.00", "4 s ÷ 2 s", "3.00", "6 s ÷ 2 s")
    assert table.rows[1][2] == "3.45"


def test_scaling_has_a_column_for_each_number_of_arms() -> None:
    results = [scaling("Exhaust TS"), scaling("LinearTS", arms=[10], seconds=[1e-6], quality=None)]

    table = scaling_table(results)

    assert table.headings == ("policy", "N = 10", "N = 100", "N = 10,000", "slope", "lowest q")
    assert table.rows == (
        ("LinearTS", "1 µs", "–", "–", "1.00", "–"),
        ("Exhaust TS", "–", "1 ms", "100 ms", "1.00", "0.9900"),
    )


def test_replays_are_averaged_over_seeds_and_may_know_nothing() -> None:
    results = [replayed("LinearTS", 0.2), replayed("LinearTS", 0.4, seed=1)]
    results.append(replayed("Random", None, matches=0))

    table = replays_table(replays_of(results))

    assert table.rows == (
        ("Random", "default", "–", "– to –", "0", "1"),
        ("LinearTS", "default", "0.30000", "0.20000 to 0.40000", "40", "2"),
    )


def test_a_bar_in_a_word_does_not_end_its_cell() -> None:
    assert "a\\|b" in Table(("one",), (("a|b",),)).to_markdown()


def test_the_printed_figures_are_those_of_the_paper() -> None:
    assert printed("h1", "Exhaust TS") == (4.12, 0.014)
    assert printed("the-movies", "GANBandit UCB") == (1.7e-3, 8.1e-5)
    assert printed("celeba", "FastBandit UCB") == (0.699, 35.4)
    assert printed("omniglot", "Exhaust TS") == (None, None)
    assert AVERAGES["GANBandit UCB"] == (3.01e-4, 7.92e-6, 52.93)


@pytest.mark.parametrize("policy", AVERAGES)
def test_every_dataset_of_the_paper_has_two_positive_figures(policy: str) -> None:
    for dataset in DATASETS:
        single, batch = printed(dataset, policy)
        assert single is not None
        assert batch is not None
        assert min(single, batch) > 0
