"""Logs of Vowpal Wabbit in DSJSON, read as contexts, arms, rewards and propensities.

The other way is `fastbandit export --format dsjson`. A cost becomes a reward of the other sign.
Lines without the outcome of one action are left out, and counted by reason.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, InputError
from fastbandit.progress import Progress, silent

Floats = NDArray[np.float32]
Source = str | Path | Iterable[str | bytes]

NO_CONTEXT, NO_LABEL, NO_LEARNING = "no context", "no label", "marked not to be learned"
SLOTS, NO_ACTIONS = "several slots", "no list of actions"
_MOST_COLUMNS = 4_096
_REPORT_EVERY = 5_000


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
        fields = _parsed(line, where)
        reason = _why_not(fields, where)
        if reason:
            left_out[reason] += 1
            continue
        decision = _decision(fields, where, id_of)
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
        lines, end = _lines_of(source, progress), f" of {source}"
    else:
        lines, end = source, ""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"line {number}{end}", line


def _lines_of(source: str | Path, progress: Progress) -> Iterator[bytes]:
    path = Path(source)
    try:
        with path.open("rb") as file:
            opened = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            size = path.stat().st_size
            for number, line in enumerate(opened):
                if number % _REPORT_EVERY == 0:
                    progress(file.tell(), size, "reading")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"A log of DSJSON needs a file that can be read: {source} cannot ({error}). Name "
            f"another."
        ) from error


def _parsed(line: str | bytes, where: str) -> dict[str, Any]:
    with suppress(ValueError):
        fields = json.loads(line)
        if isinstance(fields, dict):
            return fields
    raise DataError(
        f"A log of DSJSON needs a JSON object in each line: got {line[:40]!r} in {where}. "
        f"Drop that line, or read another file."
    )


def _why_not(fields: Mapping[str, Any], where: str) -> str:
    """Say why a line is no decision with its outcome; nothing where it is."""
    context = fields.get("c")
    if not isinstance(context, Mapping):
        if "arms" in fields:
            raise DataError(
                f"A log of DSJSON needs the context in 'c': got {where}, of `fastbandit export "
                f"--format jsonl`. Export with --format dsjson or parquet."
            )
        return NO_CONTEXT
    if "_outcomes" in fields or "_slots" in context:
        return SLOTS
    if fields.get("_skipLearn"):
        return NO_LEARNING
    if fields.get("_label_cost") is None and fields.get("_label_probability") is None:
        return NO_LABEL
    return "" if "_multi" in context else NO_ACTIONS


# -- decisions


@dataclass(frozen=True)
class _Decision:
    context: dict[str, Any]
    actions: list[Mapping[str, Any]]
    names: list[str]
    offered: list[Any]
    taken: int
    cost: float
    propensity: float


def _decision(fields: Mapping[str, Any], where: str, id_of: Callable[[str], Any]) -> _Decision:
    context = dict(fields["c"])
    actions = _actions(context.pop("_multi"), where)
    names = [_name(action) for action in actions]
    taken, cost = _taken(fields, len(actions), where), _number(fields, "_label_cost", where)
    propensity = _number(fields, "_label_probability", where)
    if not (math.isfinite(cost) and 0 < propensity <= 1):
        raise InputError(
            f"A label needs a finite _label_cost and a _label_probability above 0 and at most 1: "
            f"got cost {cost!r} and probability {propensity!r} in {where}. Drop that line."
        )
    propensity = min(1.0, propensity + _of_its_copies(fields, names, taken))
    offered = [_id(name, where, id_of) for name in names]
    return _Decision(context, actions, names, offered, taken, cost, propensity)


def _actions(listed: Any, where: str) -> list[Mapping[str, Any]]:
    if isinstance(listed, list) and all(isinstance(action, Mapping) for action in listed):
        return listed
    raise DataError(
        f"A decision in DSJSON needs a list of actions in c._multi: got {str(listed)[:40]!r} in "
        f"{where}. Drop that line."
    )


def _taken(fields: Mapping[str, Any], actions: int, where: str) -> int:
    has_index = "_labelIndex" in fields
    field = "_labelIndex" if has_index else "_label_Action"
    number = _number(fields, field, where) - (0 if has_index else 1)
    if number == int(number) and 0 <= number < actions:
        return int(number)
    raise DataError(
        f"A label needs to be of one of the {actions} actions in c._multi: got {field} "
        f"{fields[field]!r} in {where}, action {number + 1:g} of {actions}. Drop that line."
    )


def _number(fields: Mapping[str, Any], field: str, where: str) -> float:
    value = fields.get(field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise DataError(
        f"A decision in DSJSON needs a number in {field!r}: got {value!r} in {where}. Log "
        f"how likely the chosen action was and what it cost, or drop that line."
    )


def _of_its_copies(fields: Mapping[str, Any], names: list[str], taken: int) -> float:
    """Return how likely the same arm was as another action, where it was offered more than once."""
    if names.count(names[taken]) == 1:
        return 0.0
    probabilities = dict(zip(fields.get("a") or (), fields.get("p") or (), strict=False))
    copies = (number for number, name in enumerate(names) if name == names[taken])
    return float(sum(probabilities.get(number + 1, 0.0) for number in copies if number != taken))


def _name(action: Mapping[str, Any]) -> str:
    """Return the text that an action is known by."""
    if "_tag" in action:
        return str(action["_tag"])
    for part in (action, *action.values()):
        if isinstance(part, Mapping) and isinstance(part.get("id"), str | int):
            return str(part["id"])
    return json.dumps(action, sort_keys=True)


def _id(name: str, where: str, id_of: Callable[[str], Any]) -> Any:
    try:
        return id_of(name)
    except ValueError as error:
        raise InputError(
            f"The function id_of needs to take the name of every action: got {name!r} in "
            f"{where} ({error}). Leave it out, and ids are texts."
        ) from error


# -- features


class _Arms:
    """All arms that were offered, with each namespace as it was last sent."""

    def __init__(self) -> None:
        self.features: dict[Any, dict[str, Any]] = {}
        self._names: dict[Any, str] = {}

    def add(self, decision: _Decision) -> None:
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
