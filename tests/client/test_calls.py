"""What is asked of the service, and what is chosen without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_service import NOBODY, FakeService
from msgspec import convert

from fastbandit.client import Retries
from fastbandit.client.shapes import Selected
from fastbandit.errors import (
    InputError,
    ServiceUnavailable,
)

Connect = Callable[..., Any]
ONCE = Retries(tries=1)


def test_no_contexts_need_no_service(connect: Connect) -> None:
    assert connect(NOBODY).select_many([]) == []


def test_a_fallback_is_taken_where_no_answer_comes(connect: Connect) -> None:
    client = connect(NOBODY, fallback="home", retries=ONCE)

    selected = client.select([0.1])

    assert (selected.arm, selected.is_fallback, selected.version) == ("home", True, 0)
    assert client.counts == {"fallbacks": 1}


def test_a_fallback_may_look_at_the_context(connect: Connect) -> None:
    client = connect(NOBODY, fallback=lambda context: ["a", "b"][context[0]], retries=ONCE)

    assert [selected.arm for selected in client.select_many([[0], [1]])] == ["a", "b"]


def test_the_fallback_of_a_call_goes_first(connect: Connect) -> None:
    client = connect(NOBODY, fallback="home", retries=ONCE)

    assert client.select([0.1], k=2, fallback=[0, 1]).arms == [0, 1]


def test_without_a_fallback_a_select_raises(connect: Connect) -> None:
    with pytest.raises(ServiceUnavailable, match="needs to answer in time") as caught:
        connect(NOBODY, retries=ONCE).select([0.1])

    assert isinstance(caught.value, ConnectionError)
    assert caught.value.status == 0


def test_each_context_needs_an_id(connect: Connect) -> None:
    with pytest.raises(InputError, match="got 1 ids for 2 contexts"):
        connect(NOBODY).select_many([[0.1], [0.2]], ids=["one"])


def test_an_explanation_is_asked_for_by_the_id_of_a_decision(
    connect: Connect, service: FakeService
) -> None:
    client = connect(service.url)
    selected = client.select([0.1], id="visit:1")

    found = [client.explanation(selected), client.explanation("visit:1", arm="a b")]

    path = "/v1/decisions/visit%3A1/explanation"
    assert [one["asked"] for one in found] == [path, f"{path}?arm=a%20b"]


def test_columns_are_asked_for_and_nothing_is_sent_without(
    connect: Connect, service: FakeService
) -> None:
    client = connect(service.url)

    client.select([0.1], columns=("title", "price"))
    client.select_many([[0.1]], columns=["title"])
    client.select([0.1])

    sent = [body.get("columns") for body in service.asked("/v1/select")]
    assert sent == [["title", "price"], ["title"], None]


def test_stale_ids_that_the_service_dropped_are_counted() -> None:
    answer = {"decision": "a", "arms": ["tea"], "scores": [0.5], "dropped": 2}

    assert convert(answer, Selected).dropped == 2


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_strict_client_has_stale_ids_rejected(
    connect: Connect, service: Any, is_strict: bool
) -> None:
    client = connect(service.url, strict=is_strict)

    client.select([0.1], eligible=["tea"])
    client.select_many([[0.1]], eligible=["tea"])

    assert [asked.get("strict", False) for _, _, asked in service.requests] == [is_strict] * 2
