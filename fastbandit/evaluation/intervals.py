"""Intervals around estimates: bootstrap, normal (delta method), empirical Bernstein."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.evaluation.estimators import Terms, stacked
from fastbandit.evaluation.rounds import Floats
from fastbandit.features.kinds import is_size
from fastbandit.progress import Progress, silent

INTERVALS = ("bootstrap", "normal", "bernstein")
Interval = tuple[float, float]
_MOST_BLOCKS = 10_000
_AT_ONCE = 2**21


def intervals_of(
    terms: list[Terms],
    kind: str,
    *,
    confidence: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Interval]:
    """Give an interval for each estimate; (NaN, NaN) where nothing can be said."""
    known_name("interval", kind, INTERVALS)
    check_confidence(confidence)
    if kind == "bootstrap":
        drawn = bootstrap(terms, resamples=resamples, seed=seed, progress=progress)
        return [_percentiles(column, confidence) for column in drawn.T]
    of_one = normal_interval if kind == "normal" else bernstein_interval
    return [of_one(one, confidence=confidence) for one in terms]


def check_confidence(confidence: float) -> None:
    """Raise unless a confidence lies between 0 and 1."""
    if isinstance(confidence, bool) or not 0.0 < confidence < 1.0:
        hint = f"Use {confidence / 100:g}." if 1.0 < confidence < 100.0 else "Use 0.95."
        raise SettingError(
            f"The confidence needs to be a probability between 0 and 1: got {confidence!r}. {hint}"
        )


def bootstrap(
    terms: list[Terms], *, resamples: int, seed: int, progress: Progress = silent
) -> NDArray[np.float64]:
    """Estimate anew on rounds drawn with replacement, the same for all estimates: (R, E).

    Efron (1979). Of more than 10,000 rounds, blocks of neighbours are drawn instead.
    """
    if not is_size(resamples):
        raise SettingError(
            f"The number of resamples needs to be at least 1: got {resamples!r}. Use 1000."
        )
    tops, bottoms = (_in_blocks(columns) for columns in stacked(terms))
    blocks, rng = len(tops), np.random.default_rng(seed)
    found = np.empty((resamples, len(terms)))
    step = max(1, _AT_ONCE // blocks)
    for start in range(0, resamples, step):
        progress(start, resamples, "bootstrap")
        part = found[start : start + step]
        lots = rng.integers(0, blocks, size=(len(part), blocks))
        lots += blocks * np.arange(len(part))[:, None]
        counts = np.bincount(lots.reshape(-1), minlength=lots.size).reshape(lots.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            part[:] = (counts @ tops) / (counts @ bottoms)
    return found


def normal_interval(terms: Terms, *, confidence: float = 0.95) -> Interval:
    """Give V ± z s / √n, with s the deviation of what each round adds (delta method)."""
    added = terms.influence
    if len(added) < 2:
        return float("nan"), float("nan")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    half = z * float(added.std(ddof=1)) / float(np.sqrt(len(added)))
    return terms.value - half, terms.value + half


def bernstein_interval(terms: Terms, *, confidence: float = 0.95) -> Interval:
    """Give V ± (√(2 s² ln(4/δ) / n) + 7 R ln(4/δ) / (3 (n - 1))), with δ = 1 - confidence.

    Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009). R is
    the range of what rounds add, as seen: a bound for terms that are known to lie within it, as
    those of clipped weights do, and of SNIPS only in the limit.
    """
    added = terms.influence
    if len(added) < 2:
        return float("nan"), float("nan")
    count, log = len(added), float(np.log(4.0 / (1.0 - confidence)))
    spread = float(np.sqrt(2.0 * added.var(ddof=1) * log / count))
    half = spread + 7.0 * float(np.ptp(added)) * log / (3.0 * (count - 1))
    return terms.value - half, terms.value + half


def _percentiles(drawn: Floats, confidence: float) -> Interval:
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
