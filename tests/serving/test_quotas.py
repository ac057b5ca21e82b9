"""Quotas of a key: what is over them waits, and others do not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fastbandit.serving.keys import KEYS_FILE, create_key
from fastbandit.serving.problems import Rejection
from fastbandit.serving.quotas import Quotas
from fastbandit.settings.limits import LimitsConfig
from fastbandit.settings.service import Config
from tests.serving.little_service import CONTEXT, Caller, run


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_second_can_be_asked_for_at_once_and_then_one_waits() -> None:
    clock = Clock()
    quotas = Quotas(LimitsConfig(requests_per_second=4.0), clock=clock)
    for _ in range(5):
        quotas.take("a", "requests")
    with pytest.raises(Rejection) as caught:
        quotas.take("a", "requests")
    assert caught.value.status == 429
    assert (b"retry-after", b"1") in caught.value.headers
    assert "limits.requests_per_second" in caught.value.problem.fix
    quotas.take("b", "requests")
    clock.now += 0.25
    quotas.take("a", "requests")


def test_a_large_request_is_paid_for_by_a_longer_wait() -> None:
    clock = Clock()
    quotas = Quotas(LimitsConfig(interactions_per_second=10.0), clock=clock)
    quotas.take("a", "interactions", 100)
    with pytest.raises(Rejection) as caught:
        quotas.take("a", "interactions", 1)
    assert (b"retry-after", b"9") in caught.value.headers
    clock.now += 9.0
    quotas.take("a", "interactions", 1)


def test_without_a_quota_nobody_waits() -> None:
    def is_taken(quotas: Quotas, what: str, count: int) -> bool:
        try:
            quotas.take("", what, count)
        except Rejection:
            return False
        return True

    free = Quotas(LimitsConfig(), clock=Clock())
    bound = Quotas(LimitsConfig(interactions_per_second=1.0), clock=Clock())

    assert all(is_taken(free, "requests", 1) for _ in range(100))
    assert all(is_taken(free, "interactions", 10_000) for _ in range(100))
    assert [is_taken(bound, "interactions", 10_000) for _ in range(2)] == [True, False]


def test_each_key_has_its_own_quota(config: Config) -> None:
    path = Path(config.server.data_dir) / KEYS_FILE
    keys = [create_key(path, name=name, scopes=["admin"])[0] for name in ("one", "two")]
    limits = LimitsConfig(requests_per_second=0.001, interactions_per_second=0.001)

    async def story(ask: Caller) -> None:
        for key in keys:
            replies = [await ask("GET", "/v1/status", key=key) for _ in range(3)]
            assert [reply.status for reply in replies] == [200, 429, 429]
            assert int(replies[-1].headers["retry-after"]) > 900
        assert (await ask("GET", "/live")).status == 200

    run(dataclasses.replace(config, limits=limits), story)


def test_contexts_and_rewards_count_as_interactions(config: Config) -> None:
    limits = LimitsConfig(interactions_per_second=0.001)

    async def story(ask: Caller) -> None:
        assert (await ask("POST", "/v1/select", {"contexts": [CONTEXT] * 3})).status == 200
        reply = await ask("POST", "/v1/select", {"context": CONTEXT})
        assert (reply.status, reply.headers["retry-after"]) == (429, "2999")
        reply = await ask("POST", "/v1/reward", {"decision": "a", "value": 1})
        assert reply.status == 429
        assert (await ask("GET", "/v1/status")).status == 200

    run(dataclasses.replace(config, limits=limits), story)
