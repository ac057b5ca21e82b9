"""Why an arm scored what it did: a part of the score for each feature, and what would change it.

The score is a function of features. From one in which all are typical (the mean of what was seen,
and an arm without anything of its own) to the one that was asked for, features are set one after
the other, once in their order and once in the reverse; what each adds is the mean of both steps
(Shapley values, Štrumbelj and Kononenko, "Explaining prediction models and individual
predictions", 2014, with two orders in place of many). Steps that follow one another add up to the
score, whatever the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask
from fastbandit.errors import SettingError

Floats = NDArray[np.float64]

BASE = "base"
"""The contribution of everything typical: what an arm without features is worth."""
OWN = "arm itself"
"""The contribution of what an arm has beside its features: its own effects, or its embedding."""
ARM = "arm features"
"""The contribution of all features of an arm, where they are not known one by one."""
LEVEL = 0.9
"""The probability that the interval holds."""
QUANTILE = 1.6448536269514722
"""So many standard deviations to each side hold it."""
_CHANGES = 10
_SHOWN = 12


@dataclass(frozen=True)
class Change:
    """Context features that, were they typical, would put the other of two arms ahead.

    `difference` is then the score of the arm less that of the runner-up, and `moved` how far that
    is from what it was.
    """

    features: tuple[str, ...]
    difference: float
    moved: float


@dataclass(frozen=True)
class Explanation:
    """What an arm's score for one context is made of, in units of reward.

    `expected` is the expected reward; `interval` holds it with a probability of 90 %, by the
    posterior (None where there is none). `score` is that of the decision with this `seed`, the
    expected reward where that is None. `contributions` sum to the score. `runner_up` is the best
    other arm under the same draw, whose score is higher where the arm was not the best; each of
    `changes` would put the other of the two ahead. `propensity` is None unless it was asked for.
    """

    arm: Any
    score: float
    expected: float
    interval: tuple[float, float] | None
    contributions: dict[str, float]
    runner_up: Any = None
    runner_up_score: float | None = None
    changes: tuple[Change, ...] = ()
    propensity: float | None = None
    seed: int | None = None
    version: int = 0

    @property
    def draw(self) -> float:
        """What exploration added: the score less the expected reward."""
        return self.score - self.expected

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values, the arm's id as it is."""
        found = {**asdict(self), "draw": self.draw}
        return {**found, "arm": self.arm.tolist() if hasattr(self.arm, "tolist") else self.arm}

    def __repr__(self) -> str:
        lines = [f"Explanation of arm {self.arm!r}, version {self.version}"]
        lines += [f"  {name:<12} {text}" for name, text in self._facts()]
        parts = self._largest()
        width = max(len(name) for name, _ in parts)
        lines += ["  contributions", *(f"    {n:<{width}} {value:+.4f}" for n, value in parts)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in self._facts()
        )
        parts = self._largest()
        longest = max(abs(value) for _, value in parts) or 1.0
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td style='text-align:right'>{value:+.4f}</td><td>"
            f"<div style='height:.8em;width:{120 * abs(value) / longest:.0f}px;"
            f"background:{'#3a76b4' if value >= 0 else '#c0563b'}'></div></td></tr>"
            for name, value in parts
        )
        title = f"Explanation of arm {escape(repr(self.arm))}, version {self.version}"
        return f"<p>{title}</p><table>{facts}</table><table>{rows}</table>"

    def _facts(self) -> list[tuple[str, str]]:
        between = ""
        if self.interval is not None:
            between = f" (90 %: {self.interval[0]:.4f} to {self.interval[1]:.4f})"
        facts = [("score", f"{self.score:.4f}"), ("expected", f"{self.expected:.4f}{between}")]
        facts.append(("draw", f"{self.draw:+.4f}"))
        if self.propensity is not None:
            facts.append(("propensity", f"{self.propensity:.4f}"))
        if self.runner_up_score is not None:
            facts.append(("runner-up", f"{self.runner_up!r}, {self.runner_up_score:.4f}"))
        for change in self.changes[:3]:
            names = " and ".join(change.features)
            facts.append(("would change", f"typical {names}: difference {change.difference:+.4f}"))
        return facts

    def _largest(self) -> list[tuple[str, float]]:
        """Return the base, the largest contributions, and what the others sum to."""
        parts = [(name, value) for name, value in self.contributions.items() if name != BASE]
        parts.sort(key=lambda part: -abs(part[1]))
        shown, rest = parts[:_SHOWN], parts[_SHOWN:]
        if rest:
            shown.append((f"{len(rest)} others", sum(value for _, value in rest)))
        return [(BASE, self.contributions.get(BASE, 0.0)), *shown]


