"""A check that decides for real: a frozen bandit beside a scan of all arms in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from fastbandit.doctor.finding import Finding, fine

ARMS = 50_000
_CONTEXTS = 32
_ROUNDS = 3
_RATIO, _CHOOSE_SECONDS = 10.0, 500e-6
_SHARE = 0.95
"""As it should be: so many times as fast as a scan, so quick, and so near the best score."""


@dataclass(frozen=True)
class Speed:
    """Median seconds of one decision, compiled and by a scan, and how good the choices were.

    `share` is that of the way from the mean score to the best one.
    """

    first_s: float
    choose_s: float
    scan_s: float
    share: float

    @property
    def ratio(self) -> float:
        return self.scan_s / self.choose_s


def measure_speed(*, arms: int = ARMS) -> Speed:
    """Decide for some contexts in both ways."""
    from fastbandit.doctor.made_up import DIM, draw_network, made_up_bandit

    rng = np.random.default_rng(0)
    network, vectors = draw_network(rng), rng.standard_normal((arms, DIM), np.float32)
    contexts = rng.standard_normal((_CONTEXTS, DIM), np.float32)
    frozen = made_up_bandit(network, vectors)
    started = perf_counter()
    frozen.warm()
    first_s = perf_counter() - started
    scan_s, shares = [], []
    for context in contexts:
        row, started = frozen.choose(context).row, perf_counter()
        scan = network.scores(context, vectors)
        scan_s.append(perf_counter() - started)
        shares.append((scan[row] - scan.mean()) / (scan.max() - scan.mean()))
    choose_s = []
    for context in np.tile(contexts, (_ROUNDS, 1)):  # apart from scans, which empty the caches
        started = perf_counter()
        frozen.choose(context)
        choose_s.append(perf_counter() - started)
    return Speed(first_s, median(choose_s), median(scan_s), float(np.mean(shares)))


def check_speed() -> Finding:
    """Measure, and say whether that is as it should be."""
    return finding_for_speed(measure_speed())


def finding_for_speed(speed: Speed) -> Finding:
    """Say whether decisions are as quick, and as good, as they should be."""
    found = (
        f"{1e6 * speed.choose_s:.0f} µs to choose among {ARMS:,} arms, {speed.ratio:.0f} times as "
        f"fast as a scan in NumPy ({1e3 * speed.scan_s:.1f} ms), {speed.share:.3f} of the best"
    )
    if speed.share < _SHARE:
        return Finding(
            "decisions",
            "broken",
            found,
            f"Choices should reach {_SHARE} of the best score: compiled code went wrong.",
            "Remove what was compiled (the folder of the check above), and check again.",
        )
    if speed.choose_s > _CHOOSE_SECONDS or speed.ratio < _RATIO:
        return Finding(
            "decisions",
            "slow",
            found,
            f"A choice should take at most {1e6 * _CHOOSE_SECONDS:.0f} µs, and a scan {_RATIO:.0f} "
            f"times as long.",
            "See the checks of the processor, numba and the cores; try again on a quiet machine.",
        )
    return fine("decisions", found)
