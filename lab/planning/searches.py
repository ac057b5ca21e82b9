"""Plans which search so many arms need on this machine, if a decision may take so long."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastbandit.cores import cores
from fastbandit.errors import SettingError
from fastbandit.interfaces import Search
from fastbandit.noise.philox import decision_seeds
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from lab.planning.timing import build_seconds, decide_for
from lab.planning.untrained import untrained
from lab.printing import format_seconds

Floats = NDArray[np.float32]
Tick = Callable[[str], None]
"""Called with what is done next."""

EXHAUSTIVE, GENERATOR, LIGHT = "exhaustive", "generator", "light generator"
SEARCHES = (EXHAUSTIVE, GENERATOR, LIGHT)
_FEW, _MOST_NUMBERS, _BUILT = 10_000, 16_000_000, 100_000
_BYTES_WHILE_MEASURED = 1_000  # an arm, at most
_CONTEXTS = 1_000
_FEWEST = 20
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}


@dataclass(frozen=True)
class PlanRequest:
    """What is planned for: arms, their features, the p99 of one decision, and hidden units."""

    arms: int
    dim: int
    bar_s: float
    hidden: int | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds of one decision, and decisions a second on all cores, of one search."""

    search: str
    arms: int
    p50_s: float
    p99_s: float
    per_s: float
    is_extrapolated: bool = False


@dataclass(frozen=True)
class Measurements:
    """What was measured on this machine."""

    timings: tuple[Timing, ...]
    bytes_per_arm: float
    build_s_per_arm: float
    cores: int
    memory: int

    def at(self, search: str, arms: int) -> Timing:
        """Return the timing of a search among so many arms, extrapolated where it must be."""
        known = self._of(search)
        for timing in known:
            if arms <= timing.arms:
                return timing
        last = known[-1]
        growth = arms / last.arms if search == EXHAUSTIVE else _growth(known, arms)
        return Timing(
            search, arms, last.p50_s * growth, last.p99_s * growth, last.per_s / growth, True
        )

    def exhaustive_up_to(self, bar_s: float) -> int:
        """Return the number of arms whose exhaustive scan still meets a bar."""
        known = self._of(EXHAUSTIVE)
        nearest = next((t for t in known if t.p99_s > bar_s), known[-1])
        return int(bar_s * nearest.arms / nearest.p99_s)

    def _of(self, search: str) -> list[Timing]:
        """Return the timings of a search, from few arms to many."""
        return sorted((t for t in self.timings if t.search == search), key=lambda t: t.arms)


def _growth(known: Sequence[Timing], arms: int) -> float:
    """Return how much longer a search takes, if each tenfold of arms adds the same factor."""
    first, last = known[0], known[-1]
    if first.arms == last.arms:
        return 1.0
    slope = np.log(last.p50_s / first.p50_s) / np.log(last.arms / first.arms)
    return float((arms / last.arms) ** max(0.0, slope))


# -- measuring


def measure(request: PlanRequest, *, seconds: float, tick: Tick) -> Measurements:
    """Time compiled searches over random arms of this shape, and how long an index takes."""
    timings: list[Timing] = []
    for size in sizes_for(request, free_memory()):
        tick(f"{size:,} random arms")
        policy = untrained(size, request.dim, hidden=request.hidden)
        searches: tuple[Search, ...] = (Exhaustive(), policy.search, lighter(policy.search))
        for name, search in zip(SEARCHES, searches, strict=True):
            frozen = policy.frozen(search)
            tick(f"{size:,} arms: {name}")
            timings.append(timing_of(frozen, name, request.dim, seconds=seconds))
    tick("building partitions")
    built = min(request.arms, _BUILT)
    vectors = policy.policy.arms.all().points[0].numpy()[:built]
    return Measurements(
        timings=tuple(timings),
        bytes_per_arm=frozen.bytes_per_arm,
        build_s_per_arm=build_seconds(vectors) / built,
        cores=cores(),
        memory=free_memory(),
    )


