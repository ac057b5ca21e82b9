"""Both clients: the one that waits for its answers, and the one for asyncio.

What they do in each call is written once, in `Calls`; each drives it in its own way.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from fastbandit.client.calls import Calls, Fallback
from fastbandit.client.deciders import check_urls
from fastbandit.client.delivery import Delivery
from fastbandit.client.requester import Call, OnDisk, Requester, Send
from fastbandit.client.retries import Answer, NoAnswer, Retries
from fastbandit.client.spool import Spool
from fastbandit.client.transport import StrictTransport, headers_for, to_answer

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Transport = TypeVar("_Transport")
_RETRIES = Retries()


def _waits(
    call: Callable[Concatenate[Calls, _P], Call[_T]],
) -> Callable[Concatenate[Client, _P], _T]:
    """Return a method of Client that makes a call."""

    @wraps(call)
    def method(client: Client, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return client._run(call(client._calls, *args, **named))

    return method


def _awaits(
    call: Callable[Concatenate[Calls, _P], Call[_T]],
) -> Callable[Concatenate[AsyncClient, _P], Coroutine[Any, Any, _T]]:
    """Return a method of AsyncClient that makes a call."""

    @wraps(call)
    async def method(client: AsyncClient, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return await client._run(call(client._calls, *args, **named))

    return method


class _Both(ABC, Generic[_Transport]):
    """What both clients are made of, and say of themselves."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        deadline_seconds: float = 0.5,
        fallback: Fallback | None = None,
        spool: str | Path | Spool | None = None,
        retries: Retries = _RETRIES,
        strict: bool = False,
        transport: _Transport | None = None,
    ) -> None:
        urls = check_urls(url)
        requester = Requester(urls, deadline_seconds=deadline_seconds, retries=retries)
        file = Spool(spool) if isinstance(spool, str | Path) else spool
        self._calls = Calls(requester, Delivery(requester, file), fallback, strict)
        self._open(headers_for(key), transport)

    @abstractmethod
    def _open(self, headers: dict[str, str], transport: _Transport | None) -> None: ...

    @property
    def counts(self) -> dict[str, int]:
        """How many retries, fallbacks, and rewards spooled, sent later, rejected or not sent."""
        return self._calls.requester.counts

    @property
    def spool(self) -> Spool | None:
        """The rewards that wait."""
        return self._calls.delivery.spool


class Client(_Both[httpx.BaseTransport]):
    """Asks the decision service at `url`, each call within `deadline_seconds`, retries included.

    Retries are safe: the client chooses the id of a decision, and the same id gives the same
    answer. With the addresses of several deciders that share a log, the next is asked where one
    fails. Where no answer comes in time, `select` takes the `fallback` (an arm, or a function of
    the context), and rewards are stored in the file `spool`: a path, or a Spool with limits of its
    own. Without these a call raises ServiceUnavailable. What the service rejects raises
    ServiceError: with `strict`, also eligible ids that are not in the catalogue, which the service
    drops. A client may be used by many threads.
    """

    def _open(self, headers: dict[str, str], transport: httpx.BaseTransport | None) -> None:
        self._http = httpx.Client(headers=headers, transport=transport or StrictTransport())

    select = _waits(Calls.select)
    select_many = _waits(Calls.select_many)
    reward = _waits(Calls.reward)
    rewards = _waits(Calls.rewards)
    flush = _waits(Calls.flush)
    upsert_arms = _waits(Calls.upsert_arms)
    discard_arms = _waits(Calls.discard_arms)
    explanation = _waits(Calls.explanation)
    status = _waits(Calls.status)

    def close(self) -> None:
        """Close the connections; rewards in the spool stay there."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it returns its result."""
        came: Any = None
        while True:
            try:
                step = call.send(came)
            except StopIteration as done:
                return done.value
            if isinstance(step, Send):
                came = self._send(step)
            elif isinstance(step, OnDisk):
                came = step.work()
            else:
                time.sleep(step.seconds)

    def _send(self, step: Send) -> Answer | NoAnswer:
        given: dict[str, Any] = {"content": step.body, "timeout": step.seconds}
        try:
            return to_answer(self._http.request(step.method, step.url, **given))
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)


class AsyncClient(_Both[httpx.AsyncBaseTransport]):
    """Does what Client does, for asyncio: its calls are awaited, and nothing blocks the loop."""

    def _open(self, headers: dict[str, str], transport: httpx.AsyncBaseTransport | None) -> None:
        wanted = transport or httpx.AsyncHTTPTransport()
        self._http = httpx.AsyncClient(headers=headers, transport=wanted)

    select = _awaits(Calls.select)
    select_many = _awaits(Calls.select_many)
    reward = _awaits(Calls.reward)
    rewards = _awaits(Calls.rewards)
    flush = _awaits(Calls.flush)
    upsert_arms = _awaits(Calls.upsert_arms)
    discard_arms = _awaits(Calls.discard_arms)
    explanation = _awaits(Calls.explanation)
    status = _awaits(Calls.status)

    async def close(self) -> None:
        """Close the connections; rewards in the spool stay there."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it returns its result."""
        came: Any = None
        while True:
            try:
                step = call.send(came)
            except StopIteration as done:
                return done.value
            if isinstance(step, Send):
                came = await self._send(step)
            elif isinstance(step, OnDisk):
                came = await asyncio.to_thread(step.work)
            else:
                await asyncio.sleep(step.seconds)

    async def _send(self, step: Send) -> Answer | NoAnswer:
        given: dict[str, Any] = {"content": step.body, "timeout": step.seconds}
        try:
            async with asyncio.timeout(step.seconds):
                return to_answer(await self._http.request(step.method, step.url, **given))
        except TimeoutError:
            return NoAnswer(f"no answer within {step.seconds:.3g} s")
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
