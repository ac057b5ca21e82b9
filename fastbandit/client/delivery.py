"""Rewards on their way: delivered, or spooled until they can be; never dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from msgspec import json

from fastbandit.client.requester import Call, OnDisk, Requester
from fastbandit.client.shapes import FALLBACK, Reward, RewardAnswers, check_reward, encode
from fastbandit.client.spool import Spool
from fastbandit.errors import ServiceError, ServiceUnavailable

SPOOLED = "spooled"
NOT_SENT = "not sent: fallback decision"
A_FEW = 100  # of the rewards that wait, with each call that the service answered
MANY = 1_000
_UNKNOWN = "unknown"
_REJECTED_FOR_GOOD = (400, 413, 422)  # for what it says, not for who sent it or when


@dataclass(frozen=True)
class Flushed:
    """How many rewards of the spool were acknowledged, were rejected for good, and still wait."""

    sent: int
    rejected: int
    left: int


class _Went(NamedTuple):
    """How many rewards of the spool were acknowledged, rejected, and postponed as unknown."""

    sent: int = 0
    rejected: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class Delivery:
    """Sends rewards by `requester`; those that cannot be sent go to the spool, if there is one."""

    requester: Requester
    spool: Spool | None

    def rewards(self, rewards: Sequence[Reward]) -> Call[list[str]]:
        """Deliver rewards, or spool them; return what became of each.

        A reward waits behind those of the same decision, so that the first stays the first.
        """
        end = self.requester.end()
        own = [check_reward(r) for r in rewards if not r.decision.startswith(FALLBACK)]
        self.requester.count("rewards not sent", len(rewards) - len(own))
        behind: set[str] = set()
        if self.spool is not None and own:
            behind = yield OnDisk(partial(self.spool.waiting, {r.decision for r in own}))
        direct = [reward for reward in own if reward.decision not in behind]
        statuses = yield from self._deliver(direct, end)
        found = iter((yield from self._spool_unknown(direct, statuses)))
        yield from self._store([reward for reward in own if reward.decision in behind])
        if SPOOLED not in statuses:
            yield from self._send_waiting(A_FEW, end)
        unsent = dict.fromkeys(behind, SPOOLED)
        unsent |= {r.decision: NOT_SENT for r in rewards if r.decision.startswith(FALLBACK)}
        return [unsent.get(reward.decision) or next(found) for reward in rewards]

    def flush(self, deadline_seconds: float | None) -> Call[Flushed]:
        """Send what waits, until nothing is left, nothing more is taken or time is over."""
        end = self.requester.end(deadline_seconds)
        sent = rejected = left = 0
        while True:
            went = yield from self._send_waiting(MANY, end, is_strict=True)
            sent, rejected = sent + went.sent, rejected + went.rejected
            if not any(went):
                break
        if self.spool is not None:
            left = yield OnDisk(self.spool.count)
        return Flushed(sent, rejected, left)

    def _deliver(self, rewards: list[Reward], end: float) -> Call[list[str]]:
        statuses: list[str] = []
        try:
            while left := rewards[len(statuses) :]:
                statuses += yield from self._send(left[:MANY], end)
        except ServiceUnavailable:
            if self.spool is None:
                raise
        yield from self._store(left)
        return statuses + [SPOOLED] * len(left)

    def _store(self, rewards: list[Reward], *, are_unknown: bool = False) -> Call[None]:
        if self.spool is not None and rewards:
            yield OnDisk(partial(self.spool.store, rewards, are_unknown=are_unknown))
            self.requester.count("rewards spooled", len(rewards))

    def _spool_unknown(self, rewards: list[Reward], statuses: list[str]) -> Call[list[str]]:
        """Spool rewards of decisions that another decider may hold, and not have logged yet."""
        if self.spool is None or self.spool.unknown_seconds <= 0:
            return statuses
        answered = zip(rewards, statuses, strict=True)
        unknown = [reward for reward, status in answered if status == _UNKNOWN]
        yield from self._store(unknown, are_unknown=True)
        return [SPOOLED if status == _UNKNOWN else status for status in statuses]

    def _send(
        self, rewards: list[Reward], end: float, *, tries: int | None = None
    ) -> Call[list[str]]:
        def read(body: bytes) -> list[str]:
            answers = json.decode(body, type=RewardAnswers).rewards
            if len(answers) != len(rewards):
                raise ValueError(f"{len(answers)} answers for {len(rewards)} rewards")
            return [answer.status for answer in answers]

        body = encode({"rewards": rewards})
        return self.requester.request("POST", "/v1/reward", body, read=read, end=end, tries=tries)

    def _send_waiting(self, count: int, end: float, *, is_strict: bool = False) -> Call[_Went]:
        """Send the rewards that wait longest, once; return what became of them.

        What is not acknowledged stays. A service that takes no rewards at all (from a key
        without that right) is an error only where `is_strict`.
        """
        spool = self.spool
        if spool is None:
            return _Went()
        waiting: list[tuple[int, Reward]] = yield OnDisk(partial(spool.first, count))
        if not waiting:
            return _Went()
        try:
            statuses = yield from self._send([reward for _, reward in waiting], end, tries=1)
        except ServiceUnavailable:
            return _Went()
        except ServiceError as error:
            if error.status in _REJECTED_FOR_GOOD:
                return (yield from self._send_one_by_one(spool, waiting[:A_FEW], end))
            if is_strict:
                raise
            return _Went()
        numbers = [number for number, _ in waiting]
        return (yield from self._remove_answered(spool, numbers, statuses))

    def _send_one_by_one(
        self, spool: Spool, waiting: list[tuple[int, Reward]], end: float
    ) -> Call[_Went]:
        """Find out which rewards the service rejects, and set those aside."""
        numbers: list[int] = []
        statuses: list[str] = []
        rejected = 0
        for number, reward in waiting:
            try:
                statuses += yield from self._send([reward], end, tries=1)
                numbers.append(number)
            except ServiceUnavailable:
                break
            except ServiceError as error:
                yield OnDisk(partial(spool.reject, number, str(error)))
                rejected += 1
        self.requester.count("rewards rejected", rejected)
        went = yield from self._remove_answered(spool, numbers, statuses)
        return went._replace(rejected=rejected)

    def _remove_answered(
        self, spool: Spool, numbers: list[int], statuses: list[str]
    ) -> Call[_Went]:
        """Remove rewards that were answered for, but those that may be known later."""
        answered = zip(numbers, statuses, strict=True)
        unknown = {number for number, status in answered if status == _UNKNOWN}
        over: set[int] = yield OnDisk(partial(spool.postpone, unknown))
        done = [number for number in numbers if number not in unknown or number in over]
        yield OnDisk(partial(spool.remove, done))
        self.requester.count("rewards sent from the spool", len(done))
        self.requester.count("rewards unknown", len(over))
        return _Went(len(done), 0, len(numbers) - len(done))
