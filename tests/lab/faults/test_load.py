"""A load sends what it says, to this machine only, and counts what comes back."""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
import pytest

from fastbandit.errors import ServiceUnavailable, SettingError
from lab.faults.load import Answers, Load, load_from_process, requests_of, send_load


class Answering(asyncio.Protocol):
    """Gives the same answer to whatever comes, in two pieces."""

    def __init__(self, answer: bytes, *, is_last: bool = False) -> None:
        self.answer, self.is_last = answer, is_last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.is_last:
            self.transport.close()
        elif self.answer:
            self.transport.write(self.answer[:20])
            self.transport.write(self.answer[20:])


def answers_to(answer: bytes, *, rate: float = 0.0, is_last: bool = False) -> Answers:
    async def run() -> Answers:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Answering(answer, is_last=is_last), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await send_load(Load(port, 0.05, connections=2, rate=rate))

    return asyncio.run(run())


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\ncontent-length: 2\r\n\r\n{}"


def test_answers_are_counted_by_status_and_timed() -> None:
    answers = answers_to(GOOD)
    assert set(answers.statuses) == {"200"}
    assert answers.good_per_second * answers.seconds == pytest.approx(answers.statuses["200"])
    assert 0 < answers.p50_ms <= answers.p99_ms
    assert answers.broken == answers.blunt == answers.unsent == 0


def test_refusals_are_counted_by_whether_they_say_when_to_retry() -> None:
    polite, blunt = answers_to(REFUSED), answers_to(REFUSED.replace(b"Retry-After", b"X"))
    assert polite.blunt == 0 < polite.refused_p99_ms
    assert blunt.blunt == blunt.statuses["503"] > 0
    assert polite.good_per_second == 0


def test_on_a_schedule_requests_that_find_no_free_connection_are_counted() -> None:
    answers = answers_to(b"", rate=1_000.0)
    assert answers.sent == 2
    assert answers.unsent > 0
    assert answers.sent_per_second == pytest.approx(2 / answers.seconds)


def test_connections_that_break_are_counted() -> None:
    answers = answers_to(b"", is_last=True)
    assert answers.broken == 2
    assert answers.statuses == {"0": 2}


def test_requests_have_as_many_contexts_and_features_as_asked_for() -> None:
    one = requests_of(Load(1, 1, features=3), count=2)
    many = requests_of(Load(1, 1, features=3, contexts=4, key="fb_x"), count=1)
    head, _, body = many[0].partition(b"\r\n\r\n")
    assert [len(row) for row in msgspec.json.decode(body)["contexts"]] == [3] * 4
    assert b"authorization: Bearer fb_x\r\n" in head
    assert len(msgspec.json.decode(one[0].partition(b"\r\n\r\n")[2])["context"]) == 3
    assert one[0] != one[1]


def test_a_load_stays_on_this_machine() -> None:
    with pytest.raises(SettingError, match=r"192\.0\.2\.1"):
        asyncio.run(send_load(Load(1, 1, host="192.0.2.1")))


def test_a_load_without_a_service_says_so() -> None:
    with pytest.raises(ServiceUnavailable, match="port 1"):
        load_from_process(Load(1, 0.1))
