"""Lines of DSJSON: each a decision with its actions and its outcome, or why it is none."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError, InputError
from fastbandit.progress import Progress, silent

NO_CONTEXT, NO_LABEL, NO_LEARNING = "no context", "no label", "marked not to be learned"
SLOTS, NO_ACTIONS = "several slots", "no list of actions"
_REPORT_EVERY = 5_000


def lines_of(source: str | Path, progress: Progress = silent) -> Iterator[bytes]:
    """Yield the lines of a file, gzipped or not."""
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


def parse_line(line: str | bytes, where: str) -> dict[str, Any]:
    """Return the JSON object of a line."""
    with suppress(ValueError):
        fields = json.loads(line)
        if isinstance(fields, dict):
            return fields
    raise DataError(
        f"A log of DSJSON needs a JSON object in each line: got {line[:40]!r} in {where}. "
        f"Drop that line, or read another file."
    )


def why_not(fields: Mapping[str, Any], where: str) -> str:
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
class DsjsonDecision:
    """One line: the context, its actions and their ids, and what came of the one taken."""

    context: dict[str, Any]
    actions: list[Mapping[str, Any]]
    names: list[str]
    offered: list[Any]
    taken: int
    cost: float
    propensity: float


def decision_of(
    fields: Mapping[str, Any], where: str, id_of: Callable[[str], Any] = str, *, id_name: str = "id"
) -> DsjsonDecision:
    """Return what a line says; `id_name` is the feature that holds an action's id."""
    context = dict(fields["c"])
    actions = _actions(context.pop("_multi"), where)
    names = [_name(action, id_name) for action in actions]
    taken, cost = _taken(fields, len(actions), where), _number(fields, "_label_cost", where)
    propensity = _number(fields, "_label_probability", where)
    if not (math.isfinite(cost) and 0 < propensity <= 1):
        raise InputError(
            f"A label needs a finite _label_cost and a _label_probability above 0 and at most 1: "
            f"got cost {cost!r} and probability {propensity!r} in {where}. Drop that line."
        )
    propensity = min(1.0, propensity + _of_its_copies(fields, names, taken))
    offered = [_id(name, where, id_of) for name in names]
    return DsjsonDecision(context, actions, names, offered, taken, cost, propensity)


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


def _name(action: Mapping[str, Any], id_name: str) -> str:
    """Return the text that an action is known by: its tag, unless a feature is named for it."""
    if "_tag" in action and id_name == "id":
        return str(action["_tag"])
    for part in (action, *_parts(action)):
        if isinstance(part.get(id_name), str | int):
            return str(part[id_name])
    return json.dumps(action, sort_keys=True)


def _parts(action: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the namespaces of an action, each of several that have one name."""
    for value in action.values():
        several = value if isinstance(value, list) else [value]
        yield from (one for one in several if isinstance(one, Mapping))


def _id(name: str, where: str, id_of: Callable[[str], Any]) -> Any:
    try:
        return id_of(name)
    except ValueError as error:
        raise InputError(
            f"The function id_of needs to take the name of every action: got {name!r} in "
            f"{where} ({error}). Leave it out, and ids are texts."
        ) from error
