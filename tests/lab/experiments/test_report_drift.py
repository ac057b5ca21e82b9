"""Settings whose rewards drift have a section of their own, which says what forgetting is worth."""

from __future__ import annotations

from typing import Any

from made_results import play

from lab.experiments.comparison import Setting, standings_of
from lab.experiments.outline import outline
from lab.experiments.report_drift import drift_table, is_drifting

DRIFTING = {"arms": 1000, "drift": "turn", "period": 6000}
STILL = {"arms": 1000}


def results() -> list[dict[str, Any]]:
    return [
        play("LinearTS", 0.3, options=DRIFTING),
        play("LinearTS fading", 0.5, options=DRIFTING),
        play("LinearTS", 0.8, options=STILL),
        play("LinearTS fading", 0.7, options=STILL),
        play("GANBandit window", 0.6, options=DRIFTING),
        play("Exhaust TS", 0.9),
    ]


def test_a_setting_drifts_unless_its_drift_is_none() -> None:
    assert is_drifting(Setting("h1", (("drift", "turn"), ("period", "6000"))))
    assert not is_drifting(Setting("h1", (("drift", "none"),)))
    assert not is_drifting(Setting("h1"))


def test_the_table_says_what_forgetting_adds_where_rewards_drift_and_where_not() -> None:
    table = drift_table(standings_of(results()))

    assert table.headings == (
        "policy",
        "h1 (arms 1000, drift turn, period 6000)",
        "h1 (arms 1000)",
    )
    assert table.rows == (
        ("LinearTS", "0.300", "0.800"),
        ("LinearTS fading", "0.500 (+0.200)", "0.700 (-0.100)"),
        ("GANBandit window", "0.600", "–"),
    )


def test_settings_that_drift_have_a_section_of_their_own() -> None:
    sections = {section.title: section for section in outline(results())}

    assert [part.title for part in sections["Datasets"].parts] == ["h1", "h1 (arms 1000)"]
    assert [part.title for part in sections["Drift"].parts] == [
        "h1 (arms 1000, drift turn, period 6000)"
    ]


def test_without_such_settings_there_is_no_such_section() -> None:
    assert "Drift" not in [section.title for section in outline([play("LinearTS")])]
