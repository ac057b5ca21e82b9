"""Steps of the clock of a database end no wait early, and let none stand still."""

from __future__ import annotations

from contextlib import ExitStack, closing

import numpy as np

from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.testing.logs import Clock

SECOND = 1_000_000
DAY = 86_400 * SECOND
FIRST = 20_000 * DAY
STEPS = (SECOND, 3600 * SECOND, DAY)


class Server:
    """A true time, and the clock of a database that steps away from it."""

    def __init__(self) -> None:
        self.true, self.ahead = Clock(FIRST), 0

    def wall(self) -> int:
        return self.true.time + self.ahead

    def run(self) -> int:
        return self.true.time


def writers(url: str, schema: str, server: Server, stack: ExitStack) -> list[PostgresLog]:
    made = [PostgresLog(url, schema=schema, clock=server.wall, run=server.run) for _ in range(2)]
    for one in made:
        stack.enter_context(closing(one))
        one.append([TimePassed()])
    return made


def test_times_are_those_of_an_oracle_on_the_true_time(
    url: str, schema: str, numbers: np.random.Generator
) -> None:
    server = Server()
    with ExitStack() as stack:
        logs = writers(url, schema, server, stack)
        true = []
        for n in range(60):
            server.true.time += int(numbers.integers(1, 20)) * SECOND
            if n % 3 == 0:
                size = STEPS[numbers.integers(3)]
                server.ahead += int(size * numbers.choice([-1, 1]))
            logs[numbers.integers(2)].append([TimePassed()])
            true.append(server.true.time)
        found = [event.at for event in logs[0].read()][2:]

    assert found == true
    assert logs[0].steady.seen.steps + logs[1].steady.seen.steps >= 20


def test_a_wait_takes_as_long_as_it_should_across_a_step(url: str, schema: str) -> None:
    server = Server()
    with ExitStack() as stack:
        one, two = writers(url, schema, server, stack)
        made = DecisionMade("a", [0.5], ["x"], [1.0], 1, 0, 0, 10 * SECOND)
        one.append([made])
        server.ahead += DAY
        server.true.time += 9 * SECOND
        in_time = two.append([RewardCame("a", 1.0)])[0].status
        one.append([DecisionMade("b", [0.5], ["x"], [1.0], 1, 0, 0, 10 * SECOND)])
        server.ahead -= 2 * DAY
        server.true.time += 11 * SECOND
        late = one.append([RewardCame("b", 1.0)])[0].status

        assert (in_time, late) == ("counted", "late")
        assert two.steady.seen.has_stepped
        assert one.steady.seen.steps == 2
