"""A client of several deciders: where one fails another answers, with the same id."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_service import NOBODY, FakeService, babble, drop, drop_once_done, hang, reject, serving

from fastbandit.client import SPOOLED, Flushed, Retries, Reward
from fastbandit.client.deciders import Deciders
from fastbandit.client.spool import Spool
from fastbandit.errors import ServiceError, ServiceUnavailable, SettingError

Connect = Callable[..., Any]
FAILURES = [drop, drop_once_done, babble, reject(503), reject(503, Retry_After="3600")]
NAMES = ["drop", "drop once done", "babble", "503", "503 for an hour"]


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def two() -> Iterator[tuple[FakeService, FakeService]]:
    """Two deciders that share their decisions."""
    with serving() as first, serving() as second:
        second.decisions, second.counted = first.decisions, first.counted
        yield first, second


Two = tuple[FakeService, FakeService]


def urls(two: Two) -> list[str]:
    return [service.url for service in two]


# -- asking


@pytest.mark.parametrize("failure", FAILURES, ids=NAMES)
def test_where_one_fails_the_next_is_asked_with_the_same_id(
    failure: Any, two: Two, connect: Connect
) -> None:
    two[0].failures = [failure]
    client = connect(urls(two))

    selected = client.select([0.1])

    asked = [service.asked("/v1/select")[0]["id"] for service in two]
    assert asked == [selected.decision] * 2
    assert client.counts == {"retries": 1}


def test_one_that_hangs_leaves_time_for_the_next(two: Two, connect: Connect) -> None:
    two[0].failures = [hang]

    selected = connect(urls(two), retries=Retries(tries=1, share=0.005)).select([0.1])

    assert selected.arm == "arm 0"


def test_one_that_cannot_be_reached_is_left_alone_for_a_while(two: Two, connect: Connect) -> None:
    client = connect([NOBODY, two[1].url])

    for _ in range(3):
        client.select([0.1])

    assert client.counts == {"retries": 1}


def test_the_first_is_asked_as_long_as_it_answers(two: Two, connect: Connect) -> None:
    client = connect(urls(two))

    for _ in range(3):
        client.select([0.1])

    assert [len(service.requests) for service in two] == [3, 0]


def test_a_rejection_is_of_all(two: Two, connect: Connect) -> None:
    two[0].failures = [reject(403)]

    with pytest.raises(ServiceError, match="Not now"):
        connect(urls(two)).select([0.1])

    assert two[1].requests == []


def test_a_call_ends_at_its_deadline_however_many_there_are(two: Two, connect: Connect) -> None:
    for service in two:
        service.failures = [hang] * 9

    with pytest.raises(ServiceUnavailable) as caught:
        connect(urls(two), deadline_seconds=0.1).select([0.1])

    assert f"{two[0].url}, {two[1].url} did not" in str(caught.value)


def test_a_reward_goes_to_whoever_answers(two: Two, connect: Connect) -> None:
    client = connect(urls(two))
    selected = client.select([0.1])
    two[0].failures = [drop_once_done]

    assert client.reward(selected, 1.0) == "duplicate"
    assert two[1].counted == {selected.decision: 1.0}


def test_a_client_needs_some_address(connect: Connect) -> None:
    with pytest.raises(SettingError, match="got an empty list"):
        connect([])


def test_rests_grow_until_an_answer_comes() -> None:
    clock = Clock()
    deciders = Deciders(["a", "b"], clock=clock)
    rests = []
    for _ in range(7):
        deciders.note("a", is_well=False)
        began = clock.now
        while deciders.order() == ["b", "a"]:
            clock.now += 0.5
        rests.append(clock.now - began)
    deciders.note("a", is_well=True)
    deciders.note("a", is_well=False)
    clock.now += 1.0

    assert rests == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert deciders.order() == ["a", "b"]


def test_one_rests_as_long_as_it_asks_for() -> None:
    clock = Clock()
    deciders = Deciders(["a", "b"], clock=clock)
    deciders.note("a", is_well=False, rest=7.0)

    clock.now += 6.5
    assert deciders.order() == ["b", "a"]
    clock.now += 0.5
    assert deciders.order() == ["a", "b"]


def test_where_all_rest_all_are_asked() -> None:
    deciders = Deciders(["a", "b"], clock=Clock())
    for url in ("a", "b"):
        deciders.note(url, is_well=False)

    assert deciders.order() == ["a", "b"]


# -- decisions that are not known yet


def test_a_reward_of_an_unknown_decision_is_stored(
    two: Two, connect: Connect, tmp_path: Path
) -> None:
    client = connect(urls(two), spool=tmp_path / "spool")

    assert client.reward("later", 1.0) == SPOOLED
    assert client.flush() == Flushed(sent=0, rejected=0, left=1)
    assert len(two[0].asked("/v1/reward")) == 1  # it is not due yet


def test_without_time_for_them_unknown_rewards_are_dropped(
    two: Two, connect: Connect, tmp_path: Path
) -> None:
    client = connect(urls(two), spool=Spool(tmp_path / "spool", unknown_seconds=0.0))

    assert client.reward("never", 1.0) == "unknown"
    assert client.spool.count() == 0


def test_once_the_decision_is_known_the_reward_counts(
    two: Two, connect: Connect, tmp_path: Path
) -> None:
    client, clock = connect(urls(two), spool=tmp_path / "spool"), Clock()
    client.spool._clock = clock
    client.reward("later", 1.0)
    client.reward("later", 0.0)
    two[0].decisions["later"] = {}
    clock.now += 1.0

    assert client.flush() == Flushed(sent=2, rejected=0, left=0)
    assert two[0].counted == {"later": 1.0}


def test_an_unknown_reward_is_sent_a_few_times_and_dropped(
    two: Two, connect: Connect, tmp_path: Path
) -> None:
    client, clock = connect(urls(two), spool=tmp_path / "spool"), Clock()
    client.spool._clock = clock
    client.reward("never", 1.0)
    sent = []
    for second in range(1, 200):
        clock.now += 1.0
        sent += [second] * client.flush().sent

    assert sent == [128]
    assert client.spool.count() == 0
    assert len(two[0].asked("/v1/reward")) == 9
    assert client.counts["rewards unknown"] == 1


def test_other_rewards_do_not_wait_for_unknown_ones(
    two: Two, connect: Connect, tmp_path: Path
) -> None:
    two[0].decisions |= {"a": {}, "b": {}}
    client = connect(urls(two), spool=tmp_path / "spool")
    client.spool.store([Reward("never", 1.0), Reward("a", 1.0)])

    assert client.reward("b", 1.0) == "counted"
    assert client.flush().left == 1
    assert two[0].counted == {"a": 1.0, "b": 1.0}


def test_a_spool_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    Spool(path).store([Reward("a", 1.0)])
    with sqlite3.connect(path) as connection:
        for column in ("due", "unknown_since"):
            connection.execute(f"ALTER TABLE rewards DROP COLUMN {column}")
    connection.close()

    assert [reward for _, reward in Spool(path).first(9)] == [Reward("a", 1.0)]
