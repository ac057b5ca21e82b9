"""A slow learner says how far it is behind, and kills do not starve one."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lab.faults.behind import BehindReport, behind_command

pytestmark = pytest.mark.slow


def test_it_says_how_far_it_is_behind_and_ends_in_spite_of_kills() -> None:
    short = ["--train-seconds", "4", "--versions", "2", "--hung-seconds", "0", "--json"]

    done = CliRunner().invoke(behind_command, [*short, "--kill-seconds", "6"])

    found = json.loads(done.stdout)
    assert len(found["lags"]) == 2  # how long is for the campaign to judge
    assert found["same"]
    assert found["kills"] > 1


@pytest.mark.parametrize(
    ("lag", "told", "same", "is_met"),
    [(15.0, 59.0, True, True), (17.0, 59.0, True, False), (15.0, 61.0, True, False)],
)
def test_a_bar_that_is_missed_is_a_miss(lag: float, told: float, same: bool, is_met: bool) -> None:
    report = BehindReport(7.5, 8.0, [1.0, lag], told, 20.0, 4.0, 5, same)

    assert report.is_met == is_met
