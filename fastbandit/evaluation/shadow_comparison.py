"""How much more a bandit would earn than the baseline beside it, from decisions that name both.

One of the two decides; the other names the arm that it would have taken. Notation: n decisions
with reward r; the arm that was taken had the propensity p; m is 1 where both named it, else 0.
As the two draw independently, w = m / p is an unbiased weight for the one that did not decide:
its value is Σ w r / Σ w (SNIPS; Swaminathan and Joachims, 2015). All that is needed are sums,
which can be stored by time and added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

ENOUGH = 100.0
"""An effective sample size below this is too small to go by."""
_BORROWED = 10.0
_Z = 1.959964


@dataclass(frozen=True)
class ComparisonSums:
    """Sums over decisions: each field is the sum of what its letters multiply to.

    `pending` counts decisions whose reward may still come: until then r is their default.
    """

    n: float = 0.0
    m: float = 0.0
    w: float = 0.0
    ww: float = 0.0
    r: float = 0.0
    mr: float = 0.0
    wr: float = 0.0
    wwr: float = 0.0
    rr: float = 0.0
    wrr: float = 0.0
    wwrr: float = 0.0
    pending: float = 0.0

    def __add__(self, other: ComparisonSums) -> ComparisonSums:
        both = zip(astuple(self), astuple(other), strict=True)
        return ComparisonSums(*(one + another for one, another in both))

    @staticmethod
    def of(matches: ArrayLike, propensities: ArrayLike, rewards: ArrayLike) -> ComparisonSums:
        """Add up a table with one row for each decision."""
        m, r = np.asarray(matches, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
        w = m / np.asarray(propensities, dtype=np.float64)
        parts = (np.ones_like(m), m, w, w * w, r, m * r, w * r, w * w * r)
        squares = (r * r, w * r * r, w * w * r * r)
        return ComparisonSums(*(float(part.sum()) for part in (*parts, *squares)))


@dataclass(frozen=True)
class Difference:
    """What the bandit earns a decision, less what the baseline does, and its 95 % interval.

    `effective` is the number of decisions that would say as much if both had always agreed.
    `weight` is the mean of w: far from 1, the propensities are wrong, or the one that decides
    never takes some arms that the other would.
    """

    bandit: float
    baseline: float
    value: float
    low: float
    high: float
    effective: float
    weight: float
    is_weight_odd: bool


def difference_of(sums: ComparisonSums, *, decided_by: str = "baseline") -> Difference | None:
    """Return the bandit's value less the baseline's; None where too few decisions match."""
    effective = sums.w**2 / sums.ww if sums.ww else 0.0
    if effective < 2.0:
        return None
    other, mean = sums.wr / sums.w, sums.r / sums.n
    half = _quantile(effective - 1.0) * sqrt(_variance(sums) * effective / (effective - 1.0))
    bandit, baseline = (other, mean) if decided_by == "baseline" else (mean, other)
    value, weight = bandit - baseline, sums.w / sums.n
    error = sqrt(max(0.0, sums.ww / sums.n - weight**2) / sums.n)
    is_odd = abs(weight - 1.0) > 3.0 * error + 1e-9
    ends = value - half, value + half
    return Difference(bandit, baseline, value, *ends, effective, weight, is_odd)


def _variance(sums: ComparisonSums) -> float:
    """Return the variance of the difference, by the delta method.

    A decision moves it by a w (r - V) - (r - mean), with a = n / Σ w. Few matches say little of
    their own spread (ten zeros in a row would have none), so they borrow that of all
    decisions, as if ten more came from there.
    """
    n, a = sums.n, sums.n / sums.w
    value, mean = sums.wr / sums.w, sums.r / n
    own = a * a * (sums.wwrr - 2.0 * value * sums.wwr + value * value * sums.ww)
    spread = max(0.0, sums.rr - n * mean * mean)
    shared = a * (sums.wrr - (mean + value) * sums.wr + mean * value * sums.w)
    part = _BORROWED / (sums.w**2 / sums.ww + _BORROWED)
    borrowed = part * (a * a * sums.ww * spread / n - own)
    return max(0.0, own + borrowed + spread - 2.0 * shared) / (n * n)


def _quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, by its expansion around the normal one.

    A service shows the interval and has no scipy.
    """
    z = _Z
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


