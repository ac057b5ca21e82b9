"""Logs whose actions came with each request: DSJSON of Personalizer and Vowpal Wabbit, and text.

A folder is read with all below it, in the order of its paths: exports have one for each day. What
cannot be read is left out, counted by reason, and the first such lines are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
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
from fastbandit.adapters.vowpal_wabbit_text import examples, fields_of
from fastbandit.arms.offers import offer_name
from fastbandit.errors import DataError, InputError
from fastbandit.features.mapping_columns import merged
from fastbandit.progress import Progress, silent

REPEATED, DAMAGED = "an EventId that came before", "something that cannot be read"
_ENDINGS = (".dsjson", ".json", ".jsonl", ".ndjson", ".log", ".txt", ".dat", ".vw")
_MOST_NAMED = 10


@dataclass(frozen=True, eq=False)
class ActionLog:
    """Decisions among actions that came with them, one row for each.

    `offered` are rows of `ids` and `features`, which hold each action once for all decisions in
    which it had the same features; `taken` are positions among those offered. `explored` is how
    much of each decision was spread evenly: the least probability times the number of actions,
    NaN where probabilities are not known. `unrewarded` are rewards of decisions without an outcome.
    `left_out` counts lines by reason, and `damaged` names the first that could not be read.
    """

    contexts: list[dict[str, Any]]
    offered: list[tuple[int, ...]]
    taken: NDArray[np.int64]
    rewards: NDArray[np.float64]
    propensities: NDArray[np.float64]
    explored: NDArray[np.float64]
    times: list[Any]
    ids: list[str]
    features: list[dict[str, Any]]
    unrewarded: tuple[float, ...]
    files: int
    left_out: dict[str, int]
    damaged: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def chosen(self) -> NDArray[np.int64]:
        """The rows of the actions that were taken."""
        both = zip(self.offered, self.taken.tolist(), strict=True)
        return np.array([rows[position] for rows, position in both], dtype=np.int64)


def read_action_log(
    path: str | Path, *, id_name: str = "id", progress: Progress = silent
) -> ActionLog:
    """Read a file or a folder of them, gzipped or not; `id_name` is the feature that holds ids.

    An action is known by its tag, else by that feature, else by all of its features; one that is
    named is looked for before the tag.
    """
    files = _files(Path(path).expanduser())
    reading = _Reading(id_name)
    for number, file in enumerate(files):

        def show(done: int, steps: int, doing: str, at: int = number) -> None:
            progress(int(1000 * (at + done / max(1, steps))), 1000 * len(files), doing)

        try:
            reading.read(file, show)
        except DataError as error:  # of the file: the others may be whole
            reading.leave_out(DAMAGED, str(error))
    if reading.log:
        return reading.done(len(files))
    found = ", ".join(f"{count:,} have {why}" for why, count in reading.left_out.items())
    raise DataError(
        f"{path} needs decisions with a context, actions and a label: it has none "
        f"({found or 'no lines'}). {' '.join(reading.damaged[:1])} Name another."
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(one for one in path.rglob("*") if one.is_file() and _is_log(one))
    if not found:
        raise DataError(
            f"A log of actions needs a file, or a folder with files that end in "
            f"{', '.join(_ENDINGS)}, gzipped or not: found none in {path}. Name another."
        )
    return found


def _is_log(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(_ENDINGS) and not path.name.startswith(".")


@dataclass
class _Row:
    context: dict[str, Any]
    offered: tuple[int, ...]
    taken: int
    reward: float
    propensity: float
    explored: float
    at: Any


@dataclass
class _Reading:
    """What was read so far."""

    id_name: str
    log: list[_Row] = field(default_factory=list)
    arms: dict[str | int, tuple[int, str, dict[str, Any]]] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    unrewarded: set[float] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def read(self, file: Path, progress: Progress) -> None:
        for where, fields in _fields_in(file, progress):
            if isinstance(fields, DataError):
                self.leave_out(DAMAGED, str(fields))
                continue
            try:
                reason = why_not(fields, where) or self._why_again(fields)
                if reason:
                    self.left_out[reason] += 1
                else:
                    self._add(decision_of(fields, where, id_name=self.id_name), fields)
            except (DataError, InputError) as error:
                self.leave_out(DAMAGED, str(error))

    def leave_out(self, reason: str, said: str) -> None:
        self.left_out[reason] += 1
        if len(self.damaged) < _MOST_NAMED:
            self.damaged.append(said)

    def _why_again(self, fields: Mapping[str, Any]) -> str:
        event = str(fields.get("EventId") or "")
        if event and event in self.events:
            return REPEATED
        self.events.add(event)
        return ""

    def _add(self, line: DsjsonDecision, fields: Mapping[str, Any]) -> None:
        rows: dict[str, int] = {}
        order = [line.taken, *range(len(line.actions))]  # of copies, the one that was taken
        for position in order:
            name = line.names[position]
            if name not in rows:
                rows[name] = self._row_of(name, features_of(line.actions[position]))
        offered = tuple(rows[name] for name in dict.fromkeys(line.names))
        if not fields.get("o") and "o" in fields:
            self.unrewarded.add(-line.cost)
        self.log.append(
            _Row(
                context=context_of(line.context),
                offered=offered,
                taken=offered.index(rows[line.names[line.taken]]),
                reward=-line.cost,
                propensity=line.propensity,
                explored=_explored(fields, len(offered)),
                at=fields.get("Timestamp"),
            )
        )

    def _row_of(self, id: str, features: dict[str, Any]) -> int:
        name = offer_name(id, features)
        row, _, _ = self.arms.setdefault(name, (len(self.arms), id, features))
        return row

    def done(self, files: int) -> ActionLog:
        log, arms = self.log, list(self.arms.values())
        return ActionLog(
            contexts=[one.context for one in log],
            offered=[one.offered for one in log],
            taken=np.array([one.taken for one in log], dtype=np.int64),
            rewards=np.array([one.reward for one in log]),
            propensities=np.array([one.propensity for one in log]),
            explored=np.array([one.explored for one in log]),
            times=[one.at for one in log],
            ids=[id for _, id, _ in arms],
            features=[features for _, _, features in arms],
            unrewarded=tuple(sorted(self.unrewarded)),
            files=files,
            left_out=dict(self.left_out),
            damaged=tuple(self.damaged),
        )


def _fields_in(file: Path, progress: Progress) -> Iterator[tuple[str, dict[str, Any] | DataError]]:
    """Yield the fields of each line of DSJSON, or of each example of text, or what is wrong."""
    lines = enumerate(lines_of(file, progress), start=1)
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        return
    numbered = ((f"line {number} of {file}", line) for number, line in chain([first], lines))
    if first[1].lstrip()[:1] == b"{":
        for where, line in numbered:
            if line.strip():
                yield where, _tried(parse_line, line, where)
        return
    texts = ((where, line.decode("utf-8", "replace")) for where, line in numbered)
    for example in examples(texts):
        yield example[0][0], _tried(fields_of, example)


def _tried(read: Any, *given: Any) -> Any:
    try:
        return read(*given)
    except DataError as error:
        return error


def _explored(fields: Mapping[str, Any], actions: int) -> float:
    given = fields.get("p")
    if not isinstance(given, list) or len(given) != actions or actions < 2:
        return float("nan")
    try:
        return min(1.0, max(0.0, min(float(one) for one in given) * actions))
    except (TypeError, ValueError):
        return float("nan")


# -- features as clients sent them


def context_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features of a context: what Personalizer wraps in FromUrl, and we in context."""
    found = _merged(given)
    for wrapper in ("FromUrl", "context"):
        inner = found.get(wrapper)
        if isinstance(inner, dict) and (wrapper == "FromUrl" or len(found) == 1):
            del found[wrapper]
            found = {**found, **inner}
    return found


def features_of(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features of an action, without what Personalizer and our export add to them."""
    found = _merged(action)
    own = found.get("i")
    if isinstance(own, dict) and set(own) <= {"constant", "id"}:
        del found["i"]
        inner = found.pop("j", {})
        return {**found, **(inner if isinstance(inner, dict) else {"j": inner})}
    if set(found) <= {"arm", "features"} and set(found.get("arm", {"id": 0})) == {"id"}:
        inner = found.get("features", {})
        return inner if isinstance(inner, dict) else {"features": inner}
    return found


def _merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return namespaces by name; several of one name become one, and marks such as _tag none."""
    found = {}
    for name, value in given.items():
        if name.startswith("_") and name != "_text":
            continue
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            value = merged(value)
        found[name] = value
    return found
