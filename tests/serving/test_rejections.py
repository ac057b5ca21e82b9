"""Rejections as they go over the wire."""

from __future__ import annotations

import msgspec
import pytest

from fastbandit.serving.problems import Rejection
from fastbandit.serving.rejections import OVERLOADED, long_headers, on_wire, too_large, too_slow


@pytest.mark.parametrize("is_last", [False, True])
def test_a_rejection_says_when_to_come_again(is_last: bool) -> None:
    head, _, body = on_wire(OVERLOADED, is_last=is_last).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"retry-after: 1" in head
    assert (b"connection: close" in head) is is_last
    assert f"content-length: {len(body)}".encode() in head


@pytest.mark.parametrize(
    ("rejection", "setting"),
    [
        (too_large(7, "limits.body_bytes"), "limits.body_bytes"),
        (long_headers(7), "limits.header_bytes"),
        (too_slow("header", 7.0), "limits.header_seconds"),
        (too_slow("body", 7.0), "limits.body_seconds"),
    ],
)
def test_a_limit_is_named_with_its_setting(rejection: Rejection, setting: str) -> None:
    problem = msgspec.json.decode(on_wire(rejection, is_last=True).partition(b"\r\n\r\n")[2])

    assert setting in problem["fix"]
    assert "7" in problem["detail"]
    assert problem["field"]
