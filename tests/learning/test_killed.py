"""A learner that is killed at any step leaves a whole version, and the next ends alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
AT_FIRST = ["saved bandit:1", "renamed:1"]
"""Steps on the way to version 0, and how often one is reached before the end."""
LATER = [
    "joined:1",
    "trained:2",
    "checked:1",
    "saved bandit:3",
    "saved frozen:2",
    "noted:3",
    "renamed:2",
    "published:2",
    "pruned:1",
    "checkpointed:1",
    "checkpointed:12",
    "checkpointed:35",
]
RESET = [
    "saved bandit:1:reset",
    "saved frozen:1:reset",
    "noted:1:reset",
    "renamed:1:reset",
    "published:1:reset",
]
STARVED = "checkpointed:4:again"
"""Killed long before an update is done, again and again."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, HERE / "killing.py", folder, *AT_FIRST, *LATER, *RESET, STARVED],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", AT_FIRST + LATER)
def test_it_ends_as_if_it_had_never_been_killed(results: dict[str, Any], case: str) -> None:
    result = results[case]

    assert result["ended"] == -9
    assert result["again"] == 0
    assert result["final"]["hashes"] == results["never"]["final"]["hashes"]
    assert result["final"]["drafts"] == []


@pytest.mark.parametrize("case", RESET)
def test_a_model_that_was_to_be_reset_is_so_once(results: dict[str, Any], case: str) -> None:
    result, wanted = results[case], results["reset"]["final"]

    assert (result["ended"], result["again"], result["final"]["drafts"]) == (-9, 0, [])
    assert result["after"]["served"] in (0, 2)
    assert result["final"]["hashes"] == wanted["hashes"]
    assert (wanted["served"], wanted["learned"], len(wanted["hashes"])) == (0, 0, 4)


@pytest.mark.parametrize("case", LATER)
def test_a_whole_version_is_served_meanwhile(results: dict[str, Any], case: str) -> None:
    assert results[case]["after"]["served"] in (0, 1, 2)


def test_kills_faster_than_training_do_not_starve_it(results: dict[str, Any]) -> None:
    result = results[STARVED]

    assert result["kills"] > 5
    assert result["ended"] == 0
    assert result["final"]["hashes"] == results["never"]["final"]["hashes"]
    assert result["left"] == []


def test_all_was_learned_once(results: dict[str, Any]) -> None:
    final = results["never"]["final"]

    assert final["served"] == 2
    assert final["learned"] == final["pairs"] == 36  # of 45: 4 are held out, 5 are too few
