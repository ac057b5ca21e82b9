"""Under overload a select is rejected before it is parsed, and nothing else is."""

from __future__ import annotations

import pytest

from fastbandit.serving.overload import is_whole_select

HEAD = b"POST /v1/select HTTP/1.1\r\nhost: x\r\n"


def select(*headers: bytes, body: bytes = b"{}") -> bytes:
    lines = b"".join(line + b"\r\n" for line in headers)
    return HEAD + lines + b"content-length: %d\r\n\r\n" % len(body) + body


def test_a_whole_select_is_recognised() -> None:
    assert is_whole_select(select())
    assert is_whole_select(select(b"connection: keep-alive"))


@pytest.mark.parametrize(
    "data",
    [
        select()[:-1],
        select() + b"POST",
        select(b"connection: close"),
        select(b"expect: 100-continue"),
        select(b"transfer-encoding: chunked"),
        HEAD + b"\r\n",
        select().replace(b"/v1/select", b"/v1/reward"),
    ],
    ids=["cut", "more", "close", "expect", "chunked", "no length", "reward"],
)
def test_anything_else_is_parsed(data: bytes) -> None:
    assert not is_whole_select(data)
