"""Evaluation: estimates with intervals and diagnostics, in numbers, in sentences, as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from math import isfinite
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.evaluation.diagnostics import Diagnostics
from fastbandit.types import html_table

Table = list[tuple[str, ...]]
HEADINGS = ("estimator", "estimate", "low", "high", "beside the log")
_TOO_FEW = (
    "too few rounds speak for this policy: the direct method and MIPS rest on their assumptions "
    "alone; let the logging policy explore more, or test a policy nearer to it"
)


@dataclass(frozen=True)
class Estimate:
    """What a policy would earn a round, with the ends of its interval; NaN: nothing is known.

    `title` is what tables call its estimator.
    """

    name: str
    value: float
    low: float
    high: float
    title: str = ""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What a policy would have earned on a log that another one made.

    `logged` is what the logging policy earned. `notes` say what was left out and supposed.
    """

    rounds: int
    arms: int
    estimates: tuple[Estimate, ...]
    logged: Estimate
    diagnostics: Diagnostics
    interval: str
    confidence: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        known_name("estimator", name, tuple(one.name for one in self.estimates))
        return next(one for one in self.estimates if one.name == name)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to make of it, a sentence each."""
        return (*self.diagnostics.sentences, self._advice(), *self.notes)

    def table(self) -> Table:
        """Return a row for each estimator, and one for the log itself."""
        rows = [self._row(one.title or one.name, one) for one in self.estimates]
        return [*rows, self._row("the log's own policy", self.logged)]

    def to_json(self) -> dict[str, Any]:
        """Return all of it as values that JSON knows; null for NaN."""
        report = asdict(self)
        report["estimates"] = [_known(asdict(one)) for one in self.estimates]
        report["diagnostics"]["is_trusted"] = self.diagnostics.is_trusted
        return _known({**report, "words": list(self.sentences)})

    def __str__(self) -> str:
        rows = [HEADINGS, *self.table()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        lines = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", *self.sentences])

    def __repr__(self) -> str:
        said = "; ".join(f"{row[0]} {row[1]} ({row[2]} to {row[3]})" for row in self.table())
        return f"Evaluation({self.rounds:,} rounds, {self.arms:,} arms: {said})"

    def _repr_html_(self) -> str:
        title = f"Evaluation of {self.rounds:,} rounds, {self.arms:,} arms"
        said = "".join(f"<p>{escape(one)}</p>" for one in self.sentences)
        return html_table(title, self.table(), HEADINGS) + said

    def _row(self, name: str, one: Estimate) -> tuple[str, ...]:
        gain = one.value / self.logged.value - 1.0 if self.logged.value else float("nan")
        beside = f"{gain:+.1%}" if isfinite(gain) and one is not self.logged else "–"
        return (name, *(_shown(number) for number in (one.value, one.low, one.high)), beside)

    def _advice(self) -> str:
        if self.diagnostics.is_trusted:
            return "SNIPS and the doubly robust estimate are the ones to go by; they should agree"
        if self.diagnostics.is_few:
            return _TOO_FEW
        return (
            "mend the propensities or the policy's probabilities first: IPS and the doubly robust "
            "estimate are as wrong as the weights are"
        )


def _shown(number: float) -> str:
    return f"{number:.5g}" if isfinite(number) else "–"


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in values.items()
    }
