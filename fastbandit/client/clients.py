"""The two clients of the decision service: one that waits, and one for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from fastbandit.client.calls import Calls, Fallback
from fastbandit.client.delivery import Flushed
from fastbandit.client.requester import Call, OnDisk, Send
from fastbandit.client.retries import Answer, NoAnswer, Retries
from fastbandit.client.shapes import (
    ArmUpsert,
    Baseline,
    Context,
    DiscardArmsAnswer,
    Eligible,
    Reward,
    Selected,
    UpsertArmsAnswer,
)
from fastbandit.client.spool import Spool
from fastbandit.client.transport import StrictTransport
from fastbandit.errors import SettingError
from fastbandit.storage.events import ArmId

_T = TypeVar("_T")
_RETRIES = Retries()


class Client:
    """Asks the decision service at `url`, each call within `deadline_seconds`, retries included.

    Retries are safe: the client chooses the id of a decision, and the same id gives the same
    answer. With the addresses of several deciders that share a log, the next is asked where one
    fails. Where no answer comes in time, `select` takes the `fallback` (an arm, or a function of
    the context), and rewards are kept in the file `spool`, up to `spool_limit` of them; without
    these a call raises ServiceUnavailable. Rewards of a decision that is unknown are kept too,
    for `unknown_seconds`. What the service rejects raises ServiceError. A client may be used by
    many threads.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        deadline_seconds: float = 0.5,
        fallback: Fallback | None = None,
        spool: str | Path | None = None,
        spool_limit: int = 100_000,
        unknown_seconds: float = 120.0,
        retries: Retries = _RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._calls = Calls(
            check_urls(url),
            deadline_seconds=deadline_seconds,
            fallback=fallback,
            spool=_spool(spool, limit=spool_limit, unknown_seconds=unknown_seconds),
            retries=retries,
        )
        self._http = httpx.Client(headers=_headers(key), transport=transport or StrictTransport())

    def select(
        self,
        context: Context,
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        explore: bool = True,
        id: str | None = None,
        propensity: bool = False,
        baseline: Baseline | ArmId | None = None,
        fallback: Fallback | None = None,
    ) -> Selected:
        """Choose `k` arms for a context, or all that are eligible where those are fewer.

        `eligible` is a list of ids, or a predicate such as {"price": {"<=": 10}}. Without
        `explore` the arms are chosen by expected reward. `propensity` asks how likely the arms
        were. In shadow mode `baseline` is the arm that your own policy takes, best as
        Baseline(arm, propensity). A `fallback` given here goes before that of the client.
        """
        return self._run(
            self._calls.select(
                context,
                k=k,
                eligible=eligible,
                explore=explore,
                id=id,
                propensity=propensity,
                baseline=baseline,
                fallback=fallback,
            )
        )

    def select_many(
        self,
        contexts: Sequence[Context],
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        explore: bool = True,
        ids: Sequence[str] | None = None,
        propensity: bool = False,
        baselines: Sequence[Baseline | ArmId] | None = None,
        fallback: Fallback | None = None,
    ) -> list[Selected]:
        """Choose arms for each of some contexts, in one request."""
        return self._run(
            self._calls.select_many(
                contexts,
                k=k,
                eligible=eligible,
                explore=explore,
                ids=ids,
                propensity=propensity,
                baselines=baselines,
                fallback=fallback,
            )
        )

    def reward(
        self,
        decision: Selected | str,
        value: float,
        *,
        arm: ArmId | None = None,
        part: str = "",
    ) -> str:
        """Deliver the reward of a decision; tell what became of it.

        That is what the service says ("counted", "duplicate", "late" …), or "spooled", or "not
        sent: fallback decision" for one that the service knows nothing of.
        """
        return self.rewards([_to_reward(decision, value, arm, part)])[0]

    def rewards(self, rewards: Sequence[Reward]) -> list[str]:
        """Deliver rewards in one request; tell what became of each."""
        return self._run(self._calls.delivery.rewards(rewards))

    def flush(self, deadline_seconds: float | None = None) -> Flushed:
        """Send the rewards that wait in the spool, until none is left or the time is over."""
        return self._run(self._calls.delivery.flush(deadline_seconds))

    def upsert_arms(
        self, arms: Sequence[ArmUpsert], *, deadline_seconds: float | None = None
    ) -> UpsertArmsAnswer:
        """Add arms, or change those of the same ids."""
        return self._run(self._calls.upsert_arms(arms, deadline_seconds))

    def discard_arms(
        self, ids: Sequence[ArmId], *, deadline_seconds: float | None = None
    ) -> DiscardArmsAnswer:
        """Remove arms: none of them is chosen again."""
        return self._run(self._calls.discard_arms(ids, deadline_seconds))

    def status(self, *, deadline_seconds: float | None = None) -> dict[str, Any]:
        """Ask what the service is doing."""
        return self._run(self._calls.status(deadline_seconds))

    @property
    def counts(self) -> dict[str, int]:
        """How many retries, fallbacks, and rewards spooled, sent later, rejected or not sent."""
        return self._calls.requester.counts

    @property
    def spool(self) -> Spool | None:
        """The rewards that wait."""
        return self._calls.delivery.spool

    def close(self) -> None:
        """Close the connections; rewards in the spool stay there."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it gives its result."""
        came: Any = None
        while True:
            try:
                step = call.send(came)
            except StopIteration as done:
                result: _T = done.value
                return result
            if isinstance(step, Send):
                came = self._send(step)
            elif isinstance(step, OnDisk):
                came = step.work()
            else:
                time.sleep(step.seconds)

    def _send(self, step: Send) -> Answer | NoAnswer:
        try:
            answer = self._http.request(
                step.method, step.url, content=step.body, timeout=step.seconds
            )
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
        return _to_answer(answer)


