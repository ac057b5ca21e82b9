"""Vowpal Wabbit's text of `--cb_explore_adf`: examples of several lines, as fields of DSJSON.

An example is a `shared` line with the context, and a line for each action; an empty line ends it.
The label of the action taken is `action:cost:probability`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from fastbandit.errors import DataError

_SHARED = "shared"
Numbered = tuple[str, str]
"""A line, and where it stands."""


def examples(lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Yield the lines of each example."""
    found: list[Numbered] = []
    for where, line in lines:
        if line.strip():
            found.append((where, line.strip()))
        elif found:
            yield found
            found = []
    if found:
        yield found


def fields_of(example: list[Numbered]) -> dict[str, Any]:
    """Return an example as a line of DSJSON would have it; without a label where it has none."""
    context: dict[str, Any] = {}
    actions: list[dict[str, Any]] = []
    label: dict[str, Any] = {}
    for where, line in example:
        words, tag, features = _split(line, where)
        if words[:1] == [_SHARED]:
            context = features
            continue
        actions.append({**({"_tag": tag} if tag else {}), **features})
        if words:
            if label:
                raise _wrong("at most one action with a label", line, where)
            label = {"_labelIndex": len(actions) - 1, **_label(words[0], line, where)}
    return {**label, "c": {**context, "_multi": actions}}


def _split(line: str, where: str) -> tuple[list[str], str, dict[str, Any]]:
    """Return what stands before the first bar, the tag among it, and the namespaces."""
    head, bar, rest = line.partition("|")
    if not bar:
        raise _wrong("features after a bar, such as |User age:30", line, where)
    words, tag = head.split(), ""
    if words and (words[-1].startswith("'") or not head[-1:].isspace()):
        tag = words.pop().removeprefix("'")
    return words, tag, _namespaces(rest, line, where)


def _namespaces(rest: str, line: str, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in rest.split("|"):
        parts = text.split()
        named = bool(parts) and not text[:1].isspace()
        name, weight = _weighted(parts[0], line, where) if named else ("", 1.0)
        space = found.setdefault(name, {})
        for part in parts[named:]:
            feature, value = _weighted(part, line, where)
            space[feature] = space.get(feature, 0.0) + value * weight
    return found


def _weighted(part: str, line: str, where: str) -> tuple[str, float]:
    """Return a name with its number, which is 1 where there is none."""
    name, colon, number = part.partition(":")
    try:
        value = float(number) if colon else 1.0
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(f"a finite number after the colon of {part[:40]!r}", line, where)
    return name, value


def _label(word: str, line: str, where: str) -> dict[str, float]:
    parts = word.split(":")
    try:
        _, cost, probability = (float(part) for part in parts)
    except ValueError:
        raise _wrong("a label of the form action:cost:probability", line, where) from None
    return {"_label_cost": cost, "_label_probability": probability}


def _wrong(what: str, line: str, where: str) -> DataError:
    return DataError(
        f"An example of --cb_explore_adf needs {what}: got {line[:60]!r} in {where}. Drop that "
        f"example."
    )
