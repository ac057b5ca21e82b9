"""Intervals around estimates: bootstrap, normal (delta method), empirical Bernstein."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.evaluation.estimators import Contributions
from fastbandit.evaluation.rounds import Floats
from fastbandit.features.kinds import is_size
from fastbandit.progress import Progress, silent

INTERVALS = ("bootstrap", "normal", "bernstein")
Ends = tuple[float, float]
_MOST_BLOCKS = 10_000
_AT_ONCE = 2**21


@dataclass(frozen=True)
class Interval:
    """Which interval stands around an estimate: `resamples` are those of the bootstrap."""

    kind: str = "bootstrap"
    confidence: float = 0.95
    resamples: int = 1_000

    def __post_init__(self) -> None:
        known_name("interval", self.kind, INTERVALS)
        if isinstance(self.confidence, bool) or not 0.0 < self.confidence < 1.0:
            is_percent = 1.0 < self.confidence < 100.0
            raise SettingError(
                f"The confidence needs to be a probability between 0 and 1: got "
                f"{self.confidence!r}. Use {self.confidence / 100 if is_percent else 0.95:g}."
            )
        if not is_size(self.resamples):
            raise SettingError(
                f"The number of resamples needs to be at least 1: got {self.resamples!r}. Use 1000."
            )


def intervals_of(
    contributions: Sequence[Contributions],
    interval: Interval,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Ends]:
    """Return an interval for each estimate; (NaN, NaN) where nothing can be said."""
    confidence = interval.confidence
    if interval.kind == "bootstrap":
        drawn = bootstrap(contributions, resamples=interval.resamples, seed=seed, progress=progress)
        return [_percentiles(column, confidence) for column in drawn.T]
    if len(contributions[0].tops) < 2:
        return [(float("nan"), float("nan"))] * len(contributions)
    of_one = normal_interval if interval.kind == "normal" else bernstein_interval
    return [of_one(one, confidence=confidence) for one in contributions]


def bootstrap(
    contributions: Sequence[Contributions],
    *,
    resamples: int,
    seed: int,
    progress: Progress = silent,
) -> NDArray[np.float64]:
    """Estimate anew on rounds drawn with replacement, the same for all estimates: (R, E).

    Efron (1979). Of more than 10,000 rounds, blocks of neighbours are drawn instead.
    """
    tops = _in_blocks(np.column_stack([one.tops for one in contributions]))
    ones = np.ones(len(contributions[0].tops))
    below = [ones if one.bottoms is None else one.bottoms for one in contributions]
    bottoms = _in_blocks(np.column_stack(below))
    blocks, rng = len(tops), np.random.default_rng(seed)
    found = np.empty((resamples, len(contributions)))
    step = max(1, _AT_ONCE // blocks)
    for start in range(0, resamples, step):
        progress(start, resamples, "bootstrap")
        part = found[start : start + step]
        drawn = rng.integers(0, blocks, size=(len(part), blocks))
        drawn += blocks * np.arange(len(part))[:, None]
        counts = np.bincount(drawn.reshape(-1), minlength=drawn.size).reshape(drawn.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            part[:] = (counts @ tops) / (counts @ bottoms)
    return found


def normal_interval(terms: Contributions, *, confidence: float = 0.95) -> Ends:
    """Return V ± z s / √n, with s the deviation of what each round adds (delta method)."""
    added = terms.influence
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    half = z * float(added.std(ddof=1)) / float(np.sqrt(len(added)))
    return terms.value - half, terms.value + half


def bernstein_interval(terms: Contributions, *, confidence: float = 0.95) -> Ends:
    """Return V ± (√(2 s² ln(4/δ) / n) + 7 R ln(4/δ) / (3 (n - 1))), with δ = 1 - confidence.

    Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009). R is
    the range of what rounds add, as seen: a bound for terms that are known to lie within it, as
    those of clipped weights do, and of SNIPS only in the limit.
    """
    added = terms.influence
    count, log = len(added), float(np.log(4.0 / (1.0 - confidence)))
    spread = float(np.sqrt(2.0 * added.var(ddof=1) * log / count))
    half = spread + 7.0 * float(np.ptp(added)) * log / (3.0 * (count - 1))
    return terms.value - half, terms.value + half


def _percentiles(drawn: Floats, confidence: float) -> Ends:
    known = drawn[np.isfinite(drawn)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.5 - confidence / 2.0, 0.5 + confidence / 2.0])
    return float(low), float(high)


def _in_blocks(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up neighbours where there are many rounds: sums of even parts of them."""
    if len(columns) <= _MOST_BLOCKS:
        return columns
    starts = np.arange(_MOST_BLOCKS) * len(columns) // _MOST_BLOCKS
    return np.asarray(np.add.reduceat(columns, starts, axis=0))
