"""The contract of event logs: what each must do, wherever it stores events.

Call `check_event_log` on your own. The docstring of each law is what it holds a log to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any

from msgspec import structs

from fastbandit.errors import InputError
from fastbandit.storage.events import (
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    EventLog,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.memory_log import MemoryLog
from fastbandit.testing.laws import need, need_equal
from fastbandit.testing.log_backend import Clock as Clock
from fastbandit.testing.log_backend import LogBackend as LogBackend

_ODD = 'it\'s "é" 😀 \\ \x01\n\x7f\u2028'
_WAIT = 1_000


def check_event_log(backend: LogBackend) -> None:
    """A log keeps every law."""
    for law in LAWS:
        law(backend)


# -- what is written


def check_empty(backend: LogBackend) -> None:
    """An empty log has no events and no last number, and writing nothing changes nothing."""
    log = backend.make(Clock())
    need(isinstance(log, EventLog), f"{type(log).__name__} lacks a method of EventLog")
    need_equal(log.append([]), [], "the outcomes of nothing")
    need_equal((log.last, log.read(), log.decision("a")), (0, [], None), "an empty log")
    log.close()


def check_numbers(backend: LogBackend) -> None:
    """All kinds of events share one count, and are read as they were written."""
    clock = Clock()
    log = backend.make(clock)
    events = _one_of_each()
    outcomes = log.append(events[:3])
    clock.time += 5
    outcomes += [one for event in events[3:] for one in log.append([event])]
    need_equal([one.seq for one in outcomes], list(range(1, len(events) + 1)), "the numbers")
    times = [1_000_000] * 3 + [1_000_005] * (len(events) - 3)
    wanted = [
        structs.replace(event, seq=seq, at=at)
        for seq, (event, at) in enumerate(zip(events, times, strict=True), start=1)
    ]
    need_equal([_unjudged(event) for event in log.read()], wanted, "the events")
    need_equal(log.last, len(events), "the last number")
    need_equal(log.decision(_ODD), wanted[1], "a decision by its id")
    log.close()


def check_times(backend: LogBackend) -> None:
    """Times never go back, even if the clock does, and even if the log was closed meanwhile."""
    clock = Clock()
    log = backend.make(clock)
    for time in (1_000_000, 1_000_007, 3, 1_000_006, 1_000_008):
        clock.time = time
        log.append([TimePassed()])
    clock.time = 5
    log = backend.reopen(log)
    log.append([TimePassed()])
    times = [event.at - 1_000_000 for event in log.read()]
    need_equal(times, [0, 7, 7, 7, 8, 8], "the times, from the first on")
    log.close()


def check_all_or_none(backend: LogBackend) -> None:
    """An append that cannot be stored exactly leaves no trace, and the next one works."""
    log = backend.make(Clock())
    log.append([_made("a")])
    nan, whole = float("nan"), 2**63
    bad: list[Event] = [
        RewardCame("a", nan),
        RewardCame("a", 1.0, part="\ud800"),
        RewardCame("a", 1.0, whole),
        _made("b", context=[0.0, float("inf")]),
        _made("b", seed=whole),
        _made("b", default_reward=nan),
        _made("b", other=whole),
        ArmsChanged([Arm("x", [nan])]),
    ]
    for event in bad:
        try:
            outcome = log.append([_made("c"), RewardCame("a", 1.0), event, TimePassed()])
        except InputError:
            outcome = []
        need_equal(outcome, [], f"the outcome of {event}")
        need_equal((log.last, log.decision("c")), (1, None), f"the log after {event}")
    outcomes = log.append([_made("c"), RewardCame("a", 1.0)])
    need_equal(outcomes, [Outcome(2, "written"), Outcome(3, "counted")], "the append after")
    log.close()


def check_repeated(backend: LogBackend) -> None:
    """A decision whose id is known is not written again; the first stays."""
    log = backend.make(Clock())
    outcomes = log.append([_made("a"), _made("a", seed=2), _made("b"), _made("b", seed=2)])
    statuses = ["written", "repeated", "written", "repeated"]
    need_equal([one.status for one in outcomes], statuses, "the statuses within an append")
    need_equal(outcomes[1].seq, outcomes[0].seq, "the number of a repeated decision")
    need_equal(log.last, outcomes[2].seq, "the last number, after a repeated decision")
    last = log.last
    again = log.append([_made("a", seed=3)])
    need_equal(again, [Outcome(outcomes[0].seq, "repeated")], "a repeated decision, later")
    need_equal(log.last, last, "the last number, after nothing but a repeated decision")
    log = backend.reopen(log)
    need_equal(log.last, last, "the last number, opened again")
    seeds = [event.seed for event in log.read() if isinstance(event, DecisionMade)]
    need_equal(seeds, [1, 1], "the seeds of the first")
    (tick,) = log.append([TimePassed()])
    need(tick.seq > last, f"the number {tick.seq} comes after {last}")
    log.close()


# -- rewards


def check_statuses(backend: LogBackend) -> None:
    """A reward is counted once for each arm, or for each part where they sum, while in time."""
    for adds_up in (False, True):
        clock = Clock()
        log = backend.make(clock)
        log.append(
            [RewardCame("d", 1.0), _made("d", adds_up=adds_up, arms=["x", "y", "z", 1, "1"])]
        )
        rewards = [
            (RewardCame("d", 1.0), "counted"),
            (RewardCame("d", 1.0, "x"), "duplicate"),
            (RewardCame("d", 2.0, "x"), "conflicting"),
            (RewardCame("d", 1.0, "x", "more"), "counted" if adds_up else "duplicate"),
            (RewardCame("d", 2.0, "x", "more"), "conflicting"),
            (RewardCame("d", 0.0, 1), "counted"),
            (RewardCame("d", 5.0, "1"), "counted"),
            (RewardCame("d", 1.0, "w"), "unknown arm"),
            (RewardCame("e", 1.0), "unknown"),
        ]
        outcomes = log.append([came for came, _ in rewards])
        need_equal([one.status for one in outcomes], [s for _, s in rewards], "the statuses")
        clock.time += _WAIT
        need_equal(_status(log, RewardCame("d", 1.0, "z")), "counted", "one at the end")
        clock.time += 1
        need_equal(_status(log, RewardCame("d", 1.0, "y")), "late", "one after the end")
        need_equal(_status(log, RewardCame("d", 1.0, "y")), "late", "one after the end, again")
        need_equal(_status(log, RewardCame("d", 1.0, "x")), "duplicate", "an old one, late")
        stored = [event.status for event in log.read() if isinstance(event, RewardCame)]
        need_equal(stored[:2], ["unknown", "counted"], "the statuses that are stored")
        log.close()


def check_orders(backend: LogBackend) -> None:
    """A reward's status depends on the order of events, not on how appends divide them."""
    rewards = [
        RewardCame("", 1.0),
        RewardCame("", 1.0, "x"),
        RewardCame("", 2.0, "y"),
        RewardCame("", 2.0, "y", "more"),
        RewardCame("", 3.0, "z"),
    ]
    for adds_up, late in product((False, True), range(4)):
        logs: list[tuple[EventLog, Clock]] = []
        for make in (backend.make, lambda clock: MemoryLog(clock=clock)):
            clock = Clock()
            logs.append((make(clock), clock))
        runs = list(product(rewards, repeat=3))
        found, wanted = (_run_orders(*log, runs, adds_up=adds_up, late=late) for log in logs)
        for run, one, other in zip(runs, found, wanted, strict=True):
            need_equal(one, other, f"the statuses of {run} (adds_up: {adds_up}, late from {late})")


