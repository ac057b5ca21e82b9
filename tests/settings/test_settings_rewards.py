"""Settings of rewards: weights of outcomes, and what counts where some did not come."""

from __future__ import annotations

from pathlib import Path

import pytest
from service_configs import file_with, refusal

from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service_files import read_config, written

WEIGHTS = (("quality", 1.0), ("cost", -0.5))


@pytest.mark.parametrize(
    "text",
    [
        '[reward]\nkind = "real"\nweights = {quality = 1, cost = -0.5}\n',
        '[reward]\nkind = "real"\n[reward.weights]\nquality = 1.0\ncost = -0.5\n',
        f'[reward]\nkind = "real"\nweights = {written(WEIGHTS)}\n',
    ],
)
def test_weights_are_a_table_of_a_file(text: str, tmp_path: Path) -> None:
    config = read_config(file_with(tmp_path, text), environ={})

    assert config.reward.weights == WEIGHTS
    assert config.reward.adds_up


def test_weights_may_stand_in_the_environment_as_json() -> None:
    environ = {
        "FASTBANDIT_REWARD_KIND": "real",
        "FASTBANDIT_REWARD_WEIGHTS": '{"quality": 1, "cost": -0.5}',
    }

    assert read_config(None, environ=environ).reward.weights == WEIGHTS


@pytest.mark.parametrize("bad", ["[1]", "{quality = true}", '{quality = "1"}', '{"" = 1}', "3"])
def test_weights_that_are_none_are_refused(bad: str, tmp_path: Path) -> None:
    path = file_with(tmp_path, f'[reward]\nkind = "real"\nweights = {bad}\n')

    said = refusal(lambda: read_config(path, environ={}))

    assert "reward.weights needs a table of names and finite numbers" in said


def test_outcomes_combine_into_real_rewards() -> None:
    assert "Set reward.kind = 'real'" in refusal(lambda: RewardConfig(weights=WEIGHTS))


def test_a_combination_is_told_from_others_whatever_its_order() -> None:
    plain = RewardConfig(kind="real")
    one = RewardConfig(kind="real", weights=WEIGHTS)
    other = RewardConfig(kind="real", weights=WEIGHTS[::-1])

    assert plain.combination == ""
    assert one.combination == other.combination != ""
    assert RewardConfig(missing="skip").combination not in ("", one.combination)
