"""`fastbandit evaluate`: whose arms, whose columns and which rounds, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fastbandit import Bandit
from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.errors import SettingError
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog

CITIES = "city,arm,reward,propensity\n" + "Oslo,a,1,0.5\nRome,b,0,0.5\n" * 4
IDS = ["a", "b", "c"]


def asked(*args: Any) -> Result:
    return CliRunner().invoke(evaluate_command, [str(arg) for arg in args], catch_exceptions=False)


def judged(*args: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asked(*args, "--estimator", "ips", "--json").output)
    return found


def bandit(context: int) -> Bandit:
    return Bandit(arms=np.eye(3), ids=IDS, context=context)


def decide(folder: Path, rounds: int) -> None:
    """Write decisions of a service with their rewards: two events each."""
    log = SqliteLog(folder / "events.db")
    terms: dict[str, Any] = {
        "seed": 1,
        "version": 0,
        "catalogue": 0,
        "wait": 10**9,
        "propensities": [0.5],
    }
    for number in range(rounds):
        made = DecisionMade(str(number), [0.5, 1.5], [IDS[number % 2]], [0.1], **terms)
        log.append([made, RewardCame(str(number), 1.0)])
    log.close()


def publish(folder: Path, *, seq: int, pairs: int) -> None:
    """Publish a snapshot that has learned so many pairs of the log, up to an event."""
    store = SnapshotStore(folder / "snapshots")
    with store.drafting() as draft:
        bandit(context=2).save(draft / "bandit")
        bandit(context=2).freeze().save(draft / "frozen")
        store.publish(draft, {}, version=0, parent=None, cut=Cut(seq=seq, interactions=pairs))


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(CITIES)
    return path


# -- columns


def test_what_a_column_is_taken_for_is_told_in_json(cities: Path) -> None:
    found = judged("--log", cities, "--context", "city", "--policy", "uniform")

    assert "city is taken as category: 2 levels: Oslo, Rome" in found["notes"]


def test_a_saved_policy_needs_to_know_what_texts_mean(cities: Path, tmp_path: Path) -> None:
    bandit(context=2).freeze().save(tmp_path / "saved")

    with pytest.raises(SettingError, match=r"what 'city' means was inferred from this log"):
        asked("--log", cities, "--context", "city", "--policy", tmp_path / "saved")


def test_a_saved_policy_is_judged_on_the_levels_it_learned(cities: Path, tmp_path: Path) -> None:
    bandit(context=5).freeze().save(tmp_path / "saved")

    found = judged(
        *("--log", cities, "--context", "city", "--levels", "city=Oslo,Rome,Wien"),
        *("--policy", tmp_path / "saved"),
    )

    assert "city is taken as category: 3 levels: Oslo, Rome, Wien" in found["notes"]


@pytest.mark.parametrize("told", ["Oslo,Rome", "=Oslo", "city=", "city=Oslo,Oslo"])
def test_levels_that_are_none_are_refused(cities: Path, told: str) -> None:
    with pytest.raises(SettingError, match="each of its texts once, such as city=Oslo,Rome"):
        asked("--log", cities, "--context", "city", "--policy", "uniform", "--levels", told)


def test_an_arm_is_named_by_the_text_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x_0,arm,reward,propensity\n" + "0,01,1,0.5\n1,1,0,0.5\n" * 4)

    found = judged("--log", path, "--policy", "arm:01", "--text-ids")

    assert found["estimates"][0]["value"] == 1.0


# -- a service


def test_rounds_that_the_snapshot_has_learned_from_are_left_out(tmp_path: Path) -> None:
    decide(tmp_path, 8)
    publish(tmp_path, seq=10, pairs=5)

    found = judged("--log", tmp_path, "--policy", tmp_path)

    assert found["rounds"] == 3
    assert "decisions that the policy may have learned from are left out (5)" in found["notes"]


def test_where_all_rounds_were_learned_from_it_says_so(tmp_path: Path) -> None:
    decide(tmp_path, 4)
    publish(tmp_path, seq=8, pairs=4)

    found = judged("--log", tmp_path, "--policy", tmp_path)

    assert found["rounds"] == 4
    assert any("the policy has learned from these rounds" in note for note in found["notes"])


def test_of_another_log_it_says_that_the_policy_may_know_it(tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        decide(tmp_path / folder, 4)
    publish(tmp_path / "here", seq=8, pairs=4)

    found = judged("--log", tmp_path / "there", "--policy", tmp_path / "here")

    assert found["rounds"] == 4
    assert any("may have learned from these rounds" in note for note in found["notes"])


def test_another_policy_is_judged_on_all_rounds(tmp_path: Path) -> None:
    decide(tmp_path, 4)
    publish(tmp_path, seq=8, pairs=4)

    assert judged("--log", tmp_path, "--policy", "uniform")["rounds"] == 4


@pytest.mark.parametrize("policy", ["uniform", "arm:c", "itself"])
def test_arms_are_those_of_the_snapshot(tmp_path: Path, policy: str) -> None:
    decide(tmp_path, 4)
    publish(tmp_path, seq=0, pairs=0)

    found = judged("--log", tmp_path, "--policy", tmp_path if policy == "itself" else policy)

    assert found["arms"] == 3
    assert any("are those of the snapshot" in note for note in found["notes"])


def test_where_nothing_describes_the_arms_a_table_is_asked_for(tmp_path: Path) -> None:
    decide(tmp_path, 4)

    found = judged("--log", tmp_path, "--policy", "uniform")

    assert any("name a table of them with --arms" in note for note in found["notes"])


# -- options


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--draws", "4"], "--draws needs a policy that is a bandit: got --policy uniform"),
        (["--greedy"], "--greedy needs a policy that is a bandit"),
        (["--floor", "0.1"], "--epsilon needs a policy that is a bandit"),
        (["--clusters", "2", "--estimator", "ips"], "--clusters needs the estimator mips: got"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    cities: Path, option: list[str], said: str
) -> None:
    with pytest.raises(SettingError, match=said):
        asked("--log", cities, "--context", "city", "--policy", "uniform", *option)


def test_a_number_out_of_range_is_refused() -> None:
    done = asked("--seed", "-1")

    assert done.exit_code == 2
    assert "Invalid value for '--seed'" in done.output


def test_one_round_is_no_rounds(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x_0,arm,reward,propensity\n0,a,1,1\n")

    assert (
        "1 round, 1 arm, "
        in asked("--log", path, "--policy", "uniform", "--estimator", "ips").output
    )