def _run_orders(
    log: EventLog, clock: Clock, runs: Sequence[Sequence[RewardCame]], *, adds_up: bool, late: int
) -> list[list[str]]:
    """Return the statuses of each run of rewards: first one append a step, then one for all."""
    statuses: list[list[str]] = [[] for _ in runs]
    log.append([_made(f"{row}", adds_up=adds_up) for row in range(len(runs))])
    for step in range(3):
        clock.time += (_WAIT + 1) * (step == late)
        came = [structs.replace(run[step], decision=f"{row}") for row, run in enumerate(runs)]
        for found, outcome in zip(statuses, log.append(came), strict=True):
            found.append(outcome.status)
    for row, run in enumerate(runs):
        id = f"again {row}"
        events = [structs.replace(one, decision=id) for one in run]
        events.insert(late % 3, _made(id, adds_up=adds_up))  # type: ignore[arg-type]
        statuses[row] += [outcome.status for outcome in log.append(events)]
    log.close()
    return statuses


def check_batches(backend: LogBackend) -> None:
    """Rewards of one append, however often their parts repeat, are judged as one by one."""
    rng = Random(7)
    for wait in (_WAIT, 5 * _WAIT):
        clock, oracle_clock = Clock(), Clock()
        log, oracle = backend.make(clock), MemoryLog(clock=oracle_clock)
        for step in range(12):
            known = [f"{n}" for n in range(3 * step)]
            some = [f"{n}" for n in range(3 * step, 3 * step + 3)]
            made = [_made(id, adds_up=rng.random() < 0.5, wait=wait) for id in some]
            events: list[Event] = [*made, *(_random_reward(rng, known + some) for _ in range(60))]
            rng.shuffle(events)
            clock.time = oracle_clock.time = clock.time + rng.choice([0, 1, _WAIT])
            found, wanted = log.append(events), oracle.append(events)
            for event, one, other in zip(events, found, wanted, strict=True):
                need_equal(one, other, f"the outcome of {event} in a batch")
        need_equal(log.read(), oracle.read(), "the log after batches of rewards")
        log.close()


