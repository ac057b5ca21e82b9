"""Who asks a service that is killed, again until an answer comes, and remembers every answer."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Any

import numpy as np

from lab.faults.consistency import Rewards
from lab.faults.stage import Caller, Reply, Stage

PAUSE_SECONDS = 0.01
_OF_REWARDS = {200, 202, 404, 409}


class Visitor(threading.Thread):
    """Asks for decisions and rewards them, again until answered, and remembers the answers."""

    def __init__(self, stage: Stage, number: int) -> None:
        super().__init__(name=f"visitor {number}", daemon=True)
        self.number, self.is_leaving = number, threading.Event()
        self._environment, self._caller = stage.environment, Caller(stage.port)
        self._rng = np.random.default_rng([stage.environment.seed, number])
        self.asked: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.rewards: Rewards = Counter()
        self.odd: list[str] = []
        self._unrewarded: deque[tuple[str, float]] = deque()
        self.broken = self.asked_again = self.other_answers = 0

    def run(self) -> None:
        visit = 0
        while not self.is_leaving.is_set():
            broken = self.broken
            self._visit(visit)
            if self.broken > broken or self._rng.random() < 0.02:
                self._ask_again()
            self._reward_some()
            visit += 1
            time.sleep(self._rng.exponential(PAUSE_SECONDS))
        self._caller.close()

    def leave(self) -> None:
        """End after the visit under way."""
        self.is_leaving.set()
        self.join()

    def _visit(self, visit: int) -> None:
        id, round_number = f"v{self.number}-{visit}", self.number * 10_000_000 + visit
        asked = {"id": id, "context": self._environment.contexts(round_number, 1)[0].tolist()}
        reply = self._insist("/v1/select", asked, good={200})
        if reply is None:
            return
        self.asked[id], self.answers[id] = asked, reply.content
        if self._rng.random() < 0.9:
            arm = np.array(reply.content["arms"])
            self._unrewarded.append((id, float(self._environment.observed(round_number, arm)[0])))

    def _ask_again(self) -> None:
        """Ask as before for the last decision, or for any: the answer needs to be the same."""
        ids = list(self.answers)
        if not ids:
            return
        id = ids[-1] if self._rng.random() < 0.5 else ids[int(self._rng.integers(len(ids)))]
        reply = self._insist("/v1/select", self.asked[id], good={200})
        if reply is not None:
            self.asked_again += 1
            self.other_answers += reply.content != self.answers[id]

    def _reward_some(self) -> None:
        """Reward earlier decisions; a few twice, with another value, or without a decision."""
        while len(self._unrewarded) > 5:
            id, value = self._unrewarded.popleft()
            draw = self._rng.random()
            self._reward(id, value)
            if draw < 0.02:
                self._reward(id, value)
            elif draw < 0.04:
                self._reward(id, value + 1.0)
            elif draw < 0.06:
                self._reward(f"none-{id}", value)

    def _reward(self, id: str, value: float) -> None:
        reply = self._insist("/v1/reward", {"decision": id, "value": value}, good=_OF_REWARDS)
        if reply is not None:
            self.rewards[id, value, reply.content["status"]] += 1

    def _insist(self, path: str, request: Any, *, good: set[int]) -> Reply | None:
        """Ask until an answer comes; None where it is time to leave, or the answer is odd."""
        while not self.is_leaving.is_set():
            reply = self._caller.ask(path, request)
            if reply is not None and reply.status in good:
                return reply
            if reply is not None and reply.status != 503:
                self.odd.append(f"{reply.status} for {request}: {reply.content}")
                return None
            self.broken += 1
            time.sleep(PAUSE_SECONDS)
        return None
