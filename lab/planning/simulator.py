"""A simulated cluster: requests come, deciders decide, groups are committed, machines fail.

Requests queue for a decider's event loop, then for its log. A group of events is committed in
one go while the next gathers, as `serving/writer.py` does it. The log is a decider's own, or one
that all deciders share and that commits one group at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, cycle

import numpy as np

_DRAWS = 8_192
_BUSY, _GATHERING_S = 16, 0.002  # of serving/writer.py
_MOST_AT_ONCE = 1_024


@dataclass(frozen=True)
class Costs:
    """Seconds of one request in a decider, and of one commit; spreads are those of log-times.

    `answer_share` of a request's time comes after its commit.
    """

    select_s: float
    reward_s: float
    commit_s: float
    event_s: float
    spread: float = 0.3
    commit_spread: float = 0.3
    answer_share: float = 0.3


@dataclass(frozen=True)
class Scene:
    """What happens: a rate a second, or so many connections that ask again once answered."""

    deciders: int
    seconds: float
    rate: float = 0.0
    connections: int = 0
    rewards_share: float = 0.0
    is_log_shared: bool = False
    most_waiting: int = 256
    fails_at: float | None = None
    noticed_s: float = 1.0
    back_s: float = 3.0
    slow_from: float = 0.0
    slow_until: float = 0.0
    slowness: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Simulated:
    """What became of the requests: `lost` were in a decider that failed, `refused` too many."""

    sent: int
    answered: int
    refused: int
    lost: int
    per_second: float
    p50_s: float
    p99_s: float
    busy: float
    group: float

    @property
    def failed_share(self) -> float:
        """The share of requests that got no decision."""
        return (self.lost + self.refused) / self.sent if self.sent else 0.0


def simulate(scene: Scene, costs: Costs) -> Simulated:
    """Let a scene happen, the same for the same seed."""
    return _Simulation(scene, costs).run()


@dataclass
class _Request:
    came: float
    is_reward: bool = False


@dataclass
class _Decider:
    """One process: work for its loop, events that gather, and the group that is committed."""

    jobs: deque[tuple[_Request, bool]] = field(default_factory=deque)
    gathered: list[_Request] = field(default_factory=list)
    group: list[_Request] = field(default_factory=list)
    under_way: int = 0
    busy_s: float = 0.0
    is_working: bool = False
    is_writing: bool = False
    is_down: bool = False
    is_shunned: bool = False
    stuck: list[_Request] = field(default_factory=list)


class _Simulation:
    """The clock, what is due, and the deciders."""

    def __init__(self, scene: Scene, costs: Costs) -> None:
        self.scene, self.costs, self.now = scene, costs, 0.0
        self.deciders = [_Decider() for _ in range(scene.deciders)]
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._log_line: deque[int] = deque()
        self._is_log_busy = False
        self.times: list[float] = []
        self.groups: list[int] = []
        self.sent = self.refused = self.lost = 0
        rng = np.random.default_rng(scene.seed)
        self._gaps = cycle(rng.exponential(1.0, _DRAWS).tolist())
        self._spread = cycle(np.exp(costs.spread * rng.standard_normal(_DRAWS)).tolist())
        self._commits = cycle(np.exp(costs.commit_spread * rng.standard_normal(_DRAWS)).tolist())
        self._kinds = cycle(rng.random(_DRAWS).tolist())

    def run(self) -> Simulated:
        scene = self.scene
        if scene.rate:
            self._later(0.0, self._arrive)
        for _ in range(scene.connections):
            self._send(_Request(0.0))
        if scene.fails_at is not None:
            self._later(scene.fails_at, lambda: self._fail(0))
        while self._due and self._due[0][0] <= scene.seconds:
            self.now, _, happen = heappop(self._due)
            happen()
        return self._summary()

    def _later(self, seconds: float, happen: Callable[[], None]) -> None:
        heappush(self._due, (self.now + seconds, next(self._numbers), happen))

    def _later_in(self, index: int, seconds: float, happen: Callable[[int], None]) -> None:
        """Let something happen in a decider, unless it has failed by then."""
        decider = self.deciders[index]

        def happen_there() -> None:
            if self.deciders[index] is decider:
                happen(index)

        self._later(seconds, happen_there)

    # -- requests

    def _arrive(self) -> None:
        """Let the next request of a steady stream come, and plan the one after."""
        share = self.scene.rewards_share
        self._send(_Request(self.now, next(self._kinds) < share / (1.0 + share)))
        self._later(next(self._gaps) / (self.scene.rate * (1.0 + share)), self._arrive)

    def _send(self, request: _Request) -> None:
        """Return a request to the decider with the fewest under way, as a balancer does."""
        self.sent += 1
        self._hand_over(request)

    def _hand_over(self, request: _Request) -> None:
        known = [index for index, own in enumerate(self.deciders) if not own.is_shunned]
        if not known:
            self.lost += 1
            return
        index = min(known, key=lambda one: self.deciders[one].under_way)
        decider = self.deciders[index]
        if decider.under_way >= self.scene.most_waiting:
            self.refused += 1
            return
        decider.under_way += 1
        if decider.is_down:
            decider.stuck.append(request)
        else:
            decider.jobs.append((request, False))
            self._work(index)

    def _work(self, index: int) -> None:
        """Let an idle loop take its next job."""
        decider, costs = self.deciders[index], self.costs
        if decider.is_working or not decider.jobs:
            return
        request, is_answer = decider.jobs[0]
        seconds = costs.reward_s if request.is_reward else costs.select_s
        seconds *= costs.answer_share if is_answer else 1.0 - costs.answer_share
        seconds *= next(self._spread)
        if self.scene.slow_from <= self.now < self.scene.slow_until:
            seconds *= self.scene.slowness
        decider.is_working = True
        decider.busy_s += seconds
        self._later_in(index, seconds, self._worked)

    def _worked(self, index: int) -> None:
        """Hand what was decided to the log, or send what was written."""
        decider = self.deciders[index]
        request, is_answer = decider.jobs.popleft()
        decider.is_working = False
        if is_answer:
            decider.under_way -= 1
            self.times.append(self.now - request.came)
            if self.scene.connections:
                self._send(_Request(self.now))
        else:
            decider.gathered.append(request)
            if not decider.is_writing:
                self._begin_group(index, size_before=0)
        self._work(index)

    # -- the log

    def _begin_group(self, index: int, *, size_before: int) -> None:
        """Take a group at once, or let it gather for a moment after a large one."""
        self.deciders[index].is_writing = True
        pause = _GATHERING_S if size_before >= _BUSY else 0.0
        self._later_in(index, pause, self._take)

    def _take(self, index: int) -> None:
        """Commit what has gathered, once the log is free."""
        if not self.scene.is_log_shared:
            self._commit(index)
            return
        self._log_line.append(index)
        if not self._is_log_busy:
            self._next_in_line()

    def _next_in_line(self) -> None:
        self._is_log_busy = bool(self._log_line)
        if self._log_line:
            self._commit(self._log_line.popleft())

    def _commit(self, index: int) -> None:
        decider, costs = self.deciders[index], self.costs
        decider.group = decider.gathered[:_MOST_AT_ONCE]
        del decider.gathered[:_MOST_AT_ONCE]
        self.groups.append(len(decider.group))
        seconds = costs.commit_s * next(self._commits) + costs.event_s * len(decider.group)
        self._later_in(index, seconds, self._written)

    def _written(self, index: int) -> None:
        """Let the loop answer a group, and begin the next."""
        decider = self.deciders[index]
        decider.jobs.extend((request, True) for request in decider.group)
        size, decider.group, decider.is_writing = len(decider.group), [], False
        if decider.gathered:
            self._begin_group(index, size_before=size)
        if self.scene.is_log_shared:
            self._next_in_line()
        self._work(index)

    # -- failures

    def _fail(self, index: int) -> None:
        """End a process with all that is in it; who asks it meanwhile waits to be sent on."""
        before = self.deciders[index]
        self.lost += before.under_way
        self.deciders[index] = _Decider(is_down=True)
        self._log_line = deque(one for one in self._log_line if one != index)
        if before.group and self.scene.is_log_shared:
            self._next_in_line()
        self._later_in(index, self.scene.noticed_s, self._notice)
        self._later_in(index, self.scene.back_s, self._return)

    def _notice(self, index: int) -> None:
        """Let the balancer shun a decider, and send on who waits for it."""
        decider = self.deciders[index]
        decider.is_shunned = True
        decider.under_way = 0
        stuck, decider.stuck = decider.stuck, []
        for request in stuck:
            self._hand_over(request)

    def _return(self, index: int) -> None:
        decider = self.deciders[index]
        decider.is_down = decider.is_shunned = False

    # -- the end

    def _summary(self) -> Simulated:
        seconds = self.scene.seconds
        p50, p99 = np.percentile(self.times, [50, 99]) if self.times else (0.0, 0.0)
        busy = sum(own.busy_s for own in self.deciders) / (seconds * len(self.deciders))
        return Simulated(
            sent=self.sent,
            answered=len(self.times),
            refused=self.refused,
            lost=self.lost,
            per_second=len(self.times) / seconds,
            p50_s=float(p50),
            p99_s=float(p99),
            busy=busy,
            group=float(np.mean(self.groups)) if self.groups else 0.0,
        )
