"""The command `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.errors import FastbanditError, SettingError

CSV = "x_0,arm,reward,propensity\n" + "".join(
    f"{place % 3},{place % 2},{place % 2},0.5\n" for place in range(40)
)


def printed(*args: str) -> str:
    """Run the command; return what it prints."""
    done = CliRunner().invoke(evaluate_command, args)
    if isinstance(done.exception, FastbanditError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_prints_a_table_and_sentences(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    said = printed("--log", str(tmp_path / "log.csv"), "--policy", "arm:1")

    assert "SNIPS" in said
    assert "- effective sample size 20 of 40: do not trust this" in said


def test_the_command_prints_json(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    said = printed(
        "--log", str(tmp_path / "log.csv"), "--policy", "arm:1", "--estimator", "snips", "--json"
    )

    assert json.loads(said)["estimates"][0]["value"] == 1.0


def test_the_command_needs_a_log_and_a_policy() -> None:
    with pytest.raises(SettingError, match="got --log None, --config None and"):
        printed("--policy", "uniform")
