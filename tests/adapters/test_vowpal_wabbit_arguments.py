"""Each flag of a command line becomes a setting, or is named with the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from fastbandit.adapters.vowpal_wabbit_arguments import of_configuration, read_arguments
from fastbandit.errors import SettingError
from fastbandit.settings.service import SECTIONS, settings_of


def test_flags_with_a_meaning_become_settings() -> None:
    found = read_arguments("vw --cb_explore_adf --squarecb --epsilon=0.1 --random_seed 7 -q UA")

    assert found.settings == {
        "select.exploration": "ts",
        "select.epsilon": 0.1,
        "select.seed": 7,
    }


def test_optimism_becomes_upper_bounds() -> None:
    assert read_arguments("--regcb --regcbopt").settings == {"select.exploration": "ucb"}


def test_every_other_flag_is_named_with_a_reason() -> None:
    found = read_arguments("-qUA -b 22 -l 0.1 --power_t 0 --mellowness 0.01 -f x --quiet --odd -5")

    assert found.settings == {}
    assert [(one.flag, one.value) for one in found.flags] == [
        ("--quadratic", "UA"),
        ("--bit_precision", "22"),
        ("--learning_rate", "0.1"),
        ("--power_t", "0"),
        ("--mellowness", "0.01"),
        ("--final_regressor", "x"),
        ("--quiet", ""),
        ("--odd", "-5"),
    ]
    assert all(one.why for one in found.flags)
    assert str(found.flags[-1]) == "--odd -5 becomes nothing: not known here"


@pytest.mark.parametrize(
    "text", ["vw train.dat --epsilon 0.1", "vw --epsilon 0.1 train.dat", "-qUA train.dat"]
)
def test_names_of_files_become_nothing(text: str) -> None:
    found = read_arguments(text)

    assert [str(one) for one in found.flags if not one.flag.startswith("-")] == [
        "train.dat becomes nothing: what is read and written is named by this command"
    ]
    assert found.settings == ({} if "-q" in text else {"select.epsilon": 0.1})


def test_namespaces_are_ignored_or_retained_by_their_first_letter() -> None:
    ignoring, keeping = read_arguments("--ignore U"), read_arguments("--keep I --keep C")

    assert not ignoring.learns_from("User")
    assert ignoring.learns_from("Item")
    assert [keeping.learns_from(name) for name in ("Item", "Cart", "User")] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--epsilon much", "--epsilon needs a number"),
        ("--epsilon 2", "--epsilon needs a number from 0 to 1: got '2'. Correct"),
        ("--epsilon nan", "--epsilon needs a number from 0 to 1: got 'nan'"),
        ("--random_seed inf", "--random_seed needs a number from 0 to"),
        ("--data 'x", "quotes in pairs"),
    ],
)
def test_a_wrong_command_line_is_rejected(text: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        read_arguments(text)


def test_a_configuration_of_personalizer_becomes_settings() -> None:
    found = of_configuration(
        {
            "rewardWaitTime": "PT10M30S",
            "defaultReward": 0.5,
            "rewardAggregation": "sum",
            "explorationPercentage": 0.2,
            "modelExportFrequency": "PT5M",
            "logRetentionDays": -1,
            "learningMode": "Apprentice",
            "isAutoOptimizationEnabled": False,
        }
    )

    assert found.settings == {
        "reward.wait_seconds": 630.0,
        "reward.default": 0.5,
        "reward.combine": "sum",
        "select.epsilon": 0.2,
        "learn.seconds": 300.0,
        "log.retain_days": 0,
        "shadow.baseline": "request",
    }
    assert [one.flag for one in found.flags if not one.setting] == ["isAutoOptimizationEnabled"]


def test_learning_settings_have_a_command_line() -> None:
    found = of_configuration({"arguments": "--cb_explore_adf --epsilon 0.3", "name": "mine"})

    assert found.settings == {"select.epsilon": 0.3}


def test_all_settings_that_flags_become_are_known() -> None:
    known = {own.name for section in SECTIONS for own in settings_of(section)}
    flags = read_arguments("--cb_explore_adf --bag 5 --epsilon 0.1 --random_seed 1").settings
    stored = of_configuration({"rewardWaitTime": "P1DT1H", "logRetentionDays": 3}).settings

    assert {*flags, *stored} <= known


def test_a_wait_of_weeks_is_read() -> None:
    assert of_configuration({"rewardWaitTime": "P1W"}).settings["reward.wait_seconds"] == 604_800


@pytest.mark.parametrize(
    "given",
    [{"rewardWaitTime": "ten"}, {"defaultReward": "none"}, {"explorationPercentage": 20}],
)
def test_a_wrong_configuration_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="Correct the file"):
        of_configuration(given)
