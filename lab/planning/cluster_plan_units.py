"""What single things cost on this machine: the units that the plan of a cluster counts with."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fastbandit.cores import cores
from fastbandit.errors import ServiceUnavailable, SettingError
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, EventLog, RewardCame
from lab.benchmarks.reporting import Tick
from lab.benchmarks.setups import silently
from lab.experiments.results import write_beside
from lab.planning.searches import free_memory
from lab.planning.timing import build_seconds
from lab.planning.untrained import untrained

GROUP = 128
"""Events that a busy decider commits at once: half of those that may be under way in it."""
_SIZES = (10_000, 100_000, 1_000_000)
_BYTES_WHILE_MEASURED = 1_000  # an arm, at most
_CHOICES, _RUNS = 400, 5
_GROUPS = (1, 16, 128, 1_024)
_APPENDS = 12
_ROUNDS = 2_000


@dataclass(frozen=True)
class Choice:
    """Seconds of a core that a decision takes among so many arms, and how widely they spread."""

    arms: int
    seconds: float
    spread: float


@dataclass(frozen=True)
class Ran:
    """A load on a real service: connections, or a rate a second, and what came of it."""

    name: str
    connections: int
    rate: float
    per_second: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True)
class LogCosts:
    """Seconds of one commit, and what each event adds: on the clock, of a core, and to read it.

    `spread` is that of the logarithm of a commit's time.
    """

    commit_s: float
    spread: float
    event_s: float
    cpu_s: float
    read_s: float

    @property
    def per_second(self) -> float:
        """Events a second in groups of GROUP."""
        return GROUP / (self.commit_s + GROUP * self.event_s)


@dataclass(frozen=True)
class Units:
    """Seconds and bytes of single things, all measured on one machine."""

    dim: int
    choices: tuple[Choice, ...]
    bytes_per_arm: float
    saved_bytes_per_arm: float
    save_s_per_byte: float
    load_s_per_byte: float
    index_s_per_arm: float
    process_bytes: int
    http_s: float
    route_s: float
    service_choose_s: float
    ran: tuple[Ran, ...]
    sqlite: LogCosts
    postgres: LogCosts | None
    decision_bytes: float
    reward_bytes: float
    interaction_bytes: float
    train_s: float
    cores: int

    def choose_s(self, arms: int) -> float:
        """Return the seconds of a decision among so many arms, along the measured slope."""
        known = np.log([[one.arms, one.seconds] for one in self.choices]).T
        if len(self.choices) == 1:
            return self.choices[0].seconds
        slope, start = np.polyfit(known[0], known[1], 1)
        return float(np.exp(start + max(0.0, slope) * np.log(arms)))

    @property
    def slope(self) -> float:
        """By which power of the number of arms a decision grows."""
        few, many = min(c.arms for c in self.choices), max(c.arms for c in self.choices)
        if few == many:
            return 0.0
        return float(np.log(self.choose_s(many) / self.choose_s(few)) / np.log(many / few))

    @property
    def other_s(self) -> float:
        """What a select takes in a running service beyond its parts: threads that wake, waits.

        The most that a real one answered is the measure; the load shared its cores.
        """
        parts = self.http_s + self.route_s + self.service_choose_s + self.sqlite.cpu_s
        return max(0.0, 1.0 / max(one.per_second for one in self.ran) - parts)

    @property
    def log(self) -> LogCosts:
        """What the log of a cluster costs: PostgreSQL where it was measured, else SQLite."""
        return self.postgres or self.sqlite


# -- measuring


def measure_units(dim: int, *, log_url: str | None = None, tick: Tick = silently) -> Units:
    """Measure everything once, in small; takes about a minute of a quiet machine."""
    sizes = [size for size in _SIZES if size * _BYTES_WHILE_MEASURED < free_memory()] or [_SIZES[0]]
    choices = []
    for size in sizes:
        tick(f"deciding among {size:,} arms")
        policy = untrained(size, dim, hidden=None)
        frozen = policy.frozen(policy.search)
        choices.append(choice_of(frozen, dim))
    tick("saving and loading")
    saved, save_s, load_s = saving(frozen)
    tick("building partitions")
    vectors = policy.policy.arms.all().points[0].numpy()[: sizes[min(1, len(sizes) - 1)]]
    tick("training")
    trained = training_seconds(dim)
    tick("writing events")
    with tempfile.TemporaryDirectory() as home:
        sqlite, interaction_bytes = log_costs(_sqlite(Path(home) / LOG_FILE), dim)
        weights = event_bytes(Path(home) / "weighed.db", dim)
    tick("writing events to PostgreSQL")
    postgres = postgres_costs(dim, log_url)
    tick("running a service")
    http_s, route_s, service_choose_s, ran = service_costs()
    return Units(
        dim=dim,
        choices=tuple(choices),
        bytes_per_arm=frozen.bytes_per_arm,
        saved_bytes_per_arm=saved / len(frozen),
        save_s_per_byte=save_s / saved,
        load_s_per_byte=load_s / saved,
        index_s_per_arm=build_seconds(vectors) / len(vectors),
        process_bytes=own_bytes(),
        train_s=trained,
        cores=cores(),
        sqlite=sqlite,
        postgres=postgres,
        interaction_bytes=interaction_bytes,
        decision_bytes=weights[0],
        reward_bytes=weights[1],
        http_s=http_s,
        route_s=route_s,
        service_choose_s=service_choose_s,
        ran=ran,
    )


def choice_of(frozen: FrozenBandit, dim: int) -> Choice:
    """Time decisions by the seconds of a core that they take, whoever else is busy."""
    contexts = np.random.default_rng(1).standard_normal((_CHOICES, dim), dtype=np.float32)
    frozen.warm()
    frozen.select_one(contexts[0], seed=0)
    runs, single = [], []
    for run in range(_RUNS):
        began = time.thread_time()
        for number, context in enumerate(contexts):
            frozen.select_one(context, seed=run * _CHOICES + number)
        runs.append((time.thread_time() - began) / _CHOICES)
    for number, context in enumerate(contexts):
        began = time.perf_counter()
        frozen.select_one(context, seed=number)
        single.append(time.perf_counter() - began)
    p50, p90 = np.percentile(single, [50, 90])
    return Choice(len(frozen), min(runs), float(np.log(p90 / p50) / 1.2816))


def saving(frozen: FrozenBandit) -> tuple[int, float, float]:
    """Return the bytes of a saved bandit, and the seconds to save it and to load and check it."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "frozen"
        began = time.perf_counter()
        frozen.save(folder)
        saved = time.perf_counter()
        FrozenBandit.load(folder)
        loaded = time.perf_counter()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return size, saved - began, loaded - saved


