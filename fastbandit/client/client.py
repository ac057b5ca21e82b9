"""The client that waits for its answers."""

from __future__ import annotations

import time
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
from fastbandit.client.transport import StrictTransport, headers_for, to_answer
from fastbandit.storage.events import ArmId

_T = TypeVar("_T")
_RETRIES = Retries()


class Client:
    """Asks the decision service at `url`, each call within `deadline_seconds`, retries included.

    Retries are safe: the client chooses the id of a decision, and the same id gives the same
    answer. With the addresses of several deciders that share a log, the next is asked where one
    fails. Where no answer comes in time, `select` takes the `fallback` (an arm, or a function of
    the context), and rewards are stored in the file `spool`: a path, or a Spool with limits of its
    own. Without these a call raises ServiceUnavailable. What the service rejects raises
    ServiceError. A client may be used by many threads.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        deadline_seconds: float = 0.5,
        fallback: Fallback | None = None,
        spool: str | Path | Spool | None = None,
        retries: Retries = _RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._calls = Calls(
            url, deadline_seconds=deadline_seconds, fallback=fallback, spool=spool, retries=retries
        )
        self._http = httpx.Client(
            headers=headers_for(key), transport=transport or StrictTransport()
        )

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
        request = SelectRequest(context, id, baseline, k, eligible, explore, propensity)
        return self._run(self._calls.select(request, fallback))

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
        request = SelectManyRequest(contexts, ids, baselines, k, eligible, explore, propensity)
        return self._run(self._calls.select_many(request, fallback))

    def reward(
        self, decision: Selected | str, value: float, *, arm: ArmId | None = None, part: str = ""
    ) -> str:
        """Deliver the reward of a decision; return what became of it.

        That is what the service says ("counted", "duplicate", "late" …), or "spooled", or "not
        sent: fallback decision" for one that the service knows nothing of.
        """
        return self.rewards([to_reward(decision, value, arm=arm, part=part)])[0]

    def rewards(self, rewards: Sequence[Reward]) -> list[str]:
        """Deliver rewards in one request; return what became of each."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: Call[_T]) -> _T:
        """Do what a call wants done, until it returns its result."""
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
            return to_answer(
                self._http.request(step.method, step.url, content=step.body, timeout=step.seconds)
            )
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
