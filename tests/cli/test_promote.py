"""The command `promote`: it says what speaks for the bandit, and lets it decide."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastbandit.cli.promote import command as promote_command
from fastbandit.errors import LogError, SettingError
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


def test_a_promotion_says_what_speaks_for_it(tmp_path: Path) -> None:
    fill(tmp_path, count=400)

    done = asked(promote_command, tmp_path)

    assert done.exit_code == 0
    assert "The baseline decided 400 times; the bandit named the same arm in 50.0 %" in done.stdout
    assert "a difference of +0.5" in done.stdout
    assert done.stdout.endswith("The bandit decides from now on.\n")
    assert "do not trust" not in done.output
    told = read_promotion(tmp_path)
    assert told is not None
    assert (told.decides, told.version) == ("bandit", None)
    assert told.since == pytest.approx(time.time(), abs=60)


def test_weak_evidence_is_reported_and_the_command_done(tmp_path: Path) -> None:
    fill(tmp_path, count=24)

    done = asked(promote_command, tmp_path)

    assert "Effective sample size 12 of 24: do not trust this." in done.output
    assert read_promotion(tmp_path) is not None


def test_back_gives_the_baseline_back_the_decision(tmp_path: Path) -> None:
    fill(tmp_path, count=24, is_good=False)
    asked(promote_command, tmp_path)

    told = json.loads(asked(promote_command, tmp_path, "--back", "--json").stdout)

    assert told["decides"] == "baseline"
    assert told["evidence"][0]["difference"]["value"] == pytest.approx(-0.5)


def test_back_is_done_also_where_the_log_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_text("no log")

    with pytest.raises(LogError):
        asked(promote_command, tmp_path, "--back")

    told = read_promotion(tmp_path)
    assert told is not None
    assert told.decides == "baseline"


def test_a_service_without_a_baseline_has_nothing_to_promote(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()

    with pytest.raises(SettingError, match="is empty, and"):
        asked(promote_command, tmp_path)
    assert read_promotion(tmp_path) is None