def own_bytes() -> int:
    """Return the memory of a decider without its arms, once its code is imported."""
    code = (
        "import os, fastbandit.serving.server, fastbandit.runtime.frozen\n"
        "pages = open('/proc/self/statm').read().split()[1]\n"
        "print(int(pages) * os.sysconf('SC_PAGE_SIZE'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def training_seconds(dim: int) -> float:
    """Time one update of a default bandit: it takes so many steps, however long its history."""
    from fastbandit.bandit import Bandit
    from fastbandit.demo.synthetic import Synthetic

    environment = Synthetic("h3", dim, 1_000)
    bandit = Bandit(arms=environment.arms, context=dim, reward="real", progress=False)
    rows = np.random.default_rng(0).integers(len(environment.arms), size=_ROUNDS)
    contexts, rewards = environment.contexts(0, _ROUNDS), environment.observed(0, rows)
    began = time.process_time()
    bandit.update(contexts=contexts, arms=rows, rewards=rewards)
    return time.process_time() - began


# -- the log


def _sqlite(path: Path) -> Any:
    from fastbandit.storage.sqlite_log import SqliteLog

    return SqliteLog(path)


def postgres_costs(dim: int, url: str | None) -> LogCosts | None:
    """Measure a PostgreSQL: the one named, else one of its own; None where there is none."""
    if url is None and find_spec("psycopg") is None:
        return None
    from fastbandit.storage.postgres_log import PostgresLog
    from lab.postgres_server import find_programs, little_server

    if url is not None:
        return log_costs(PostgresLog(url), dim)[0]
    if find_programs() is None:
        return None
    with little_server() as server:
        return log_costs(PostgresLog(server.url), dim)[0]


def log_costs(log: Any, dim: int) -> tuple[LogCosts, float]:
    """Time appends of groups and reading; also return the bytes of an interaction."""
    groups = {n: [append_seconds(log, n, dim) for _ in range(_APPENDS)] for n in _GROUPS}
    commit_s, event_s = line_through({n: median(w for w, _ in t) for n, t in groups.items()})
    single = [wall for wall, _ in groups[1]]
    p50, p90 = np.percentile(single, [50, 90])
    busy = median(cpu for _, cpu in groups[_GROUPS[-1]]) / _GROUPS[-1]
    read_s, interaction_bytes = reading_costs(log)
    log.close()
    return LogCosts(
        commit_s, float(np.log(p90 / p50) / 1.2816), event_s, busy, read_s
    ), interaction_bytes


def decisions(count: int, dim: int, *, seed: int) -> list[DecisionMade]:
    """Make decisions as a service would log them, with ids that none had before."""
    rng = np.random.default_rng()
    contexts = rng.standard_normal((count, dim)).round(6).tolist()
    ids = rng.bytes(15 * count).hex()
    return [
        DecisionMade(
            ids[30 * number : 30 * number + 30],
            context,
            [f"arm-{number}"],
            [0.5],
            seed + number,
            1,
            0,
            wait=10**9,
        )
        for number, context in enumerate(contexts)
    ]


def append_seconds(log: EventLog, size: int, dim: int) -> tuple[float, float]:
    """Append one group; return its seconds on the clock and those of a core."""
    events = decisions(size, dim, seed=0)
    began, busy = time.perf_counter(), time.thread_time()
    log.append(events)
    return time.perf_counter() - began, time.thread_time() - busy


def line_through(times: dict[int, float]) -> tuple[float, float]:
    """Return what a group costs in itself, and what each of its events adds."""
    first, last = min(times), max(times)
    each = max(0.0, (times[last] - times[first]) / (last - first))
    return max(1e-6, times[first] - each * first), each


def reading_costs(log: EventLog) -> tuple[float, float]:
    """Return the seconds to read and join one event, and the bytes of an interaction that waits."""
    from fastbandit.learning.joining import Joiner

    first = log.last - _GROUPS[-1]
    made = [event for event in log.read(after=first) if isinstance(event, DecisionMade)]
    log.append([RewardCame(one.id, 1.0) for one in made])
    tracemalloc.start()
    joiner = Joiner()
    for event in log.read(after=first):
        joiner.feed(event)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    joined_count, joiner = len(joiner.interactions), Joiner()
    began, count = time.thread_time(), 0
    for event in log.read(after=first):
        joiner.feed(event)
        count += 1
    return (time.thread_time() - began) / count, held / max(1, joined_count)


def event_bytes(path: Path, dim: int) -> tuple[float, float]:
    """Weigh a decision and a reward in a log of their own, by how its file grows."""

    def size_after(events: Sequence[Event]) -> int:
        log = _sqlite(path)
        if events:
            log.append(events)
        log.close()  # which puts everything into the file itself
        return path.stat().st_size

    made = decisions(10_000, dim, seed=0)
    rewards = [RewardCame(one.id, 1.0) for one in made]
    empty, decided, rewarded = size_after([]), size_after(made), size_after(rewards)
    return (decided - empty) / len(made), (rewarded - decided) / len(made)


# -- the service


def service_costs() -> tuple[float, float, float, tuple[Ran, ...]]:
    """Run `python -m lab faults throughput`: seconds of HTTP, route and choice, and the loads."""
    command = [sys.executable, "-m", "lab", "faults", "throughput"]
    command += ["--arms", "10000", "--seconds", "4", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):  # 1 says that a bar was missed
        raise ServiceUnavailable(
            f"Planning needs a service that runs: it ended with {done.stderr.strip()[-300:]}. Run: "
            f"python -m lab faults throughput"
        )
    report = json.loads(done.stdout)
    http_s = 1.0 / max(load["bare_per_second"] for load in report["loads"])
    ran = tuple(ran_of(load) for load in report["loads"])
    return http_s, report["added_us"] * 1e-6, report["choose_us"] * 1e-6, ran


def ran_of(load: dict[str, Any]) -> Ran:
    """Read one load: its name says the connections, or the rate."""
    number, _, kind = load["name"].replace(",", "").partition(" ")
    is_closed = kind == "connections"
    return Ran(
        name=load["name"],
        connections=int(number) if is_closed else 0,
        rate=0.0 if is_closed else float(number),
        per_second=load["per_second"],
        p50_s=load["p50_ms"] * 1e-3,
        p99_s=load["p99_ms"] * 1e-3,
    )


# -- files


def write_units(path: Path, units: Units) -> None:
    """Keep units in a file, for plans that need not measure again."""
    write_beside(path, json.dumps(asdict(units), indent=1) + "\n")


def read_units(path: Path) -> Units:
    """Read units that were stored."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if "pair_bytes" in stored:  # the name of before
            stored["interaction_bytes"] = stored.pop("pair_bytes")
        known = {one.name for one in fields(Units)}
        if set(stored) != known:
            raise ValueError(f"the keys {sorted(set(stored) ^ known)}")
        stored["choices"] = tuple(Choice(**one) for one in stored["choices"])
        stored["ran"] = tuple(Ran(**one) for one in stored["ran"])
        stored["sqlite"] = LogCosts(**stored["sqlite"])
        stored["postgres"] = stored["postgres"] and LogCosts(**stored["postgres"])
        units = Units(**stored)
        _check(units, positive=("bytes_per_arm", "http_s", "interaction_bytes", "train_s", "dim"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SettingError(
            f"--units needs a file that `python -m lab plan` wrote: {path} cannot be used "
            f"({error}). Name another, or remove it to measure anew."
        ) from error
    return units


def _check(units: Units, *, positive: Sequence[str]) -> None:
    for name in positive:
        if not getattr(units, name) > 0:
            raise ValueError(f"{name} = {getattr(units, name)!r}")
    if not (units.choices and units.ran):
        raise ValueError("no choices, or no loads that ran")
    if not min(units.log.commit_s, units.log.read_s, *(one.per_second for one in units.ran)) > 0:
        raise ValueError("a log or a load that takes no time")
