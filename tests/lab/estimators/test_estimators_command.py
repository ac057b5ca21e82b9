"""Commands of the checks of estimators."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from lab.estimators.command import coverage_command, speed_command


def asked(command: click.Command, *args: str) -> str:
    done = CliRunner().invoke(command, args)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_the_coverage_check_prints_a_table() -> None:
    assert "coverage" in asked(coverage_command, "--logs", "1")


def test_the_speed_check_prints_what_it_took() -> None:
    said = asked(speed_command, "--rounds", "500", "--arms", "1000")

    assert "GiB in memory" in said


@pytest.mark.parametrize("option", [["--seed", "-1"], ["--logs", "0"]])
def test_a_number_out_of_range_is_rejected(option: list[str]) -> None:
    done = CliRunner().invoke(coverage_command, option)

    assert done.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in done.output


def test_no_rounds_are_rejected() -> None:
    done = CliRunner().invoke(speed_command, ["--rounds", "0"])

    assert done.exit_code == 2
    assert "Invalid value for '--rounds'" in done.output
