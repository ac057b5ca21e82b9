"""What bandit and baseline came to, read from a log: sums by time, and two commands."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from click.testing import CliRunner, Result

from fastbandit.cli.promote import command as promote_command
from fastbandit.cli.shadow import command as shadow_command
from fastbandit.errors import LogError, SettingError
from fastbandit.evaluation.shadow_comparison import ComparisonSums, Evidence, evidence_of
from fastbandit.learning.joining import Joiner
from fastbandit.serving.console.compared import ComparedTally, read_evidence
from fastbandit.serving.decides import read_decides
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.sqlite_log import SqliteLog, now

SECOND = 1_000_000
WAIT = 600 * SECOND
ARMS = ("a", "b", 3)


def decision(number: int, **changes: Any) -> DecisionMade:
    told = {"decided_by": "baseline", "other": "b", "propensities": [0.5], **changes}
    return DecisionMade(f"d{number}", [0.5], ["a"], [0.0], 1, 1, 0, WAIT, **told)


class Random:
    """A log of decisions by either, with rewards that are late, repeated, added up or missing."""

    def __init__(self, folder: Path, numbers: np.random.Generator) -> None:
        self.path, self.now = folder / "events.db", 1_700_000_000 * SECOND
        self._log, self._numbers = SqliteLog(self.path, clock=lambda: self.now), numbers

    def write(self, count: int) -> list[Event]:
        for number in range(count):
            self.now += int(self._numbers.integers(1, 400 * SECOND))
            earlier = int(self._numbers.integers(max(1, number)))
            value = float(self._numbers.integers(3))
            came = RewardCame(f"d{earlier}", value, part=str(self._numbers.integers(2)))
            self._log.append([self._decision(number), came, came])
        events = self._log.read()
        self._log.close()
        return events

    def _decision(self, number: int) -> DecisionMade:
        one, other = (ARMS[int(place)] for place in self._numbers.integers(3, size=2))
        shares: list[Any] = [None, [0.25], [0.5]]
        changes = {
            "propensities": shares[int(self._numbers.integers(3))],
            "other": None if self._numbers.integers(9) == 0 else other,
            "decided_by": ("bandit", "baseline")[int(self._numbers.integers(2))],
            "sums": bool(self._numbers.integers(2)),
            "otherwise": 0.5,
        }
        made = decision(number, **changes)
        return DecisionMade(**{**_fields(made), "arms": [one]})


def _fields(made: DecisionMade) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def wanted(events: list[Event], who: str, *, until: int) -> Evidence:
    """Give the evidence of decisions of one, from the rewards that a learner would take."""
    joiner = Joiner()
    for event in [*events, TimePassed(len(events) + 1, until + WAIT + 1)]:
        joiner.feed(event)
    rewards = {pair.decision: pair.reward for pair in joiner.interactions}
    rows: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for made in events:
        if isinstance(made, DecisionMade) and made.decided_by == who and made.other is not None:
            share = made.propensities[0] if made.propensities else 1.0
            is_match = float(made.arms[0] == made.other)
            rows[made.propensities is not None].append((is_match, share, rewards[made.seq]))
    known, unknown = (ComparisonSums.of(*zip(*rows[is_known], strict=True)) for is_known in (True, False))
    return evidence_of(known, _without_weights(unknown), decided_by=who)


def _without_weights(sums: ComparisonSums) -> ComparisonSums:
    return ComparisonSums(n=sums.n, m=sums.m, r=sums.r, mr=sums.mr, rr=sums.rr)


def numbers_of(evidence: Evidence) -> tuple[Any, ...]:
    difference = astuple(evidence.difference) if evidence.difference else ()
    means = (evidence.mean, evidence.agreed, evidence.differed)
    return evidence.count, evidence.known, evidence.matches, *means, *difference


def test_evidence_is_that_of_the_rewards_that_are_learned(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    log = Random(tmp_path, numbers)
    events = log.write(400)

    found = read_evidence(log.path, minutes=None, now=log.now + 2 * WAIT)

    assert [one.decided_by for one in found] == ["bandit", "baseline"]
    for one in found:
        right = wanted(events, one.decided_by, until=log.now)
        assert numbers_of(one) == pytest.approx(numbers_of(right))
        assert one.open == 0.0


def test_pieces_may_be_read_in_any_order_and_merged(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    log = Random(tmp_path, numbers)
    log.write(200)
    connection = apsw.Connection(str(log.path), flags=apsw.SQLITE_OPEN_READONLY)
    tally, whole = ComparedTally(connection), 600
    for after in numbers.permutation(range(0, whole, 50)).tolist():
        tally.count(after, after + 50, log.now - 3600 * SECOND)
        tally.age(log.now)

    found = tally.evidence(since=0, now=log.now + 2 * WAIT)

    right = read_evidence(log.path, minutes=None, now=log.now + 2 * WAIT)
    for one, other in zip(found, right, strict=True):
        assert numbers_of(one) == pytest.approx(numbers_of(other))
    buckets = connection.execute("SELECT count(*) FROM compared").fetchall()[0][0]
    connection.close()
    assert buckets < 200


def test_decisions_before_the_last_minutes_are_left_out(tmp_path: Path) -> None:
    time = [1_700_000_000 * SECOND]
    log = SqliteLog(tmp_path / "events.db", clock=lambda: time[0])
    log.append([decision(0)])
    time[0] += 3600 * SECOND
    log.append([decision(1), decision(2)])
    log.close()

    (found,) = read_evidence(tmp_path / "events.db", minutes=10, now=time[0])

    assert (found.count, found.open) == (2, 1.0)


# -- commands


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
    told = read_decides(tmp_path)
    assert told is not None
    assert (told.decides, told.version) == ("bandit", None)
    assert told.since == pytest.approx(now() / 1e6, abs=60)


def test_weak_evidence_is_told_and_the_command_done(tmp_path: Path) -> None:
    fill(tmp_path, count=24)

    done = asked(promote_command, tmp_path)

    assert "Effective sample size 12 of 24: do not trust this." in done.output
    assert read_decides(tmp_path) is not None


def test_back_gives_the_baseline_its_place_again(tmp_path: Path) -> None:
    fill(tmp_path, count=24, is_good=False)
    asked(promote_command, tmp_path)

    told = json.loads(asked(promote_command, tmp_path, "--back", "--json").stdout)

    assert told["decides"] == "baseline"
    assert told["evidence"][0]["difference"]["value"] == pytest.approx(-0.5)


def test_back_is_done_also_where_the_log_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_text("no log")

    with pytest.raises(LogError):
        asked(promote_command, tmp_path, "--back")

    told = read_decides(tmp_path)
    assert told is not None
    assert told.decides == "baseline"


def test_shadow_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, count=24)

    told = asked(shadow_command, tmp_path)

    assert told.stdout.startswith("The baseline decides.\nThe baseline decided 24 times")
    assert json.loads(asked(shadow_command, tmp_path, "--json").stdout)["decides"] == "baseline"
    assert read_decides(tmp_path) is None


def test_a_service_without_a_baseline_has_nothing_to_promote(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()

    with pytest.raises(SettingError, match="is empty, and"):
        asked(promote_command, tmp_path)
    assert read_decides(tmp_path) is None


def test_a_folder_without_a_log_is_told(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"events\.db"):
        asked(shadow_command, tmp_path)