def _random_reward(rng: Random, decisions: Sequence[str]) -> RewardCame:
    id = rng.choice([*decisions, "no decision"])
    arm, part = rng.choice([None, "x", "y", "z"]), rng.choice(["", "p", "q"])
    return RewardCame(id, rng.choice([0.0, 1.0]), arm, part)


def check_outages(backend: LogBackend) -> None:
    """An outage, no longer than the silence before its end, is no time for rewards."""
    clock = Clock()
    log = backend.make(clock)
    log.append([_made("a"), _made("b")])
    clock.time += 50 * _WAIT
    log.append([TimePassed(outage=49 * _WAIT), _made("c"), TimePassed(outage=9 * _WAIT)])
    need_equal(_status(log, RewardCame("a", 1.0)), "counted", "a reward after an outage")
    clock.time += 1
    need_equal(_status(log, RewardCame("b", 1.0)), "late", "one that is late all the same")
    need_equal(_status(log, RewardCame("c", 1.0)), "counted", "one of a decision after it")
    clock.time += _WAIT
    log.append([TimePassed(outage=9 * _WAIT)])
    need_equal(_status(log, RewardCame("c", 1.0, "y")), "counted", "one after a second outage")
    log = backend.reopen(log)
    outages = [event.outage for event in log.read() if isinstance(event, TimePassed)]
    need_equal(outages, [49 * _WAIT, 0, _WAIT], "the outages")
    log.close()


# -- reading


def check_eligible(backend: LogBackend) -> None:
    """Eligible arms are read as they came, long or short, of one request or of several."""
    log = backend.make(Clock())
    arms = [f"arm {n}" for n in range(1_000)]
    every = [arms, arms, [*arms], {"in": arms, _ODD: None}, arms[:2], [], {}, None]
    made: list[Event] = [_made(f"{n}", eligible=one) for n, one in enumerate(every)]
    log.append(made)
    log.append([_made("again", eligible=[*arms])])
    log = backend.reopen(log)
    for n, wanted in enumerate([*every, arms]):
        found = log.read()[n]
        need(isinstance(found, DecisionMade), f"event {n} is a decision")
        need_equal(getattr(found, "eligible", None), wanted, f"the eligible arms of decision {n}")
    again = log.decision("again")
    need_equal(again and again.eligible, arms, "those of a decision by its id")
    log.close()