def sizes_for(request: PlanRequest, memory: int) -> list[int]:
    """Return the numbers of arms to measure at: a few, and as many as time and memory let."""
    most = min(_MOST_NUMBERS // request.dim, memory // _BYTES_WHILE_MEASURED)
    return sorted({min(request.arms, _FEW), min(request.arms, max(_FEW, most))})


def lighter(search: GeneratorSearch) -> GeneratorSearch:
    """Return a search that looks once, into one partition, and hops half as often."""
    return replace(search, lookups=1, partitions=1, hops=search.hops // 2, beam=2)


def timing_of(frozen: FrozenBandit, name: str, dim: int, *, seconds: float) -> Timing:
    """Time decisions one by one, and a batch on all cores."""
    contexts = np.random.default_rng(1).standard_normal((_CONTEXTS, dim), dtype=np.float32)

    def decide(number: int) -> int:
        return frozen.select_one(contexts[number % _CONTEXTS], seed=number).row

    decide(0)
    taken = decide_for(decide, seconds, first=1)
    while len(taken) < _FEWEST:
        taken += decide_for(decide, 0.0, first=1 + len(taken))
    p50, p99 = np.percentile(taken, [50, 99])
    rate = rate_of(frozen, contexts, about=float(p50), seconds=seconds)
    return Timing(name, len(frozen), float(p50), float(p99), rate)


def rate_of(frozen: FrozenBandit, contexts: Floats, *, about: float, seconds: float) -> float:
    """Return the decisions a second of one batch on all cores that takes about so long."""
    size = int(np.clip(cores() * seconds / 2 / about, 2 * cores(), 20_000))
    batch, seeds = contexts[np.arange(size) % len(contexts)], decision_seeds(0, 0, size)
    started = time.perf_counter()
    frozen.select(batch, seeds=seeds)
    return size / (time.perf_counter() - started)


def free_memory() -> int:
    """Return the bytes of memory that are free, or 4 GiB where the system cannot say."""
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


# -- planning


@dataclass(frozen=True)
class SearchPlan:
    """A search that was found, or the nearest to it, with what it takes and why."""

    search: str
    is_met: bool
    settings: str
    expected: Timing
    exhaustive_up_to: int
    memory_bytes: int
    swap_bytes: int
    build_s: float
    reasons: tuple[str, ...]


def plan_search(request: PlanRequest, measured: Measurements) -> SearchPlan:
    """Take the most exact search whose p99 meets the bar."""
    expected = [measured.at(name, request.arms) for name in SEARCHES]
    met = [timing for timing in expected if timing.p99_s <= request.bar_s]
    chosen = met[0] if met else min(expected, key=lambda timing: timing.p99_s)
    size = int(measured.bytes_per_arm * request.arms)
    return SearchPlan(
        search=chosen.search,
        is_met=bool(met),
        settings=settings_for(chosen.search),
        expected=chosen,
        exhaustive_up_to=measured.exhaustive_up_to(request.bar_s),
        memory_bytes=size,
        swap_bytes=2 * size,
        build_s=measured.build_s_per_arm * request.arms,
        reasons=(*reasons_for(request, measured, chosen), *warnings_for(measured, chosen, size)),
    )


def settings_for(search: str) -> str:
    """Return how a bandit is made with a search."""
    if search == EXHAUSTIVE:
        return 'Bandit(..., search="exhaustive")'
    if search == GENERATOR:
        return "Bandit(...): the default search"
    light = lighter(GeneratorSearch())
    names = ("lookups", "partitions", "hops", "beam")
    shown = ", ".join(f"{name}={getattr(light, name)}" for name in names)
    return f"Bandit(..., search=GeneratorSearch({shown}))"


def reasons_for(request: PlanRequest, measured: Measurements, chosen: Timing) -> list[str]:
    """Return why this search was chosen, or what to do where none meets the bar."""
    bar = format_seconds(request.bar_s)
    most = f"about {rounded(measured.exhaustive_up_to(request.bar_s)):,} arms"
    if chosen.p99_s > request.bar_s:
        return [
            f"No search meets {bar}: the quickest takes {format_seconds(chosen.p99_s)} (p99). "
            f"Ask for that, or change something:",
            "A smaller network: --hidden 16 (in a file of settings: [network] hidden = [16]).",
            "Fewer arms a request: eligible= of up to 1,024 arms is scored in microseconds.",
            f"More cores make no decision quicker, but serve more of them ({measured.cores} give "
            f"{chosen.per_s:,.0f}/s); a GPU serves large batches.",
        ]
    if chosen.search != EXHAUSTIVE:
        reasons = [
            f"Scoring every arm meets {bar} only up to {most}.",
            "Look at q with Bandit.audit once the bandit has learned.",
        ]
        if chosen.search == LIGHT:
            reasons.append("The default search is too slow here; this one costs some q.")
        return reasons
    reasons = [f"Scoring every arm meets {bar} up to {most}, and always finds the best (q = 1)."]
    faster = measured.at(GENERATOR, request.arms).per_s / chosen.per_s
    if faster > 2:
        reasons.append(
            f"The generator search would decide {faster:.1f} times as often: take it where that "
            f"counts more than q = 1."
        )
    return reasons


def warnings_for(measured: Measurements, chosen: Timing, size: int) -> list[str]:
    """Return what to mind: times that were not measured, and memory that is not free."""
    warnings = []
    if chosen.is_extrapolated:
        warnings.append("Times are extrapolated from fewer arms: measure again with real ones.")
    if 2 * size > measured.memory:
        warnings.append(
            f"A swap needs {format_bytes(2 * size)}, and {format_bytes(measured.memory)} are free: "
            f"use a machine with more memory, or fewer arms."
        )
    return warnings


def rounded(number: int) -> int:
    """Round to two digits: a measurement is no more exact."""
    digits = max(0, len(str(number)) - 2)
    return round(number / 10**digits) * 10**digits


def format_bytes(size: int) -> str:
    """Return a size of memory as text."""
    for unit, one in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size / 2**10:.3g} KiB"


def parse_seconds(text: str) -> float:
    """Read a time such as 1ms, 500us or 0.2s."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(s|ms|us|µs|μs)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise SettingError(
            f"--p99 needs a time above 0 with its unit, s, ms or us: got {text!r}. Write 1ms "
            f"for example."
        )
    return seconds
