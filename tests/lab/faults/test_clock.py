"""Steps of the wall clock change nothing of what is joined; and would, if it were trusted."""

from __future__ import annotations

import json

from click.testing import CliRunner

from lab.faults.clock import clock_command, step_clock


def test_what_is_joined_follows_the_true_time() -> None:
    report = step_clock(60, seed=1)

    assert report.differ == 0
    assert report.noticed == 60
    assert report.by_wall_clock > 10
    assert min(report.restarts, report.boots) > 0


def test_the_command_prints_what_was_found() -> None:
    done = CliRunner().invoke(clock_command, ["--steps", "20", "--json"])

    assert done.exit_code == 0
    assert json.loads(done.stdout)["noticed"] == 20
