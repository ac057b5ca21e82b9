"""Logs of Vowpal Wabbit in DSJSON, read as contexts, arms, rewards and propensities.

The other way is `fastbandit export --format dsjson`. A cost becomes a reward of the other sign.
Lines without the outcome of one action are left out, and counted by reason.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.dsjson_lines import (
    DsjsonDecision,
    decision_of,
    lines_of,
    parse_line,
    why_not,
)
from fastbandit.errors import InputError
from fastbandit.progress import Progress, silent

Floats = NDArray[np.float32]
Source = str | Path | Iterable[str | bytes]

_MOST_COLUMNS = 4_096


@dataclass(frozen=True)
class DsjsonLog:
    """What a log says, one row for each decision.

    `arms` are the ids of the actions taken, `eligible` those of all that were offered, and
    `propensities` how likely the action taken was. `columns` name the features of contexts: give
    them to the next reading, and its contexts have the same columns. `features` holds a row for
    each arm of `ids`; it has no columns where the log has none. `left_out` counts lines.
    """

    contexts: Floats
    arms: list[Any]
    rewards: NDArray[np.float64]
    propensities: NDArray[np.float64]
    eligible: list[list[Any]]
    columns: tuple[str, ...]
    ids: list[Any]
    features: Floats
    feature_columns: tuple[str, ...]
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.arms)


def read_dsjson(
    source: Source,
    *,
    columns: Iterable[str] | None = None,
    id_of: Callable[[str], Any] = str,
    progress: Progress = silent,
) -> DsjsonLog:
    """Read a file, gzipped or not, or lines of DSJSON.

    Namespaces become columns, in the order of their names: numbers as they are, strings and
    truths as 0 or 1 for each value. An arm's name is the tag of its action, else its `id`, else
    its features as JSON; `id_of` turns that text into the id (`int`, where ids are numbers).
    """
    contexts, arms, left_out = _Table(columns), _Arms(), Counter[str]()
    taken, eligible = [], []
    numbers = array("d")
    for where, line in _lines(source, progress):
        fields = parse_line(line, where)
        reason = why_not(fields, where)
        if reason:
            left_out[reason] += 1
            continue
        decision = decision_of(fields, where, id_of)
        contexts.add(decision.context)
        arms.add(decision)
        taken.append(decision.offered[decision.taken])
        eligible.append(decision.offered)
        numbers.extend((-decision.cost, decision.propensity))
    named, values = contexts.named()
    feature_columns, features = arms.table().named()
    outcomes = np.array(numbers).reshape(-1, 2)
    return DsjsonLog(
        contexts=values,
        arms=taken,
        rewards=outcomes[:, 0],
        propensities=outcomes[:, 1],
        eligible=eligible,
        columns=named,
        ids=list(arms.features),
        features=features,
        feature_columns=feature_columns,
        left_out=dict(left_out),
    )


# -- lines


def _lines(source: Source, progress: Progress) -> Iterator[tuple[str, str | bytes]]:
    """Return lines, each with where it stands."""
    lines: Iterable[str | bytes]
    if isinstance(source, str | Path):
        lines, end = lines_of(source, progress), f" of {source}"
    else:
        lines, end = source, ""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"line {number}{end}", line


# -- features


class _Arms:
    """All arms that were offered, with each namespace as it was last sent."""

    def __init__(self) -> None:
        self.features: dict[Any, dict[str, Any]] = {}
        self._names: dict[Any, str] = {}

    def add(self, decision: DsjsonDecision) -> None:
        named = zip(decision.offered, decision.names, decision.actions, strict=True)
        for id, name, action in named:
            self._names[id] = name
            self.features.setdefault(id, {}).update(action)

    def table(self) -> _Table:
        table = _Table()
        for id, fields in self.features.items():
            table.add(fields, but=self._names[id])
        return table


class _Table:
    """Rows of named numbers, held as three columns until all names are known."""

    def __init__(self, columns: Iterable[str] | None = None) -> None:
        self._is_growing = columns is None
        self._known = {name: number for number, name in enumerate(columns or ())}
        self._rows, self._columns, self._values = array("q"), array("q"), array("d")
        self._count = 0

    def add(self, fields: Mapping[str, Any], *, but: str | None = None) -> None:
        """Add a row of features, less an id that is the arm's name already."""
        known = self._known
        for name, value in _flat(fields, "", but):
            column = known.setdefault(name, len(known)) if self._is_growing else known.get(name)
            if column is not None:
                self._rows.append(self._count)
                self._columns.append(column)
                self._values.append(value)
        self._count += 1
        if self._is_growing and len(known) > _MOST_COLUMNS:
            raise InputError(
                f"Features in DSJSON become at most {_MOST_COLUMNS:,} columns: got more, such as "
                f"{next(reversed(known))!r}. Give columns= with those that matter."
            )

    def named(self) -> tuple[tuple[str, ...], Floats]:
        """Return the names of columns, in order, and the rows; what one lacks is 0."""
        names = sorted(self._known, key=_in_order) if self._is_growing else list(self._known)
        order = np.empty(len(names), dtype=np.int64)
        order[[self._known[name] for name in names]] = np.arange(len(names))
        table = np.zeros((self._count, len(names)), dtype=np.float32)
        table[np.array(self._rows), order[np.array(self._columns)]] = np.array(self._values)
        return tuple(names), table


def _flat(fields: Mapping[str, Any], before: str, but: str | None) -> Iterator[tuple[str, float]]:
    """Return names with numbers, as the JSON reader of Vowpal Wabbit does."""
    for key, value in fields.items():
        name = f"{before}{key}"
        if key == "_text" and isinstance(value, str):
            yield from ((f"{before}{token}", 1.0) for token in dict.fromkeys(value.split()))
        elif key.startswith("_") or (key == "id" and str(value) == but):
            continue
        elif isinstance(value, bool) or value is None:
            yield from [(name, 1.0)] * bool(value)
        elif isinstance(value, int | float):
            yield name, float(value)
        elif isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{name}.", but)
        else:
            parts = {str(number): part for number, part in enumerate(value)}
            yield from _flat(parts, f"{name}.", but)


def _in_order(name: str) -> list[tuple[str, int]]:
    """Let numbers within names count as numbers: "x.9" comes before "x.10"."""
    pieces = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(digits) if digits else -1) for text, digits in pieces]
