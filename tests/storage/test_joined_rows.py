"""Decisions with the rewards that are learned, read from a log in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from little_exports import WAIT, HandClock, lines, made

from fastbandit.learning.joining import Joiner
from fastbandit.storage import joined_rows
from fastbandit.storage.events import Event, RewardCame, TimePassed
from fastbandit.storage.exports import export
from fastbandit.storage.joined_rows import Bounds
from fastbandit.storage.sqlite_log import SqliteLog


def rewards(tmp_path: Path) -> dict[str, list[float | None]]:
    return {row["decision"]: row["rewards"] for row in lines(tmp_path)}


# -- rewards


def test_a_reward_that_counted_is_in_its_row(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one"), RewardCame("one", 0.1), RewardCame("one", 0.2)])

    assert rewards(tmp_path) == {"one": [0.1]}


def test_each_arm_has_a_reward_of_its_own(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", (7, "7")), RewardCame("one", 0.5, arm="7")])

    assert rewards(tmp_path) == {"one": [None, 0.5]}


def test_a_reward_that_is_waited_for_is_empty(
    log: SqliteLog, clock: HandClock, tmp_path: Path
) -> None:
    log.append([made("one")])
    clock.now += WAIT
    log.append([TimePassed()])

    assert rewards(tmp_path) == {"one": [None]}


def test_the_reward_of_a_decision_that_got_none_is_its_default(
    log: SqliteLog, clock: HandClock, tmp_path: Path
) -> None:
    log.append([made("one")])
    clock.now += WAIT + 1
    log.append([TimePassed(), RewardCame("one", 1.0)])

    assert rewards(tmp_path) == {"one": [-1.0]}


def test_rewards_that_add_up_are_known_once_the_time_is_over(
    log: SqliteLog, clock: HandClock, tmp_path: Path
) -> None:
    log.append([made("one", adds_up=True)])
    log.append([RewardCame("one", 0.1, part=part) for part in ("x", "y", "z")])

    assert rewards(tmp_path) == {"one": [None]}
    clock.now += WAIT + 1
    log.append([TimePassed()])
    assert rewards(tmp_path) == {"one": [0.1 + 0.1 + 0.1]}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_hold_the_rewards_that_are_learned(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, clock = tmp_path_factory.mktemp("data"), HandClock()
    log = SqliteLog(folder / "events.db", clock=clock, pragmas=["synchronous = OFF"])
    ids, arms = st.sampled_from("abc"), st.sampled_from(["x", 1])
    decision = st.builds(
        lambda id, adds_up: made(id, ("x", 1), adds_up=adds_up), ids, st.booleans()
    )
    reward = st.builds(RewardCame, ids, st.sampled_from([0.25, 1.0]), arms, st.sampled_from("pq"))
    events: list[Event] = data.draw(
        st.lists(decision | reward | st.just(TimePassed()), max_size=20)
    )
    for event in events:
        clock.now += data.draw(st.integers(0, 6))
        log.append([event])

    joiner = Joiner()
    for event in log.read():
        joiner.feed(event)
    learned = {(one.decision, one.position): one.reward for one in joiner.interactions}
    log.close()
    found = {
        (row["seq"], position): reward
        for row in lines(folder)
        for position, reward in enumerate(row["rewards"])
        if reward is not None
    }
    assert found == learned


# -- which decisions


def test_bounds_are_numbers_or_times(log: SqliteLog, clock: HandClock, tmp_path: Path) -> None:
    for id in "abc":
        log.append([made(id)])
        clock.now += 1_000_000
    second = timedelta(seconds=1)
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def found(bounds: Bounds) -> str:
        return "".join(row["decision"] for row in lines(tmp_path, bounds=bounds))

    assert found(Bounds()) == "abc"
    assert found(Bounds(since=2)) == "bc"
    assert found(Bounds(since=1, until=3)) == "ab"
    assert found(Bounds(since=start + second)) == "bc"
    assert found(Bounds(since=2, until=start + 2 * second)) == "b"


def test_rows_come_in_batches(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = joined_rows._DECISIONS.replace("LIMIT 5000", "LIMIT 2")
    monkeypatch.setattr(joined_rows, "_DECISIONS", few)
    log.append([made(f"{number}") for number in range(5)])
    log.append([RewardCame(f"{number}", float(number)) for number in range(5)])
    found: list[tuple[int, int]] = []

    export(
        tmp_path,
        tmp_path / "out",
        "jsonl",
        progress=lambda done, steps, doing: found.append((done, steps)),
    )

    assert found == [(2, 5), (4, 5), (5, 5)]
    assert rewards(tmp_path) == {f"{number}": [float(number)] for number in range(5)}
