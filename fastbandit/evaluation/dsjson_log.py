"""DSJSON lines, as `fastbandit export` writes them and users of Vowpal Wabbit have them.

The shared features are the context: numbers as they are, texts as flags, lists as columns. An
arm is an action: its tag, else its `id`, else what it consists of. Costs become rewards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.experiments.datasets.files import open_text
from fastbandit.progress import Progress, silent

_MOST_FEATURES = 4_096
_BLOCK = 4_096


def read_dsjson(path: Path, *, progress: Progress = silent) -> LoggedRounds:
    """Read decisions with their labels; lines without a context (late rewards) are left out."""
    features, arms = _Vocabulary(path), _Actions()
    chosen: list[int] = []
    rewards: list[float] = []
    propensities: list[float] = []
    left_out, size = 0, path.stat().st_size
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if number % _BLOCK == 0:
                progress(min(number * max(1, len(line)), size), size, "reading")
            if not line.strip():
                continue
            event = _event(line, number, path)
            if "c" not in event or event.get("_skipLearn"):
                left_out += 1
                continue
            features.add(event["c"])
            chosen.append(arms.row_of_chosen(event, number, path))
            rewards.append(-_number(event, "_label_cost", number, path))
            propensities.append(_number(event, "_label_probability", number, path))
    if not chosen:
        raise DataError(
            f"{path} needs lines with a context and a label: found none in {left_out} lines. "
            f"Export decisions with `fastbandit export --format dsjson`."
        )
    note = (f"{left_out:,} lines without a context are left out",) * (left_out > 0)
    return LoggedRounds(
        contexts=features.matrix(),
        chosen=np.array(chosen),
        rewards=np.array(rewards),
        propensities=np.array(propensities),
        arms=len(arms.rows),
        vectors=arms.vectors(),
        ids=list(arms.rows),
        notes=(*note, "each arm of any line is taken to have been open in every line"),
    )


def _event(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise DataError(
            f"{path} needs one JSON object in each line: line {number} is none ({error}). Mend or "
            f"drop that line."
        ) from error
    if isinstance(event, dict) and "arms" in event and "c" not in event:
        raise DataError(
            f"{path} needs DSJSON lines: line {number} is one of `fastbandit export --format "
            f"jsonl`. Export with --format dsjson or parquet."
        )
    if not isinstance(event, dict):
        raise DataError(
            f"{path} needs one JSON object in each line: line {number} is {line.strip()[:60]!r}. "
            f"Mend or drop that line."
        )
    return event


def _number(event: dict[str, Any], field: str, number: int, path: Path) -> float:
    value = event.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(
            f"{path} needs a number in {field!r} of each decision: line {number} has {value!r}. "
            f"Log how likely the chosen action was and what it cost, or drop that line."
        )
    return float(value)


class _Vocabulary:
    """Names of features as columns, in the order they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: dict[str, int] = {}
        self._rows: list[list[tuple[int, float]]] = []

    def add(self, told: dict[str, Any]) -> None:
        found = _walk({k: v for k, v in told.items() if not k.startswith("_")}, "")
        row = [(self._columns.setdefault(name, len(self._columns)), v) for name, v in found]
        if len(self._columns) > _MOST_FEATURES:
            raise DataError(
                f"{self._path} needs at most {_MOST_FEATURES:,} different features of the context: "
                f"found more, such as {next(reversed(self._columns))!r}. Leave out ids, or read a "
                f"table of hashed features."
            )
        self._rows.append(row)

    def matrix(self) -> NDArray[np.float32]:
        made = np.zeros((len(self._rows), max(1, len(self._columns))), dtype=np.float32)
        for place, row in enumerate(self._rows):
            for column, value in row:
                made[place, column] += value
        return made


def _walk(told: Any, name: str) -> Iterator[tuple[str, float]]:
    """Give the features below a name: numbers, flags and texts, nested as they are."""
    if isinstance(told, dict):
        for key, value in told.items():
            if not key.startswith("_"):
                yield from _walk(value, f"{name}|{key}" if name else key)
    elif isinstance(told, list):
        for place, value in enumerate(told):
            yield from _walk(value, f"{name}[{place}]")
    elif isinstance(told, str):
        yield f"{name}={told}", 1.0
    elif isinstance(told, int | float):
        yield name, float(told)


class _Actions:
    """The arms of all lines: ids with rows, and their numbers where each has as many."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._vectors: list[list[float] | None] = []

    def row_of_chosen(self, event: dict[str, Any], number: int, path: Path) -> int:
        actions = event["c"].get("_multi") or []
        rows = [self._row(action) for action in actions]
        place = event.get("_labelIndex", int(event.get("_label_Action", 0)) - 1)
        if not 0 <= place < len(rows):
            raise DataError(
                f"{path} needs the chosen action among c._multi: line {number} has {len(rows)} "
                f"actions, and the label is of number {place + 1}. Drop that line."
            )
        return rows[place]

    def vectors(self) -> NDArray[np.float32] | None:
        lengths = {None if vector is None else len(vector) for vector in self._vectors}
        if len(lengths) != 1 or None in lengths:
            return None
        return np.array(self._vectors, dtype=np.float32)

    def _row(self, action: dict[str, Any]) -> int:
        id = _id_of(action)
        if id not in self.rows:
            self.rows[id] = len(self.rows)
            self._vectors.append(_numbers_of(action))
        return self.rows[id]


def _id_of(action: dict[str, Any]) -> str:
    if "_tag" in action:
        return str(action["_tag"])
    inner = [value.get("id") for value in action.values() if isinstance(value, dict)]
    named = [id for id in (action.get("id"), *inner) if isinstance(id, str | int)]
    return str(named[0]) if named else json.dumps(action, sort_keys=True)


def _numbers_of(action: dict[str, Any]) -> list[float] | None:
    for value in action.values():
        if isinstance(value, list) and value and all(isinstance(v, int | float) for v in value):
            return [float(number) for number in value]
    return None