class AsyncClient:
    """Does what Client does, for asyncio: nothing blocks the loop."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        deadline_seconds: float = 0.5,
        fallback: Fallback | None = None,
        spool: str | Path | None = None,
        spool_limit: int = 100_000,
        unknown_seconds: float = 120.0,
        retries: Retries = _RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._calls = Calls(
            check_urls(url),
            deadline_seconds=deadline_seconds,
            fallback=fallback,
            spool=_spool(spool, limit=spool_limit, unknown_seconds=unknown_seconds),
            retries=retries,
        )
        self._http = httpx.AsyncClient(
            headers=_headers(key), transport=transport or httpx.AsyncHTTPTransport()
        )

    async def select(
        self,
        context: Context,
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        explore: bool = True,
        id: str | None = None,
        propensity: bool = False,
        baseline: Baseline | ArmId | None = None,
        fallback: Fallback | None = None,
    ) -> Selected:
        """Choose `k` arms for a context; see Client.select."""
        return await self._run(
            self._calls.select(
                context,
                k=k,
                eligible=eligible,
                explore=explore,
                id=id,
                propensity=propensity,
                baseline=baseline,
                fallback=fallback,
            )
        )

    async def select_many(
        self,
        contexts: Sequence[Context],
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        explore: bool = True,
        ids: Sequence[str] | None = None,
        propensity: bool = False,
        baselines: Sequence[Baseline | ArmId] | None = None,
        fallback: Fallback | None = None,
    ) -> list[Selected]:
        """Choose arms for each of some contexts, in one request."""
        return await self._run(
            self._calls.select_many(
                contexts,
                k=k,
                eligible=eligible,
                explore=explore,
                ids=ids,
                propensity=propensity,
                baselines=baselines,
                fallback=fallback,
            )
        )

    async def reward(
        self,
        decision: Selected | str,
        value: float,
        *,
        arm: ArmId | None = None,
        part: str = "",
    ) -> str:
        """Deliver the reward of a decision; see Client.reward."""
        return (await self.rewards([_to_reward(decision, value, arm, part)]))[0]

    async def rewards(self, rewards: Sequence[Reward]) -> list[str]:
        """Deliver rewards in one request; tell what became of each."""
        return await self._run(self._calls.delivery.rewards(rewards))

    async def flush(self, deadline_seconds: float | None = None) -> Flushed:
        """Send the rewards that wait in the spool, until none is left or the time is over."""
        return await self._run(self._calls.delivery.flush(deadline_seconds))

    async def upsert_arms(
        self, arms: Sequence[ArmUpsert], *, deadline_seconds: float | None = None
    ) -> UpsertArmsAnswer:
        """Add arms, or change those of the same ids."""
        return await self._run(self._calls.upsert_arms(arms, deadline_seconds))

    async def discard_arms(
        self, ids: Sequence[ArmId], *, deadline_seconds: float | None = None
    ) -> DiscardArmsAnswer:
        """Remove arms: none of them is chosen again."""
        return await self._run(self._calls.discard_arms(ids, deadline_seconds))

    async def status(self, *, deadline_seconds: float | None = None) -> dict[str, Any]:
        """Ask what the service is doing."""
        return await self._run(self._calls.status(deadline_seconds))

    @property
    def counts(self) -> dict[str, int]:
        """How many retries, fallbacks, and rewards spooled, sent later, rejected or not sent."""
        return self._calls.requester.counts

    @property
    def spool(self) -> Spool | None:
        """The rewards that wait."""
        return self._calls.delivery.spool

    async def close(self) -> None:
        """Close the connections; rewards in the spool stay there."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it gives its result."""
        came: Any = None
        while True:
            try:
                step = call.send(came)
            except StopIteration as done:
                result: _T = done.value
                return result
            if isinstance(step, Send):
                came = await self._send(step)
            elif isinstance(step, OnDisk):
                came = await asyncio.to_thread(step.work)
            else:
                await asyncio.sleep(step.seconds)

    async def _send(self, step: Send) -> Answer | NoAnswer:
        try:
            async with asyncio.timeout(step.seconds):
                answer = await self._http.request(
                    step.method, step.url, content=step.body, timeout=step.seconds
                )
        except TimeoutError:
            return NoAnswer(f"no answer within {step.seconds:.3g} s")
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
        return _to_answer(answer)


def check_urls(urls: str | Sequence[str]) -> list[str]:
    """Return the addresses of a service, each once."""
    found = list(
        dict.fromkeys(check_url(url) for url in ([urls] if isinstance(urls, str) else urls))
    )
    if not found:
        raise SettingError(
            "A client needs the address of a service, such as http://127.0.0.1:8080: got an empty "
            "list. Name one or more."
        )
    return found


def check_url(url: str) -> str:
    """Return the address of a service without the slash at its end."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SettingError(
            f"A client needs the address of a service, such as http://127.0.0.1:8080: got {url!r}. "
            f"Give one that begins with http:// or https://."
        )
    return url.rstrip("/")


def _spool(path: str | Path | None, *, limit: int, unknown_seconds: float) -> Spool | None:
    if path is None:
        return None
    return Spool(path, limit=limit, unknown_seconds=unknown_seconds)


def _headers(key: str | None) -> dict[str, str]:
    told = {"Content-Type": "application/json", "Accept": "application/json"}
    return told | ({} if key is None else {"Authorization": f"Bearer {key}"})


def _to_answer(answer: httpx.Response) -> Answer:
    return Answer(answer.status_code, answer.content, answer.headers.get("Retry-After", ""))


def _to_reward(decision: Selected | str, value: float, arm: ArmId | None, part: str) -> Reward:
    id = decision.decision if isinstance(decision, Selected) else decision
    return Reward(id, value, arm, part)
