"""Several plays a round, each at a cost: settings, oracles, tables and the command."""

import json
from pathlib import Path

import numpy as np
import pytest

from fastbandit.cli.main import run as run_cli
from fastbandit.errors import SettingError
from lab.__main__ import cli
from lab.baselines.scaling_mab import best_plays
from lab.experiments.multiple_plays import (
    ENTRIES,
    MARKS,
    Arms,
    Task,
    Trace,
    costs_of,
    play,
    row_of,
)


def command(*args: object) -> int:
    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", "multiple-plays", *map(str, args)], prog_name="lab")
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_means_are_spread_evenly_and_best_first() -> None:
    means = Arms("static", 100, 30).means(0)

    assert means[0] == pytest.approx(1 - 1 / 300)
    assert np.allclose(np.diff(means), -0.01)
    assert [best_plays(means, cost) for cost in (0.9, 0.7, 0.5)] == [20, 60, 100]


def test_the_best_arms_earn_nothing_in_the_middle_third_alone() -> None:
    arms = Arms("changes", 10, 30)

    assert [one.start for one in arms.spells()] == [0, 10, 20]
    assert np.array_equal(arms.means(9), arms.means(20))
    assert arms.means(10)[:3].tolist() == [0.0, 0.0, 0.0]
    assert np.array_equal(arms.means(19)[3:], arms.means(0)[3:])


@pytest.mark.parametrize("setting", ["static", "changes"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_policy_earns_more_than_the_best_arms_of_its_plays(entry, setting: str) -> None:
    arms = Arms(setting, 10, 60)

    trace = play(arms, entry.make(Task(arms, 0.7, 0)), seed=0)

    assert (trace.earned <= trace.best + 1e-9).all()
    assert (trace.plays >= 1).all()
    assert (trace.plays <= 10).all()


def test_the_oracle_has_no_regret() -> None:
    arms = Arms("changes", 10, 30)
    plays = np.array([best_plays(arms.means(number), 0.6) for number in range(30)])
    best = np.array([np.sort(arms.means(n))[::-1][:k].sum() for n, k in enumerate(plays)])

    row = row_of(arms, 0.6, "oracle", [Trace(plays, best, best)] * 2)

    assert (row.arm_regret.mean, row.play_regret.mean) == (0.0, 0.0)
    assert row.best_plays == pytest.approx(row.plays.mean)
    assert row.mean_of_play.mean > 0.6


@pytest.mark.parametrize("text", ["", "1.0", "a", "-0.1", "nan"])
def test_costs_are_at_least_0_and_below_1(text: str) -> None:
    with pytest.raises(SettingError, match="--costs"):
        costs_of(text)


def test_the_command_writes_both_settings_between_the_marks_of_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{MARKS[0]}\nold\n{MARKS[1]}\n\nafter\n", encoding="utf-8")
    few = ("--arms", 10, "--rounds", 30, "--seeds", 2, "--costs", "0.8,0.6")

    assert command(*few, "--doc", page) == 0

    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "**static**: 10 arms, 30 rounds, seeds 0 to 1" in text
    assert "| 0.8 | S-TS-ADWIN |" in text
    assert "**changes**" in capsys.readouterr().out


def test_json_has_a_row_for_each_setting_cost_and_policy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command("--arms", 10, "--rounds", 12, "--seeds", 2, "--costs", "0.6", "--json") == 0

    rows = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in rows if row["setting"] == "changes"] == [
        entry.name for entry in ENTRIES
    ]
    assert {row["setting"] for row in rows} == {"static", "changes"}
    assert all(row["play_regret"]["half"] is not None for row in rows)
