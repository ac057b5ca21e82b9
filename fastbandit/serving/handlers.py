"""What a route is, and how what it is sent is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from fastbandit.serving.json_names import check_names
from fastbandit.serving.keys import Scope
from fastbandit.serving.problems import rejection_of_body

Answer = tuple[int, bytes] | tuple[int, bytes, str]
"""A status and a body, and the id of what was created where it has a path of its own."""
Handler = Callable[[bytes, str], Awaitable[Answer]]
"""What answers a body, or the query of a GET, for who has the key of an id."""
Route = tuple[Scope | None, Handler]
"""The scope that a key needs, and what answers."""
Table = dict[str, dict[str, Route]]
"""Routes by path and method."""
Do = Callable[[Callable[[], Any]], Awaitable[Any]]
"""What does some work in a thread."""
LARGE_BYTES = 2**16
"""A body of more is read in a thread."""


def always(status: int, body: bytes) -> Handler:
    """Return what answers with the same each time."""

    async def answer(query: bytes, key: str) -> Answer:
        return status, body

    return answer


async def read_body(decode: Callable[[bytes], Any], body: bytes, do: Do) -> Any:
    """Read a body; a large one is read where long work is done, beside the event loop."""
    if len(body) > LARGE_BYTES:
        return await do(partial(_decoded, decode, body))
    return _decoded(decode, body)


def _decoded(decode: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        request = decode(body)
        check_names(body, getattr(request, "known", ()))
        return request
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise rejection_of_body(error, body) from error