# -- what it comes to


@dataclass(frozen=True)
class Evidence:
    """What decisions of one of the two say, in numbers and in sentences.

    `known` of the `count` decisions have a propensity; the difference is of these. `agreed` and
    `differed` are mean rewards where both named the same arm, and where not. `pending` is the
    share of decisions that may still get a reward. `warnings` are reasons not to go by it.
    """

    decided_by: str
    count: int
    known: int
    matches: int
    mean: float | None
    agreed: float | None
    differed: float | None
    pending: float
    difference: Difference | None
    summary: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def evidence_of(known: ComparisonSums, unknown: ComparisonSums, *, decided_by: str) -> Evidence:
    """Turn sums over decisions with and without a propensity into evidence."""
    both = known + unknown
    found = Evidence(
        decided_by=decided_by,
        count=round(both.n),
        known=round(known.n),
        matches=round(both.m),
        mean=_part(both.r, both.n),
        agreed=_part(both.mr, both.m),
        differed=_part(both.r - both.mr, both.n - both.m),
        pending=_part(both.pending, both.n) or 0.0,
        difference=difference_of(known, decided_by=decided_by),
    )
    found.summary.extend(_summary(found))
    found.warnings.extend(_warnings(found))
    return found


def _part(top: float, bottom: float) -> float | None:
    return top / bottom if bottom > 0.5 else None


def _summary(found: Evidence) -> Sequence[str]:
    if found.count == 0:
        return [f"No decision of the {found.decided_by} names the arms of both yet."]
    other = "bandit" if found.decided_by == "baseline" else "baseline"
    share = found.matches / found.count
    sentences = [
        f"The {found.decided_by} decided {found.count:,} times; the {other} named the same arm in "
        f"{100 * share:.1f} % of them."
    ]
    difference = found.difference
    sentences.append(_values(difference, found) if difference else _without_values(found))
    if found.pending >= 0.005:
        sentences.append(
            f"{100 * found.pending:.0f} % of these decisions may still get a reward: until then "
            f"they count as their default."
        )
    return sentences


def _values(one: Difference, found: Evidence) -> str:
    of = "" if found.known == found.count else f" (of {found.known:,} with a propensity)"
    return (
        f"A decision earns {one.bandit:.4g} with the bandit and {one.baseline:.4g} with the "
        f"baseline: a difference of {one.value:+.4g}, with 95 % confidence between {one.low:+.4g} "
        f"and {one.high:+.4g}{of}."
    )


def _without_values(found: Evidence) -> str:
    agreed, differed = (
        "nothing yet" if mean is None else f"{mean:.4g}" for mean in (found.agreed, found.differed)
    )
    why = (
        f"the propensities of the {found.decided_by} are not known"
        if found.known == 0
        else "both named the same arm too seldom"
    )
    return (
        f"The difference cannot be estimated: {why}. Where both agree a decision earns {agreed}, "
        f"where they differ {differed}."
    )


def _warnings(found: Evidence) -> Sequence[str]:
    one = found.difference
    if one is None:
        return [f"Decisions of the {found.decided_by} give no estimate of the difference."]
    warnings = []
    if one.effective < ENOUGH:
        warnings.append(
            f"Effective sample size {one.effective:,.0f} of {found.known:,}: do not trust this."
        )
    if one.is_weight_odd:
        warnings.append(
            f"The weights have the mean {one.weight:.2g} in place of 1: propensities are wrong, "
            f"or the {found.decided_by} never takes some arms that the other would. Do not trust "
            f"this."
        )
    if one.low <= 0.0 <= one.high:
        warnings.append("The interval holds 0: the two cannot be told apart yet.")
    elif one.value < 0.0:
        warnings.append("The bandit earns less than the baseline.")
    return warnings
