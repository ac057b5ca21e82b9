"""Rewards on their way: delivered, or kept in the spool until they can be; never dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import json

from fastbandit.client.asking import Asker, Call, OnDisk
from fastbandit.client.shapes import FALLBACK, Reward, RewardAnswers, check_reward, encode
from fastbandit.client.spool import Spool
from fastbandit.errors import ServiceError, ServiceUnavailable

SPOOLED = "spooled"
NOT_SENT = "not sent: fallback decision"
A_FEW = 100  # of the rewards that wait, with each call that the service answered
MANY = 1_000
_REFUSED_FOR_GOOD = (400, 413, 422)  # for what it says, not for who sent it or when


@dataclass(frozen=True)
class Flushed:
    """How many rewards of the spool were acknowledged, were refused for good, and still wait."""

    sent: int
    refused: int
    left: int


@dataclass(frozen=True)
class Delivery:
    """Sends rewards through `asker`; those that cannot be sent go to the spool, if there is one."""

    asker: Asker
    spool: Spool | None

    def rewards(self, rewards: Sequence[Reward]) -> Call[list[str]]:
        """Deliver rewards, or keep them; give what became of each.

        A reward waits behind those of the same decision, so that the first stays the first.
        """
        end = self.asker.end()
        own = [check_reward(r) for r in rewards if not r.decision.startswith(FALLBACK)]
        self.asker.count("rewards not sent", len(rewards) - len(own))
        behind = yield from self._waiting(own)
        direct = [reward for reward in own if reward.decision not in behind]
        statuses = yield from self._deliver(direct, end)
        yield from self._keep([reward for reward in own if reward.decision in behind])
        if SPOOLED not in statuses:
            yield from self._send_waiting(A_FEW, end)
        found = iter(statuses)
        return [_status(reward, behind) or next(found) for reward in rewards]

    def flush(self, deadline_seconds: float | None) -> Call[Flushed]:
        """Send what waits, until nothing is left, nothing more is taken or time is over."""
        end = self.asker.end(deadline_seconds)
        sent = refused = left = 0
        while True:
            taken, rejected = yield from self._send_waiting(MANY, end, is_strict=True)
            sent, refused = sent + taken, refused + rejected
            if not taken and not rejected:
                break
        if self.spool is not None:
            left = yield OnDisk(self.spool.count)
        return Flushed(sent, refused, left)

    def _waiting(self, rewards: Sequence[Reward]) -> Call[set[str]]:
        if self.spool is None or not rewards:
            return set()
        return (yield OnDisk(partial(self.spool.waiting, {r.decision for r in rewards})))

    def _deliver(self, rewards: list[Reward], end: float) -> Call[list[str]]:
        if not rewards:
            return []
        try:
            return (yield from self._send(rewards, end))
        except ServiceUnavailable:
            if self.spool is None:
                raise
        yield from self._keep(rewards)
        return [SPOOLED] * len(rewards)

    def _keep(self, rewards: list[Reward]) -> Call[None]:
        if self.spool is not None and rewards:
            yield OnDisk(partial(self.spool.keep, rewards))
            self.asker.count("rewards spooled", len(rewards))

    def _send(
        self, rewards: list[Reward], end: float, *, tries: int | None = None
    ) -> Call[list[str]]:
        def read(body: bytes) -> list[str]:
            answers = json.decode(body, type=RewardAnswers).rewards
            if len(answers) != len(rewards):
                raise ValueError(f"{len(answers)} answers for {len(rewards)} rewards")
            return [answer.status for answer in answers]

        body = encode({"rewards": rewards})
        return (
            yield from self.asker.ask("POST", "/v1/reward", body, read=read, end=end, tries=tries)
        )

    def _send_waiting(
        self, count: int, end: float, *, is_strict: bool = False
    ) -> Call[tuple[int, int]]:
        """Send the rewards that wait longest, once; give how many were taken and refused.

        What is not acknowledged stays. A service that takes no rewards at all (from a key
        without that right) is an error only where `is_strict`.
        """
        spool = self.spool
        if spool is None:
            return 0, 0
        waiting: list[tuple[int, Reward]] = yield OnDisk(partial(spool.first, count))
        if not waiting:
            return 0, 0
        try:
            yield from self._send([reward for _, reward in waiting], end, tries=1)
        except ServiceUnavailable:
            return 0, 0
        except ServiceError as error:
            if error.status in _REFUSED_FOR_GOOD:
                return (yield from self._send_one_by_one(spool, waiting[:A_FEW], end))
            if is_strict:
                raise
            return 0, 0
        yield OnDisk(partial(spool.remove, [number for number, _ in waiting]))
        self.asker.count("rewards sent from the spool", len(waiting))
        return len(waiting), 0

    def _send_one_by_one(
        self, spool: Spool, waiting: list[tuple[int, Reward]], end: float
    ) -> Call[tuple[int, int]]:
        """Find out which rewards the service refuses, and set those aside."""
        sent = refused = 0
        for number, reward in waiting:
            try:
                yield from self._send([reward], end, tries=1)
            except ServiceUnavailable:
                break
            except ServiceError as error:
                yield OnDisk(partial(spool.refuse, number, str(error)))
                refused += 1
            else:
                yield OnDisk(partial(spool.remove, [number]))
                sent += 1
        self.asker.count("rewards sent from the spool", sent)
        self.asker.count("rewards refused", refused)
        return sent, refused


def _status(reward: Reward, behind: set[str]) -> str:
    """Tell what became of a reward that was not sent; nothing of one that was."""
    if reward.decision.startswith(FALLBACK):
        return NOT_SENT
    return SPOOLED if reward.decision in behind else ""
