"""How many machines a load needs, what each of them holds and sends, and what breaks first.

Plain arithmetic on units that were measured, with every assumption as a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from lab.planning.cluster_plan_units import GROUP, LogCosts, Units
from lab.planning.searches import format_bytes, rounded
from lab.printing import format_seconds

Source = Literal["measured", "given", "assumed", "computed"]
GIB = 2**30
_DAY_S = 86_400.0
_HEADERS_BYTES = 250
_NUMBER_BYTES = 10
_ANSWER_BYTES = 250
_REWARD_BYTES = 700
_DISK_FACTOR = 3.0
_LINK_SHARE = 0.7
_POSTGRES_PER_SECOND = 20_000.0
_SPARE_MACHINES = 1


@dataclass(frozen=True)
class ClusterAsk:
    """What is planned: arms and load, and the machines that there are."""

    arms: int
    dim: int = 8
    selects: float = 1e5
    rewards_share: float = 0.1
    retrain_minutes: float = 60.0
    replicas: int | None = None
    utilisation: float = 0.6
    machine_cores: int = 16
    machine_gib: float = 256.0
    gbit: float = 10.0
    log_per_second: float | None = None

    @property
    def events(self) -> float:
        """Events a second: decisions and rewards."""
        return self.selects * (1.0 + self.rewards_share)


@dataclass(frozen=True)
class Row:
    """One line of a plan: what, how much in words, and where it comes from."""

    what: str
    figure: str
    source: Source


@dataclass(frozen=True)
class Limit:
    """Something that can carry so much: `load` is the share of it that is asked for."""

    what: str
    load: float
    detail: str
    grows_with: Literal["selects", "arms"]

    @property
    def is_met(self) -> bool:
        return self.load <= 1.0


@dataclass(frozen=True)
class ClusterPlan:
    """What a cluster needs, in numbers; seconds, bytes and cores."""

    shards: int
    deciders: int
    machines: int
    cores: float
    busy: float
    choose_s: float
    select_s: float
    reward_s: float
    arms_bytes: int
    machine_bytes: int
    saved_bytes: int
    requests_bits: float
    log_bits: float
    log_bytes_a_day: float
    disk_bytes_a_day: float
    log_per_second: float
    log_source: Source
    read_s: float
    index_s: float
    save_s: float
    push_s: float
    load_s: float
    retrain_s: float
    interactions_bytes: float
    limits: tuple[Limit, ...]

    @property
    def first(self) -> Limit:
        """What breaks first."""
        return self.limits[0]


def plan_cluster(ask: ClusterAsk, units: Units) -> ClusterPlan:
    """Count what a load needs, from what single things cost."""
    choose_s = units.choose_s(ask.arms)
    reward_s = units.http_s + units.route_s + units.log.cpu_s + units.other_s
    select_s = reward_s + choose_s
    rewards = ask.selects * ask.rewards_share
    cores = ask.selects * select_s + rewards * reward_s
    log_per_second, log_source = _log_limit(ask, units)
    shards = max(1, ceil(ask.events / (log_per_second * ask.utilisation)))
    deciders = ask.replicas or max(3, shards, ceil(cores / ask.utilisation))
    per_machine = max(1, ask.machine_cores - 2)  # two are for the system and for new versions
    machines = ceil(deciders / per_machine) + _SPARE_MACHINES
    arms_bytes = int(ask.arms * units.bytes_per_arm)
    each = ceil(deciders / max(1, machines - _SPARE_MACHINES))
    saved = int(ask.arms * units.saved_bytes_per_arm)
    event_bytes = ask.selects * units.decision_bytes + rewards * units.reward_bytes
    shard_events, interval = ask.events / shards, 60.0 * ask.retrain_minutes
    read_s = shard_events * interval * units.log.read_s
    index_s = ask.arms * units.index_s_per_arm * units.cores / ask.machine_cores
    push_s = 8.0 * saved / (_LINK_SHARE * ask.gbit * 1e9)
    save_s, load_s = saved * units.save_s_per_byte, saved * units.load_s_per_byte
    made = ClusterPlan(
        shards=shards,
        deciders=deciders,
        machines=machines,
        cores=cores,
        busy=cores / deciders,
        choose_s=choose_s,
        select_s=select_s,
        reward_s=reward_s,
        arms_bytes=arms_bytes,
        machine_bytes=2 * arms_bytes + each * units.process_bytes,
        saved_bytes=saved,
        requests_bits=8.0 * (ask.selects * _select_bytes(ask) + rewards * _REWARD_BYTES),
        log_bits=8.0 * event_bytes,
        log_bytes_a_day=_DAY_S * event_bytes,
        disk_bytes_a_day=_DAY_S * event_bytes * _DISK_FACTOR,
        log_per_second=log_per_second,
        log_source=log_source,
        read_s=read_s,
        index_s=index_s,
        save_s=save_s,
        push_s=push_s,
        load_s=load_s,
        retrain_s=read_s + units.train_s + index_s + save_s + push_s + load_s,
        interactions_bytes=ask.selects / shards * interval * units.interaction_bytes,
        limits=(),
    )
    return _with_limits(made, ask)


def _select_bytes(ask: ClusterAsk) -> float:
    return 2 * _HEADERS_BYTES + _NUMBER_BYTES * ask.dim + _ANSWER_BYTES


def _log_limit(ask: ClusterAsk, units: Units) -> tuple[float, Source]:
    """Return the events a second that one PostgreSQL takes, and who says so."""
    if ask.log_per_second is not None:
        return ask.log_per_second, "given"
    if units.postgres is not None:
        return units.postgres.per_second, "measured"
    return _POSTGRES_PER_SECOND, "assumed"


def _with_limits(plan: ClusterPlan, ask: ClusterAsk) -> ClusterPlan:
    """Add what limits the plan, the fullest first."""
    limits = sorted(limits_of(plan, ask), key=lambda one: -one.load)
    return replace(plan, limits=tuple(limits))


def limits_of(plan: ClusterPlan, ask: ClusterAsk) -> list[Limit]:
    """Compare what is asked of each part with what it can carry, one log and one trainer each."""
    interval, memory = 60.0 * ask.retrain_minutes, ask.machine_gib * GIB
    one_log = ask.events / plan.log_per_second
    rates: list[tuple[str, float, str]] = [
        ("one log", one_log, f"takes {plan.log_per_second:,.0f} events/s"),
        (
            "one trainer's reading",
            plan.shards * plan.read_s / interval,
            f"reads {ask.events / (plan.shards * plan.read_s / interval):,.0f} events/s",
        ),
        (
            "one trainer's memory",
            plan.shards * plan.interactions_bytes / memory,
            f"holds the interactions of {ask.retrain_minutes:g} minutes in {ask.machine_gib:g} GiB",
        ),
        (
            "the deciders",
            plan.busy,
            f"{plan.deciders} decide up to {plan.deciders / plan.cores * ask.selects:,.0f}/s",
        ),
        (
            "one machine's network",
            plan.requests_bits / max(1, plan.machines - _SPARE_MACHINES) / (ask.gbit * 1e9),
            f"carries {ask.gbit:g} Gbit/s",
        ),
    ]
    sizes: list[tuple[str, float, str]] = [
        (
            "a machine's memory",
            plan.machine_bytes / memory,
            f"holds two snapshots in {ask.machine_gib:g} GiB",
        ),
        (
            "the time to retrain",
            plan.retrain_s / interval,
            f"has {ask.retrain_minutes:g} minutes",
        ),
        (
            "the push of a snapshot",
            plan.push_s / interval,
            f"goes over {ask.gbit:g} Gbit/s",
        ),
    ]
    return [
        *(Limit(what, load, detail, "selects") for what, load, detail in rates),
        *(Limit(what, load, detail, "arms") for what, load, detail in sizes),
    ]


# -- in words


def assumptions(ask: ClusterAsk, plan: ClusterPlan, units: Units) -> list[Row]:
    """Return all that the plan rests on."""
    most = max(one.arms for one in units.choices)
    beyond = f", {ask.arms / most:,.0f} × beyond what was measured" if ask.arms > most else ""
    given = [
        Row("arms, and their features", f"{ask.arms:,} × {ask.dim}", "given"),
        Row("selects a second", f"{ask.selects:,.0f}", "given"),
        Row("rewards for each select", f"{ask.rewards_share:g}", "given"),
        Row("a new version every", f"{ask.retrain_minutes:g} min", "given"),
        Row("cores, memory and network of a machine", _machine(ask), "given"),
        Row("how busy a process may be", f"{ask.utilisation:.0%}", "given"),
    ]
    measured = [
        *(
            Row(f"a decision among {one.arms:,} arms", format_seconds(one.seconds), "measured")
            for one in units.choices
        ),
        Row("it grows with the arms by the power", f"{units.slope:.2f}{beyond}", "measured"),
        Row("HTTP around a request", format_seconds(units.http_s), "measured"),
        Row("the route of the service", format_seconds(units.route_s), "measured"),
        Row("the log's part of a core, an event", format_seconds(units.log.cpu_s), "measured"),
        Row("what else a select takes in a service", format_seconds(units.other_s), "measured"),
        Row("bytes an arm in memory", f"{units.bytes_per_arm:.0f}", "measured"),
        Row("bytes an arm in a snapshot", f"{units.saved_bytes_per_arm:.0f}", "measured"),
        Row("memory of a decider without arms", format_bytes(units.process_bytes), "measured"),
        Row("bytes of a decision in the log", f"{units.decision_bytes:.0f}", "measured"),
        Row("bytes of a reward in the log", f"{units.reward_bytes:.0f}", "measured"),
        *(
            Row(f"a commit of {name}", _commit(log), "measured")
            for name, log in (("SQLite", units.sqlite), ("PostgreSQL", units.postgres))
            if log is not None
        ),
        Row("to read and join an event", format_seconds(units.log.read_s), "measured"),
        Row(
            "an interaction that waits for the trainer",
            f"{units.interaction_bytes:.0f} bytes",
            "measured",
        ),
        Row("training, however long the history", format_seconds(units.train_s), "measured"),
        Row(
            f"partitions and neighbours of an arm, on {units.cores} cores",
            format_seconds(units.index_s_per_arm),
            "measured",
        ),
        Row("to save a snapshot", f"{1e-6 / units.save_s_per_byte:,.0f} MB/s", "measured"),
        Row("to check and load one", f"{1e-6 / units.load_s_per_byte:,.0f} MB/s", "measured"),
    ]
    assumed = [
        Row("events a second into one PostgreSQL", f"{plan.log_per_second:,.0f}", plan.log_source),
        Row("events that a busy decider commits at once", f"{GROUP}", "assumed"),
        Row("building partitions speeds up with cores", "in proportion", "assumed"),
        Row("a select and its answer on the wire", f"{_select_bytes(ask):.0f} bytes", "assumed"),
        Row("a reward and its answer on the wire", f"{_REWARD_BYTES} bytes", "assumed"),
        Row("a disk holds of each byte: rows, indices, archive", f"{_DISK_FACTOR:g}", "assumed"),
        Row("of a network a push gets", f"{_LINK_SHARE:.0%}", "assumed"),
        Row("cores left free on a machine", "2", "assumed"),
        Row("machines that may be down", f"{_SPARE_MACHINES}", "assumed"),
        Row("processes of a machine share the arms' memory", "yes", "assumed"),
    ]
    return [*given, *measured, *assumed]


def _machine(ask: ClusterAsk) -> str:
    return f"{ask.machine_cores}, {ask.machine_gib:g} GiB, {ask.gbit:g} Gbit/s"


def _commit(log: LogCosts) -> str:
    return f"{format_seconds(log.commit_s)} + {format_seconds(log.event_s)} an event"


def figures(plan: ClusterPlan, ask: ClusterAsk) -> list[Row]:
    """Return what a cluster needs."""
    said = [
        ("a decision", format_seconds(plan.choose_s)),
        ("a select in all, of one core", format_seconds(plan.select_s)),
        ("busy cores", f"{plan.cores:,.1f}"),
        ("deciders (processes)", f"{plan.deciders}, {plan.busy:.0%} busy"),
        ("machines of deciders", f"{plan.machines}, one to spare"),
        ("shards: a log and a trainer each", f"{plan.shards}"),
        ("arms in memory, a machine", format_bytes(plan.arms_bytes)),
        ("memory of a machine, while it swaps", format_bytes(plan.machine_bytes)),
        ("requests and answers", _bits(plan.requests_bits)),
        ("to the logs", _bits(plan.log_bits)),
        ("events a second, in all and a log", _events(plan, ask)),
        ("log a day", format_bytes(int(plan.log_bytes_a_day))),
        ("disk a day", format_bytes(int(plan.disk_bytes_a_day))),
        ("a snapshot", format_bytes(plan.saved_bytes)),
        ("to read what is new", format_seconds(plan.read_s)),
        ("to build partitions and neighbours", format_seconds(plan.index_s)),
        ("to save a snapshot", format_seconds(plan.save_s)),
        ("to push it to a machine", format_seconds(plan.push_s)),
        ("to check and load it there", format_seconds(plan.load_s)),
        ("from the cut to a version in service", format_seconds(plan.retrain_s)),
        ("interactions that a trainer holds", format_bytes(int(plan.interactions_bytes))),
    ]
    return [Row(what, figure, "computed") for what, figure in said]


def _events(plan: ClusterPlan, ask: ClusterAsk) -> str:
    return f"{ask.events:,.0f}, {ask.events / plan.shards:,.0f}"


def _bits(bits: float) -> str:
    return f"{bits / 1e9:.3g} Gbit/s" if bits >= 1e8 else f"{bits / 1e6:.3g} Mbit/s"


def verdict(plan: ClusterPlan, ask: ClusterAsk) -> list[str]:
    """Say what breaks first, and what to do about all that does."""
    first = plan.first
    most = ask.selects / first.load if first.grows_with == "selects" else ask.arms / first.load
    unit = "selects/s" if first.grows_with == "selects" else "arms"
    said = [
        f"First to break: {first.what} ({first.detail}), at about {rounded(int(most)):,} {unit}."
    ]
    cures = {
        "one log": f"Split the visitors over {plan.shards} shards, each with a log of its own.",
        "one trainer's reading": "The same shards split what a trainer reads.",
        "one trainer's memory": "Retrain more often, or in more shards.",
        "the deciders": "Start more deciders.",
        "one machine's network": "Use more machines, with fewer deciders each.",
        "a machine's memory": "Use machines with more memory, or split the arms over services.",
        "the time to retrain": "Retrain less often, on more cores.",
        "the push of a snapshot": "Retrain less often, or over a faster network.",
    }
    said += [
        f"Past its limit: {one.what}, {one.load:.2g} ×. {cures[one.what]}"
        for one in plan.limits
        if not one.is_met
    ]
    return said
