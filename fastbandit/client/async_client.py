"""The client for asyncio: nothing blocks the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
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
    SelectManyRequest,
    SelectRequest,
    UpsertArmsAnswer,
    to_reward,
)
from fastbandit.client.spool import Spool
from fastbandit.client.transport import headers_for, to_answer
from fastbandit.storage.events import ArmId

_T = TypeVar("_T")
_RETRIES = Retries()


class AsyncClient:
    """Does what Client does, for asyncio."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        deadline_seconds: float = 0.5,
        fallback: Fallback | None = None,
        spool: str | Path | Spool | None = None,
        retries: Retries = _RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._calls = Calls(
            url, deadline_seconds=deadline_seconds, fallback=fallback, spool=spool, retries=retries
        )
        self._http = httpx.AsyncClient(
            headers=headers_for(key), transport=transport or httpx.AsyncHTTPTransport()
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
        request = SelectRequest(context, id, baseline, k, eligible, explore, propensity)
        return await self._run(self._calls.select(request, fallback))

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
        request = SelectManyRequest(contexts, ids, baselines, k, eligible, explore, propensity)
        return await self._run(self._calls.select_many(request, fallback))

    async def reward(
        self, decision: Selected | str, value: float, *, arm: ArmId | None = None, part: str = ""
    ) -> str:
        """Deliver the reward of a decision; see Client.reward."""
        return (await self.rewards([to_reward(decision, value, arm=arm, part=part)]))[0]

    async def rewards(self, rewards: Sequence[Reward]) -> list[str]:
        """Deliver rewards in one request; return what became of each."""
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

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it returns its result."""
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
                return to_answer(
                    await self._http.request(
                        step.method, step.url, content=step.body, timeout=step.seconds
                    )
                )
        except TimeoutError:
            return NoAnswer(f"no answer within {step.seconds:.3g} s")
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