class ArmScores(Protocol):
    """The scores of one arm for one context, in units of reward, some features being typical.

    `names` are those of the features of the context, then those of the arm.
    """

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def context_features(self) -> int: ...

    def __call__(self, present: Mask, *, seed: int | None) -> Floats:
        """Return a score for each row of a mask (n, names) of what is not typical."""
        ...

    def interval(self) -> tuple[float, float] | None:
        """Return what holds the expected reward with a probability of 90 %."""
        ...


@dataclass(frozen=True)
class Asked:
    """What is asked about: an arm, the seed of its decision, and of what version."""

    arm: Any
    seed: int | None
    version: int


def check_learned(version: int, *, what: str) -> None:
    """Raise unless there was an update."""
    if version == 0:
        raise SettingError(
            f"{what} needs a bandit that has learned something: got one without any update. "
            f"Call update() first."
        )


def explain(
    asked: Asked,
    mine: ArmScores,
    *,
    runner_up: Any = None,
    others: ArmScores | None = None,
    propensity: float | None = None,
) -> Explanation:
    """Explain the score of an arm beside that of the runner-up, whose scores are `others`."""
    names, seed = unique_names(mine.names, mine.context_features), asked.seed
    count, features = len(names), mine.context_features
    ordered = np.tri(count, dtype=np.bool_)  # row i has the groups up to i
    present = np.vstack(
        [np.zeros((1, count), np.bool_), ordered, ordered.T[1:][::-1], _without(features, count)]
    )
    scores = mine(present, seed=seed)
    forward, first = scores[: count + 1], count + 1
    backward = np.r_[scores[0], scores[first : first + count - 1], scores[count]]
    parts = (np.diff(forward) + np.diff(backward)[::-1]) / 2
    score = float(scores[count])
    is_quiet = seed is None
    expected = score if is_quiet else float(mine(np.ones((1, count), np.bool_), seed=None)[0])
    other_score, changes = None, tuple[Change, ...]()
    if others is not None:
        left = np.r_[scores[count], scores[len(scores) - features :]]
        found = others(_without_each(features, len(others.names)), seed=seed)
        other_score = float(found[0])
        changes = _changes(names, (mine, others), left - found, seed=seed)
    return Explanation(
        arm=asked.arm,
        score=score,
        expected=expected,
        interval=mine.interval(),
        contributions={BASE: float(scores[0]), **dict(zip(names, parts.tolist(), strict=True))},
        runner_up=runner_up,
        runner_up_score=other_score,
        changes=changes,
        propensity=propensity,
        seed=seed,
        version=asked.version,
    )


def unique_names(names: Sequence[str], context_features: int) -> list[str]:
    """Return the names with those that stand for something else already told apart."""
    found: list[str] = []
    for number, name in enumerate(names):
        is_taken = name in found or name == BASE or (name == OWN and number < context_features)
        whose = "context" if number < context_features else "arm"
        found.append(f"{whose}: {name}" if is_taken else name)
    return found


def between(low: float, high: float) -> tuple[float, float]:
    """Return two ends in their order."""
    return (low, high) if low <= high else (high, low)


def middle_of(scores: Floats) -> tuple[float, float]:
    """Return what holds so many of some draws as an interval should."""
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def _without(features: int, count: int) -> Mask:
    """Return a mask for each context feature, in which that one is typical."""
    return ~np.eye(features, count, dtype=np.bool_)


def _without_each(features: int, count: int) -> Mask:
    return np.vstack([np.ones((1, count), np.bool_), _without(features, count)])


def _changes(
    names: Sequence[str],
    both: tuple[ArmScores, ArmScores],
    differences: Floats,
    *,
    seed: int | None,
) -> tuple[Change, ...]:
    """Return which single features decide between two arms; if none does, the fewest together.

    `differences` are with all features, then without each.
    """
    now, without = float(differences[0]), differences[1:]
    towards = (without - now) * (-1.0 if now >= 0 else 1.0)
    order = np.argsort(-towards, kind="stable")
    order = order[towards[order] > abs(now)][:_CHANGES]
    if len(order):
        return tuple(_change((names[n],), float(without[n]), now) for n in order)
    order = np.argsort(-towards, kind="stable")
    order = order[towards[order] > 0]
    if len(order) < 2:
        return ()
    left = [_together(scores, order, seed=seed) for scores in both]
    after = left[0] - left[1]
    is_other = after < 0 if now >= 0 else after > 0
    if not is_other.any():
        return ()
    last = int(np.argmax(is_other))
    together = tuple(names[n] for n in order[: last + 1])
    return (_change(together, float(after[last]), now),)


def _change(features: tuple[str, ...], difference: float, before: float) -> Change:
    return Change(features, difference, difference - before)


def _together(scores: ArmScores, order: NDArray[np.int64], *, seed: int | None) -> Floats:
    """Return the scores as one feature after the other is set to what is typical."""
    present = np.ones((len(order), len(scores.names)), np.bool_)
    for number, feature in enumerate(order):
        present[number:, feature] = False
    return scores(present, seed=seed)
