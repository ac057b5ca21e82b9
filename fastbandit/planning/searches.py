"""Plans which search this machine needs for so many arms and so little time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from fastbandit.cores import cores
from fastbandit.errors import SettingError
from fastbandit.noise.philox import decision_seeds
from fastbandit.planning.timing import build_seconds, decide_for
from fastbandit.planning.untrained import Untrained, untrained
from fastbandit.progress import seconds_in_words
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch

Floats = NDArray[np.float32]
Tick = Callable[[str], None]
"""Told what is done next."""

EXHAUSTIVE, GENERATOR, LIGHT = "exhaustive", "generator", "light generator"
SEARCHES = (EXHAUSTIVE, GENERATOR, LIGHT)
_FEW, _MOST_NUMBERS, _BUILT = 10_000, 16_000_000, 100_000
_BYTES_WHILE_MEASURED = 1_000  # an arm, at most
_CONTEXTS = 1_000
_FEWEST = 20
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}


@dataclass(frozen=True)
class Ask:
    """What is planned: arms, their features, hidden units, and the p99 of one decision."""

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
class Evidence:
    """What was measured on this machine."""

    timings: tuple[Timing, ...]
    bytes_per_arm: float
    build_s_per_arm: float
    cores: int
    memory: int

    def at(self, search: str, arms: int) -> Timing:
        """Give the timing of a search among so many arms, extrapolated where it must be."""
        known = sorted((t for t in self.timings if t.search == search), key=lambda t: t.arms)
        if arms <= known[-1].arms:
            return min((t for t in known if t.arms >= arms), key=lambda t: t.arms)
        last = known[-1]
        growth = arms / last.arms if search == EXHAUSTIVE else _growth(known, arms)
        return Timing(
            search, arms, last.p50_s * growth, last.p99_s * growth, last.per_s / growth, True
        )

    def exhaustive_up_to(self, bar_s: float) -> int:
        """Give the number of arms whose exhaustive scan still meets a bar."""
        known = sorted((t for t in self.timings if t.search == EXHAUSTIVE), key=lambda t: t.arms)
        nearest = next((t for t in known if t.p99_s > bar_s), known[-1])
        return int(bar_s * nearest.arms / nearest.p99_s)


def _growth(known: Sequence[Timing], arms: int) -> float:
    """Tell how much longer a search takes, if each tenfold of arms adds the same factor."""
    first, last = known[0], known[-1]
    if first.arms == last.arms:
        return 1.0
    slope = np.log(last.p50_s / first.p50_s) / np.log(last.arms / first.arms)
    return float((arms / last.arms) ** max(0.0, slope))


# -- measuring


def _silently(doing: str) -> None:
    """Tell nobody."""


def measure(ask: Ask, *, seconds: float, tick: Tick = _silently) -> Evidence:
    """Time compiled searches over random arms of this shape, and how long cells take."""
    timings: list[Timing] = []
    for size in sizes_for(ask, memory_left()):
        tick(f"{size:,} random arms")
        policy = untrained(size, ask.dim, hidden=ask.hidden)
        for name in SEARCHES:
            frozen = frozen_by(policy, name)
            tick(f"{size:,} arms: {name}")
            timings.append(timing_of(frozen, name, ask.dim, seconds=seconds))
    tick("building cells")
    built = min(ask.arms, _BUILT)
    vectors = policy.policy.arms.all().points[0].numpy()[:built]
    return Evidence(
        timings=tuple(timings),
        bytes_per_arm=frozen.bytes_per_arm,
        build_s_per_arm=build_seconds(vectors) / built,
        cores=cores(),
        memory=memory_left(),
    )


def sizes_for(ask: Ask, memory: int) -> list[int]:
    """Give the numbers of arms to measure at: a few, and as many as time and memory allow."""
    most = min(_MOST_NUMBERS // ask.dim, memory // _BYTES_WHILE_MEASURED)
    return sorted({min(ask.arms, _FEW), min(ask.arms, max(_FEW, most))})


def frozen_by(policy: Untrained, name: str) -> FrozenBandit:
    """Freeze a policy with one of the searches that are compared."""
    if name == EXHAUSTIVE:
        return policy.frozen(Exhaustive())
    return policy.frozen(policy.search if name == GENERATOR else lighter(policy.search))


def lighter(search: GeneratorSearch) -> GeneratorSearch:
    """Give a search that looks once, into one cell, and hops half as often."""
    return replace(search, lookups=1, partitions=1, hops=search.hops // 2, beam=2)


def timing_of(frozen: FrozenBandit, name: str, dim: int, *, seconds: float) -> Timing:
    """Time decisions one by one, and a batch on all cores."""
    contexts = np.random.default_rng(1).standard_normal((_CONTEXTS, dim), dtype=np.float32)
    numbers = count()

    def decide(_: int) -> int:
        number = next(numbers)
        return frozen.select_one(contexts[number % _CONTEXTS], seed=number).row

    decide(0)
    taken = decide_for(decide, seconds, first=0)
    while len(taken) < _FEWEST:
        taken += decide_for(decide, 0.0, first=0)
    p50, p99 = np.percentile(taken, [50, 99])
    rate = rate_of(frozen, contexts, about=float(p50), seconds=seconds)
    return Timing(name, len(frozen), float(p50), float(p99), rate)


def rate_of(frozen: FrozenBandit, contexts: Floats, *, about: float, seconds: float) -> float:
    """Give the decisions a second of one batch on all cores that takes about so long."""
    size = int(np.clip(cores() * seconds / 2 / about, 2 * cores(), 20_000))
    asked, seeds = contexts[np.arange(size) % len(contexts)], decision_seeds(0, 0, size)
    started = time.perf_counter()
    frozen.select(asked, seeds=seeds)
    return size / (time.perf_counter() - started)


def memory_left() -> int:
    """Give the bytes of memory that are free, or a guess where nobody can tell."""
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


# -- answering


@dataclass(frozen=True)
class Answer:
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


def answer(ask: Ask, evidence: Evidence) -> Answer:
    """Take the most exact search whose p99 meets the bar."""
    expected = [evidence.at(name, ask.arms) for name in SEARCHES]
    met = [timing for timing in expected if timing.p99_s <= ask.bar_s]
    chosen = met[0] if met else min(expected, key=lambda timing: timing.p99_s)
    size = int(evidence.bytes_per_arm * ask.arms)
    return Answer(
        search=chosen.search,
        is_met=bool(met),
        settings=settings_for(chosen.search),
        expected=chosen,
        exhaustive_up_to=evidence.exhaustive_up_to(ask.bar_s),
        memory_bytes=size,
        swap_bytes=2 * size,
        build_s=evidence.build_s_per_arm * ask.arms,
        reasons=tuple(reasons_for(ask, evidence, chosen, is_met=bool(met), size=size)),
    )


def settings_for(search: str) -> str:
    """Say how a bandit is made with a search."""
    if search == EXHAUSTIVE:
        return 'Bandit(..., search="exhaustive")'
    if search == GENERATOR:
        return "Bandit(...): the default search"
    light = lighter(GeneratorSearch())
    return (
        f"Bandit(..., search=GeneratorSearch(lookups={light.lookups}, cells={light.partitions}, "
        f"hops={light.hops}, beam={light.beam}))"
    )


def reasons_for(
    ask: Ask, evidence: Evidence, chosen: Timing, *, is_met: bool, size: int
) -> list[str]:
    """Say why this search, and what to mind."""
    bar, most = seconds_in_words(ask.bar_s), evidence.exhaustive_up_to(ask.bar_s)
    reasons = []
    if not is_met:
        reasons += unmet(ask, evidence, chosen)
    elif chosen.search == EXHAUSTIVE:
        quick = evidence.at(GENERATOR, ask.arms)
        reasons.append(
            f"Scoring every arm meets {bar} up to about {rounded(most):,} arms, and finds the "
            f"best one always (q = 1)."
        )
        if quick.per_s > 2 * chosen.per_s:
            reasons.append(
                f"The generator search would decide {quick.per_s / chosen.per_s:.1f} times as "
                f"often: take it where that counts more than q = 1."
            )
    else:
        reasons.append(f"Scoring every arm meets {bar} only up to about {rounded(most):,} arms.")
        reasons.append("Look at q with Bandit.audit once the bandit has learned.")
    if chosen.search == LIGHT and is_met:
        reasons.append("The default search is too slow here; this one costs some q.")
    if chosen.is_extrapolated:
        reasons.append("Times are extrapolated from fewer arms: measure again with real ones.")
    if 2 * size > evidence.memory:
        reasons.append(
            f"A swap needs {in_bytes(2 * size)}, and {in_bytes(evidence.memory)} are free: use "
            f"a machine with more memory, or fewer arms."
        )
    return reasons


def unmet(ask: Ask, evidence: Evidence, chosen: Timing) -> list[str]:
    """Say what to do where no search meets the bar."""
    return [
        f"No search meets {seconds_in_words(ask.bar_s)}: the quickest takes "
        f"{seconds_in_words(chosen.p99_s)} (p99). Ask for that, or change something:",
        "A smaller network: --hidden 16 (in a file of settings: [network] hidden = [16]).",
        "Fewer arms a request: eligible= of up to 1,024 arms is scored in microseconds.",
        f"More cores make no decision quicker, but serve more of them ({evidence.cores} give "
        f"{chosen.per_s:,.0f}/s); a GPU serves large batches.",
    ]


def rounded(number: int) -> int:
    """Round to two digits: a measurement is no more exact."""
    digits = max(0, len(str(number)) - 2)
    return round(number / 10**digits) * 10**digits


def in_bytes(size: int) -> str:
    """Word a size of memory."""
    for unit, one in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size / 2**10:.3g} KiB"


def seconds_of(text: str) -> float:
    """Read a time such as 1ms, 500us or 0.2s."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(s|ms|us|µs|μs)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise SettingError(
            f"--p99 needs a time above 0 with its unit, s, ms or us: got {text!r}. Write 1ms "
            f"for example."
        )
    return seconds