def check_paging(backend: LogBackend) -> None:
    """Pages of any length, one after the other, are the whole log."""
    log = backend.make(Clock())
    log.append([*_one_of_each(), _made(_ODD), *_one_of_each()])
    everything = log.read()
    for limit in range(1, len(everything) + 2):
        pages: list[Event] = []
        while page := log.read(after=pages[-1].seq if pages else 0, limit=limit):
            need(len(page) <= limit, f"{len(page)} events in a page of {limit}")
            pages += page
        need_equal(pages, everything, f"the pages of {limit}")
    log.close()


def check_beside(backend: LogBackend) -> None:
    """A reader beside the writer sees what was acknowledged, at once and ever after."""
    log = backend.make(Clock())
    log.append([_made("a")])
    reader = backend.beside(log)
    for id in ("b", "c", "d"):
        log.append([_made(id), RewardCame(id, 1.0)])
        need_equal(reader.read(), log.read(), "what is read beside the writer")
        need_equal(reader.last, log.last, "the last number beside the writer")
        need_equal(reader.decision(id), log.decision(id), "a decision beside the writer")
    reader.close()
    log.append([TimePassed()])
    log.close()


def check_reopened(backend: LogBackend) -> None:
    """A log that is opened again holds the same, and goes on where it was."""
    log = backend.make(Clock())
    everything: list[Event] = []
    for times in range(3):
        log.append([_made(f"{times}"), *_one_of_each(), RewardCame(f"{times}", 1.0)])
        everything = log.read()
        last = log.last
        log = backend.reopen(log)
        need_equal(log.read(), everything, "the events, opened again")
        need_equal(log.last, last, "the last number, opened again")
    numbers = [event.seq for event in everything]
    need_equal(numbers, sorted(set(numbers)), "the numbers")
    need_equal(_status(log, RewardCame("0", 1.0)), "duplicate", "a reward from before")
    log.close()


# -- parts of the laws


def _made(id: str, **changed: Any) -> DecisionMade:
    made = DecisionMade(
        id,
        context=[0.1 + 0.2, 1e-300],
        arms=["x", "y"],
        scores=[0.5, -0.25],
        seed=1,
        version=3,
        catalogue=0,
        wait=_WAIT,
    )
    return structs.replace(made, **changed)


def _one_of_each() -> list[Event]:
    """Return events of every kind, with values that are easily lost."""
    return [
        TimePassed(),
        _made(
            _ODD,
            context=[-0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2],
            arms=[_ODD, 2**53 + 1, "null", "1", 1],
            scores=[1 / 3, 0.2, 0.1, 0.0, -1.0],
            seed=2**63 - 1,
            default_reward=2 / 3,
            adds_up=True,
            explored=False,
            epsilon=0.1 + 0.2,
            propensities=[1 / 7],
            eligible={"price": {"<=": 10.5}, _ODD: [None, "null", 2**53 + 1]},
            degraded=True,
            decided_by="baseline",
            other=_ODD,
            offered=[Arm(_ODD, {_ODD: [None, "null", 1 / 3]}), Arm(2**53 + 1, [1 / 3])],
            made_at=2**53 + 1,
        ),
        RewardCame(_ODD, 0.1 + 0.2, 2**53 + 1, _ODD),
        ArmsChanged([Arm(_ODD, [1 / 3], {_ODD: _ODD}), Arm(2**63 - 1, [])], [_ODD, -(2**63)]),
        RewardCame("no decision", -1 / 3, _ODD),
        _made("plain", other=2**53 + 1),
    ]


def _unjudged(event: Event) -> Event:
    return structs.replace(event, status=None) if isinstance(event, RewardCame) else event


def _status(log: EventLog, came: RewardCame) -> str:
    return log.append([came])[0].status


LAWS: tuple[Callable[[LogBackend], None], ...] = (
    check_empty,
    check_numbers,
    check_times,
    check_all_or_none,
    check_repeated,
    check_statuses,
    check_orders,
    check_batches,
    check_outages,
    check_eligible,
    check_paging,
    check_beside,
    check_reopened,
)
"""Each law of an event log, as a function of the backend."""
