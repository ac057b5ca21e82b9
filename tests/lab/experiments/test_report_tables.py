"""The words of the report's tables."""

from __future__ import annotations

from typing import Any

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
from lab.experiments.results import REAL_FACES


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
    assert row["÷ Exhaust"] == "1.000 ± 1.815"
    assert (row["q"], row["lowest q"]) == ("0.9500", "0.9000")
    assert (row["ms per decision"], row["s per update"]) == ("2", "1.5")
    assert (row["seeds"], row["T"], row["code"]) == ("2", "30", "`0123456789`")


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
    assert table.rows == (
        ("GANBandit TS", "0.500", "0.750", "0.9600"),
        ("seeds", "1", "1", "–"),
    )


def test_the_short_table_brackets_the_seeds_of_a_policy_that_played_fewer() -> None:
    runs = [play("Random", 0.2), play("GANBandit TS", 0.5), play("GANBandit TS", 0.9, seed=1)]
    runs += [play("LinearTS", share, seed=n) for n, share in ((0, 0.1), (1, 0.3))]

    table = shares_table(standings_of(runs))

    assert [row[1] for row in table.rows] == ["0.200 (1)", "0.200", "0.700", "2"]


def three_of_each(**changes: Any) -> list[dict[str, Any]]:
    shares = {"GANBandit TS": 0.6, "Exhaust TS": 0.8, "LinearTS": 0.5}
    return [play(name, share, seed=n, **changes) for name, share in shares.items() for n in (0, 1)]


def test_bars_are_worded_with_their_numbers_and_few_seeds() -> None:
    table = bars_table(bars_of(standings_of(three_of_each())))

    missed = "missed: 0.750 ± 0.000 (2 seeds)"
    met = "met: 0.800, 0.500, +0.300 ± 0.000 (2 seeds)"
    assert table.rows == (("h1", missed, "–", met, "–", "–"),)


def test_a_search_among_few_arms_is_scanned_and_not_judged() -> None:
    standings = standings_of(three_of_each(arms=40, evaluations=538.0, quality=0.99))

    (bars,) = bars_table(bars_of(standings)).rows
    rows = {row[0]: row for row in standings_table(standings).rows}
    assert bars[1:4] == ("scanned", "–", "met: 0.800, 0.500, +0.300 ± 0.000 (2 seeds)")
    assert (rows["GANBandit TS"][2], *rows["GANBandit TS"][4:6]) == ("scanned",) * 3
    assert rows["Exhaust TS"][4] == "0.9900"
    assert {row[-1] for row in shares_table(standings).rows} == {"–"}


def test_a_search_that_scored_a_part_of_few_arms_keeps_its_q_but_not_its_bar() -> None:
    standings = standings_of(three_of_each(arms=1_000, evaluations=73.0, quality=0.99))

    (bars,) = bars_table(bars_of(standings)).rows
    rows = {row[0]: row for row in standings_table(standings).rows}
    assert (bars[1], rows["GANBandit TS"][4]) == ("scanned", "0.9900")


def test_drawn_faces_and_a_simulator_have_their_true_names() -> None:
    runs = [
        play("Random", dataset="celeba", notes=["a generated sample: drawn faces, not CelebA"]),
        play("Random", dataset="openbandit"),
        play("Random", dataset="omniglot"),
    ]

    headings = shares_table(standings_of(runs)).headings
    assert headings[1:-1] == ("drawn faces", "Omniglot", "Open Bandit (simulator)")


def test_faces_are_celeba_only_where_a_result_says_so() -> None:
    noted = standings_of([play("Random", dataset="celeba", notes=[REAL_FACES])])

    assert noted[0].setting.label == "CelebA"
    assert "drawn faces" in runtime_table([runtime("Exhaust TS", dataset="celeba")], {}).rows[0]


def test_drawn_faces_do_not_stand_beside_the_papers_times_of_celeba() -> None:
    row = runtime_table([runtime("Exhaust TS", dataset="celeba")], {}).rows[0]

    assert row[3:6] == ("8.24 s", "–", "–")


def test_run_times_stand_beside_the_printed_ones() -> None:
    qualities = {(Setting("h1"), "Exhaust TS"): "1.0000"}

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
