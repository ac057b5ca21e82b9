"""Rewards on their way: delivered, or spooled until they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_service import NOBODY, FakeService, babble, drop_once_done, hang, reject, serving

from fastbandit.client import SPOOLED, Flushed, Retries, Reward
from fastbandit.client.spool import Spool
from fastbandit.errors import ServiceError, SpoolFull

Connect = Callable[..., Any]
ONCE = Retries(tries=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rewards.spool"


@pytest.fixture
def known() -> Iterator[FakeService]:
    """Return a service that knows the decisions a, b and c."""
    with serving() as service:
        service.decisions = {id: {} for id in "abc"}
        yield service


def rewards(*ids: str) -> list[Reward]:
    return [Reward(id, 1.0) for id in ids]


def kept(path: Path) -> list[Reward]:
    return [reward for _, reward in Spool(path).first(100)]


def test_a_reward_that_is_not_delivered_is_spooled(path: Path, connect: Connect) -> None:
    client = connect(NOBODY, spool=path, retries=ONCE)

    assert client.reward("a", 1.0, arm=7, part="x") == SPOOLED
    assert kept(path) == [Reward("a", 1.0, 7, "x")]
    assert client.counts == {"rewards spooled": 1}


@pytest.mark.parametrize("failure", [hang, babble, reject(503)], ids=["hang", "babble", "503"])
def test_a_failing_service_spools_rewards(
    failure: Any, path: Path, known: FakeService, connect: Connect
) -> None:
    known.failures = [failure]
    client = connect(known.url, spool=path, retries=ONCE, deadline_seconds=0.2)

    assert client.rewards(rewards("a", "b")) == [SPOOLED, SPOOLED]
    assert kept(path) == rewards("a", "b")


def test_many_rewards_go_in_requests_of_a_thousand(
    path: Path, known: FakeService, connect: Connect
) -> None:
    client = connect(known.url, spool=path, retries=ONCE)
    known.failures = [
        lambda handler: handler.reply(
            200, {"rewards": [{"decision": "a", "status": "counted"}] * 1_000}
        ),
        reject(503),
    ]

    found = client.rewards([Reward("a", 1.0, part=f"{n}") for n in range(2_100)])

    assert [len(body["rewards"]) for body in known.asked("/v1/reward")] == [1_000, 1_000]
    assert [status == SPOOLED for status in found] == [False] * 1_000 + [True] * 1_100
    assert Spool(path).count() == 1_100


def test_the_next_reward_that_is_delivered_brings_along_those_that_waited(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store(rewards("a", "b"))
    client = connect(known.url, spool=path)

    assert client.reward("c", 1.0) == "counted"
    assert kept(path) == []
    assert [asked["rewards"][0]["decision"] for asked in known.asked("/v1/reward")] == ["c", "a"]
    assert client.counts == {"rewards sent from the spool": 2}


def test_a_reward_waits_behind_one_of_the_same_decision(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store([Reward("a", 1.0)])

    assert connect(known.url, spool=path).rewards([Reward("a", 0.0), Reward("b", 0.0)]) == [
        SPOOLED,
        "counted",
    ]
    assert known.counted == {"a": 1.0, "b": 0.0}


def test_flush_sends_all_that_waits_in_order(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store(rewards("a", "b", "c"))

    assert connect(known.url, spool=path).flush() == Flushed(sent=3, rejected=0, left=0)
    assert [reward["decision"] for reward in known.asked("/v1/reward")[0]["rewards"]] == [
        "a",
        "b",
        "c",
    ]


def test_flush_leaves_what_was_not_acknowledged(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store(rewards("a"))
    known.failures = [drop_once_done]
    client = connect(known.url, spool=path)

    assert client.flush(20.0) == Flushed(sent=0, rejected=0, left=1)
    assert client.flush(20.0) == Flushed(sent=1, rejected=0, left=0)
    assert known.counted == {"a": 1.0}


def test_flush_without_a_spool_has_nothing_to_do(connect: Connect) -> None:
    assert connect(NOBODY).flush() == Flushed(sent=0, rejected=0, left=0)


def test_a_reward_that_is_rejected_for_good_is_set_aside(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store([Reward("a", 1.0), Reward("b", 5.0), Reward("c", 0.0)])
    client = connect(known.url, spool=path)

    assert client.flush() == Flushed(sent=2, rejected=1, left=0)
    assert known.counted == {"a": 1.0, "c": 0.0}
    assert client.spool.take_rejected() == [
        (Reward("b", 5.0), "A reward needs to be 0 or 1. Send another.")
    ]
    assert client.spool.take_rejected() == []


def test_a_key_without_the_right_keeps_rewards_in_the_spool(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store(rewards("a"))
    known.failures = [reject(403)]

    with pytest.raises(ServiceError, match="Not now"):
        connect(known.url, spool=path).flush()

    assert kept(path) == rewards("a")


def test_what_waits_is_no_reason_to_fail_a_reward_that_was_counted(
    path: Path, known: FakeService, connect: Connect
) -> None:
    Spool(path).store(rewards("a"))
    known.failures = [lambda handler: handler.reply(*known.take([{"decision": "b", "value": 1}]))]
    known.failures.append(reject(403))

    assert connect(known.url, spool=path).reward("b", 1.0) == "counted"
    assert kept(path) == rewards("a")


def test_a_full_spool_is_an_error(path: Path, connect: Connect) -> None:
    client = connect(NOBODY, spool=Spool(path, limit=2), retries=ONCE)
    client.rewards(rewards("a", "b"))

    with pytest.raises(SpoolFull, match=r"may hold 2 rewards.*They were not stored"):
        client.reward("c", 1.0)

    assert kept(path) == rewards("a", "b")
