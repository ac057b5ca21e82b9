"""Events of all kinds, with odd names, for logs that should agree."""

from __future__ import annotations

from random import Random

from fastbandit.storage.events import (
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    EventLog,
    RewardCame,
    TimePassed,
)
from fastbandit.testing.logs import Clock

ODD = 'it\'s "é" 😀 \\ \n'


def some_event(rng: Random) -> Event:
    """Draw an event; decisions repeat, and rewards are of any status."""
    id = rng.choice(["a", "b", "c", ODD, f"d{rng.randrange(30)}"])
    kind = rng.randrange(8)
    if kind < 3:
        arms = rng.choice([["x"], ["x", 7], ["7", 7, ODD]])
        return DecisionMade(
            id, [rng.gauss(0, 1), 1 / 3], arms, [rng.random()] * len(arms), rng.getrandbits(63),
            rng.randrange(3), 0, rng.choice([0, 5, 50]), rng.random(), rng.random() < 0.5,
            rng.random() < 0.5, 0.1, rng.choice([None, [0.25]]),
            rng.choice([None, ["x"], {"price": {"<=": 10.5}}]), rng.random() < 0.2,
            rng.choice(["bandit", "baseline"]), rng.choice([None, 7, ODD]),
        )  # fmt: skip
    if kind < 6:
        arm = rng.choice([None, "x", 7, "7", "nobody"])
        return RewardCame(id, rng.choice([0.0, 1.0]), arm, rng.choice(["", ODD]))
    if kind == 6:
        return ArmsChanged([Arm(ODD, [0.5, 1.0], {"price": 3.5})], [7, "x"])
    return TimePassed()


def fill(log: EventLog, clock: Clock, *, groups: int, seed: int) -> None:
    """Write groups of random events, some microseconds apart."""
    rng = Random(seed)
    for _ in range(groups):
        clock.time += rng.randrange(20)
        log.append([some_event(rng) for _ in range(rng.randrange(1, 8))])
