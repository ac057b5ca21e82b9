"""The checks of estimators, where the truth is known."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.errors import DataError
from lab.estimators.command import coverage_command, speed_command
from lab.estimators.coverage import LoggedEnvironment, check_coverage
from lab.estimators.open_bandit import check_open_bandit
from lab.estimators.page import marks_of, write_into
from lab.estimators.speed import check_speed


def asked(command: click.Command, *args: str) -> str:
    done = CliRunner().invoke(command, args)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    found = check_coverage(logs=30, sizes=(400,))

    assert all(one.coverage >= 0.8 for one in found)


def test_errors_fall_as_rounds_come() -> None:
    few, many = (check_coverage(logs=8, sizes=(size,), interval="normal") for size in (200, 3_200))

    assert all(more.error < less.error for less, more in zip(few, many, strict=True))


def _numbers(environment: LoggedEnvironment, contexts: np.ndarray) -> np.ndarray:
    known = {row.tobytes(): number for number, row in enumerate(environment.contexts)}
    return np.array([known[row.tobytes()] for row in contexts])


def test_the_true_value_is_what_the_policy_earns() -> None:
    environment = LoggedEnvironment.make()
    rounds, policy = environment.log(20_000, seed=1)
    rewards = environment.probabilities[_numbers(environment, rounds.contexts)]
    earned = (policy.probabilities * rewards).sum(axis=1)

    assert earned.mean() == pytest.approx(environment.value, abs=0.01)


def test_many_rounds_over_many_arms_are_evaluated() -> None:
    found = check_speed(rounds=5_000, arms=20_000)

    for name in ("ips", "snips", "dr"):
        one = found.evaluation[name]
        assert one.low - 0.01 <= found.truth <= one.high + 0.01


def test_the_coverage_check_prints_a_table() -> None:
    assert "coverage" in asked(coverage_command, "--logs", "1")


def test_the_speed_check_prints_what_it_took() -> None:
    said = asked(speed_command, "--rounds", "500", "--arms", "1000")

    assert "GiB in memory" in said


def test_a_page_without_marks_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n")

    with pytest.raises(DataError, match="needs the marks"):
        write_into(page, "speed", "new")
    assert page.read_text() == "# Page\n"


def test_what_a_check_found_goes_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page, (first, last) = tmp_path / "page.md", marks_of("coverage")
    page.write_text(f"before\n{first}\nold\n{last}\nafter\n")

    asked(coverage_command, "--logs", "1", "--write", str(page))

    text = page.read_text()
    assert text.startswith(f"before\n{first}\n\n| estimator |")
    assert text.endswith(f"\n\n{last}\nafter\n")
    assert "old" not in text


def test_open_bandit_needs_its_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="openbandit"):
        check_open_bandit(tmp_path)


@pytest.mark.parametrize("option", [["--seed", "-1"], ["--logs", "0"]])
def test_a_number_out_of_range_is_refused(option: list[str]) -> None:
    done = CliRunner().invoke(coverage_command, option)

    assert done.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in done.output


def test_no_rounds_are_refused() -> None:
    done = CliRunner().invoke(speed_command, ["--rounds", "0"])

    assert done.exit_code == 2
    assert "Invalid value for '--rounds'" in done.output
