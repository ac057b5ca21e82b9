"""What `shadow` and `promote` say of the two, and where they read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastbandit.cli.shadow import command as shadow_command
from fastbandit.errors import LogError
from fastbandit.serving.promotion import read_promotion
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
WAIT = 600 * SECOND


def decision(number: int, **changes: Any) -> DecisionMade:
    told = {"decided_by": "baseline", "other": "b", "propensities": [0.5], **changes}
    return DecisionMade(f"d{number}", [0.5], ["a"], [0.0], 1, 1, 0, WAIT, **told)


def _fields(made: DecisionMade) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def asked(command: Any, folder: Path, *args: str) -> Result:
    return CliRunner().invoke(command, ["--data-dir", str(folder), *args], catch_exceptions=False)


def fill(folder: Path, *, count: int, is_good: bool = True) -> None:
    """Write decisions of a baseline that takes one of two arms; the bandit takes the better."""
    log = SqliteLog(folder / "events.db", pragmas=["synchronous = OFF"])
    for number in range(count):
        taken = ("a", "b")[number % 2]
        made = DecisionMade(**{**_fields(decision(number)), "arms": [taken]})
        log.append([made, RewardCame(made.id, float((taken == "b") is is_good))])
    log.close()


def test_shadow_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, count=24)

    told = asked(shadow_command, tmp_path)

    assert told.stdout.startswith("The baseline decides.\nThe baseline decided 24 times")
    assert json.loads(asked(shadow_command, tmp_path, "--json").stdout)["decides"] == "baseline"
    assert read_promotion(tmp_path) is None


def test_a_folder_without_a_log_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"events\.db"):
        asked(shadow_command, tmp_path)
