"""A slow learner lags by no more than two trainings, and kills do not starve one."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lab.faults.behind import BehindReport, behind_command

pytestmark = pytest.mark.slow


def test_it_keeps_up_or_says_so_and_ends_in_spite_of_kills() -> None:
    short = ["--train-seconds", "4", "--versions", "2", "--hung-seconds", "0", "--json"]

    done = CliRunner().invoke(behind_command, [*short, "--kill-seconds", "6"])

    found = json.loads(done.stdout)
    assert done.exit_code == 0, found
    assert found["same"]
    assert found["kills"] > 1
    assert found["ratio"] <= 2.0


@pytest.mark.parametrize(
    ("lag", "told", "same", "is_met"),
    [(15.0, 59.0, True, True), (17.0, 59.0, True, False), (15.0, 61.0, True, False)],
)
def test_a_bar_that_is_missed_is_a_miss(lag: float, told: float, same: bool, is_met: bool) -> None:
    report = BehindReport(8.0, [1.0, lag], told, 20.0, 4.0, 5, same)

    assert report.is_met == is_met
