"""Logs of Vowpal Wabbit in DSJSON, read as contexts, arms, rewards and propensities.

The other way is `fastbandit export --format dsjson`. A cost becomes a reward of the other sign.
Lines that tell no outcome of one action are left out, and counted by reason.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, InputError
from fastbandit.progress import Progress, silent

Floats = NDArray[np.float32]
Named = dict[str, float]

NO_LABEL, NO_LEARNING, SLOTS = "no label", "marked not to be learned", "several slots"
_MOST_COLUMNS = 10_000
_TOLD_EVERY = 5_000


@dataclass(frozen=True)
class DsjsonLog:
    """What a log says, one row for each decision.

    `arms` are the ids of the actions taken, `eligible` those of all that were offered, and
    `propensities` how likely the action taken was. `columns` name the features of contexts: give
    them to the next reading, and its contexts have the same columns. `features` holds a row for
    each arm of `ids`; it has no columns where the log tells none.
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
    source: str | Path | Iterable[str | bytes],
    *,
    columns: Iterable[str] | None = None,
    id_of: Callable[[str], Any] = str,
    progress: Progress = silent,
) -> DsjsonLog:
    """Read a file, or lines, of DSJSON.

    Namespaces become columns: numbers as they are, strings and truths as 0 or 1 for each value.
    An arm's id is the tag of its action, else its features as JSON; `id_of` turns that text into
    the id (`int`, where ids are numbers).
    """
    decisions, left_out = [], Counter[str]()
    for number, line in enumerate(_lines(source), start=1):
        told = _parsed(line, number)
        reason = _why_not(told)
        if reason:
            left_out[reason] += 1
        else:
            decisions.append(_decision(told, number, id_of))
        if number % _TOLD_EVERY == 0:
            progress(number, number, "Reading")
    contexts = [decision.context for decision in decisions]
    named, given = _columns(contexts, columns), _known_arms(decisions)
    feature_columns = _columns(list(given.values()), None)
    return DsjsonLog(
        contexts=_table(contexts, named),
        arms=[decision.arm for decision in decisions],
        rewards=np.array([decision.reward for decision in decisions]),
        propensities=np.array([decision.propensity for decision in decisions]),
        eligible=[decision.offered for decision in decisions],
        columns=named,
        ids=list(given),
        features=_table(list(given.values()), feature_columns),
        feature_columns=feature_columns,
        left_out=dict(left_out),
    )


@dataclass(frozen=True)
class _Decision:
    context: Named
    arm: Any
    reward: float
    propensity: float
    offered: list[Any]
    features: list[Named]


# -- lines


def _lines(source: str | Path | Iterable[str | bytes]) -> Iterator[str | bytes]:
    if not isinstance(source, str | Path):
        yield from (line for line in source if line.strip())
        return
    try:
        with Path(source).open("rb") as file:
            yield from (line for line in file if line.strip())
    except OSError as error:
        raise DataError(
            f"A log of DSJSON needs a file that can be read: {source} cannot ({error}). Name "
            f"another."
        ) from error


def _parsed(line: str | bytes, number: int) -> dict[str, Any]:
    try:
        told = json.loads(line)
        if isinstance(told, dict):
            return told
    except ValueError:
        pass
    raise DataError(
        f"A log of DSJSON needs a JSON object in each line: got {line[:40]!r} in line {number}. "
        f"Drop that line, or read another file."
    )


def _why_not(told: Mapping[str, Any]) -> str:
    """Say why a line is no decision with its outcome; nothing where it is."""
    if "_outcomes" in told or "_slots" in told.get("c", {}):
        return SLOTS
    if told.get("_skipLearn"):
        return NO_LEARNING
    is_labelled = "_label_cost" in told and "_label_probability" in told
    return "" if is_labelled and "_multi" in told.get("c", {}) else NO_LABEL


def _decision(told: Mapping[str, Any], number: int, id_of: Callable[[str], Any]) -> _Decision:
    try:
        shared, actions = dict(told["c"]), list(told["c"]["_multi"])
        del shared["_multi"]
        taken = int(told["_labelIndex"] if "_labelIndex" in told else told["_label_Action"] - 1)
        cost, propensity = float(told["_label_cost"]), float(told["_label_probability"])
        if not 0 <= taken < len(actions):
            raise ValueError(f"action {taken + 1} of {len(actions)}")
        offered = [id_of(_name(action)) for action in actions]
        features = [_flat(_features(action)) for action in actions]
        context = _flat(shared)
    except (LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"A decision in DSJSON needs a label, a context and its actions: line {number} has "
            f"not ({type(error).__name__}: {error}). Drop that line."
        ) from error
    if not (math.isfinite(cost) and 0 < propensity <= 1):
        raise InputError(
            f"A label needs a finite cost and a probability above 0 and at most 1: got cost "
            f"{cost!r} and probability {propensity!r} in line {number}. Drop that line."
        )
    return _Decision(context, offered[taken], -cost, propensity, offered, features)


# -- features


def _name(action: Mapping[str, Any]) -> str:
    """Give the text that an action is known by."""
    if "_tag" in action:
        return str(action["_tag"])
    return json.dumps(action, sort_keys=True)


def _features(action: Mapping[str, Any]) -> dict[str, Any]:
    """Give the features of an action, less the id that an export of fastbandit puts there."""
    is_id = set(action.get("arm", ())) == {"id"} if isinstance(action.get("arm"), dict) else False
    return {key: value for key, value in action.items() if not (key == "arm" and is_id)}


def _flat(features: Mapping[str, Any], before: str = "") -> Named:
    """Turn namespaces into names with numbers, as the JSON reader of Vowpal Wabbit does."""
    flat: Named = {}
    for key, value in features.items():
        name = f"{before}{key}"
        if key.startswith("_"):
            continue
        if isinstance(value, bool) or value is None:
            flat |= {name: 1.0} if value else {}
        elif isinstance(value, int | float):
            flat[name] = float(value)
        elif isinstance(value, str):
            flat[f"{name}={value}"] = 1.0
        elif isinstance(value, Mapping):
            flat |= _flat(value, f"{name}.")
        else:
            flat |= _flat({str(place): part for place, part in enumerate(value)}, f"{name}.")
    return flat


def _columns(rows: list[Named], columns: Iterable[str] | None) -> tuple[str, ...]:
    if columns is not None:
        return tuple(columns)
    names = tuple(sorted({name for row in rows for name in row}, key=_in_order))
    if len(names) > _MOST_COLUMNS:
        raise InputError(
            f"Features in DSJSON become at most {_MOST_COLUMNS:,} columns: got {len(names):,}, "
            f"such as {names[0]!r}. Give columns= with those that matter."
        )
    return names


def _in_order(name: str) -> list[tuple[str, int]]:
    """Let numbers within names count as numbers: "x.9" comes before "x.10"."""
    pieces = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(digits) if digits else -1) for text, digits in pieces]


def _table(rows: list[Named], columns: tuple[str, ...]) -> Floats:
    """Give one row of numbers for each mapping; what it does not name is 0."""
    places = {name: place for place, name in enumerate(columns)}
    table = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name in places:
                table[number, places[name]] = value
    return table


def _known_arms(decisions: list[_Decision]) -> dict[Any, Named]:
    """Give the features of all arms that were offered, as they were last told."""
    return {
        id: features
        for decision in decisions
        for id, features in zip(decision.offered, decision.features, strict=True)
    }
