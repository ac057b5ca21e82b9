"""A column of named features that were not declared: dicts of dicts, lists, numbers and texts.

So Personalizer and Vowpal Wabbit send them: namespaces, in them names, in them values. A name is
its path, "user.age". A number, and each level of a text or a flag, has a slot of its own, given
when the column grows, first come; what has none is hashed with a sign into a few numbers. Slots
never move and the width never changes: what was encoded and learned before stays valid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import Range, part, ranged, setting
from fastbandit.errors import SettingError
from fastbandit.features.columns import (
    CLIP,
    Number,
    Row,
    Values,
    Write,
    fill_each,
    is_missing,
    listed,
    to_float,
    wrong,
)
from fastbandit.features.hashing import name_numbers
from fastbandit.features.mapping_walks import HELD, Hash, Name, Walker
from fastbandit.features.tables import parsed_text

FORGOTTEN = "forgotten"
"""What is said in place of a name or level that is forgotten."""
LEARNED = ("numbers", "means", "stds", "levels")
"""The settings of a mapping that it learns."""
_FEW = 10  # in so few rows, what is seen once has a slot, too
_SURE = 30  # so many numbers say by themselves how far they spread
_PRIOR = 2.0  # fewer say it together with so many guessed ones
_LARGE, _SMALL = 1e100, 1e-9  # sizes of numbers whose squares are none
_LONGEST = 200  # characters of a name or level with a slot
_STEPS = 1024.0  # what is hashed is a whole number of such parts: sums are exact, in any order


def _are_texts(names: Any) -> bool:
    return isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)


def _are_numbers(values: Any) -> bool:
    is_list = isinstance(values, tuple | list)
    return is_list and all(isinstance(v, int | float) and math.isfinite(v) for v in values)


_TEXTS = Range(holds=_are_texts, needed="a list of texts")
_FLOATS = Range(holds=_are_numbers, needed="a list of finite numbers")


@part("column", name="mapping")
class FeatureMapping:
    """Features of any names: an exact slot for those that it learned to read, others hashed.

    With `takes_others` its value is all that a row has beside the other columns.
    """

    name: str
    takes_others: bool = False
    slots: int = 128
    hashed: int = setting(default=32, least=2)
    most_names: int = 128
    most_levels: int = 64
    most_features: int = 1_000
    depth: int = 8
    numbers: tuple[Any, ...] = ranged(_TEXTS, default=())
    means: tuple[Any, ...] = ranged(_FLOATS, default=())
    stds: tuple[Any, ...] = ranged(_FLOATS, default=())
    levels: tuple[Any, ...] = ranged(_TEXTS, default=())
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    def __post_init__(self) -> None:
        if self.takes_others and (self.secret or self.drop_after_days):
            raise SettingError(
                f"What is secret or dropped needs a name of its own: got the column {self.name!r}, "
                f"which takes all others. Declare those columns beside it."
            )
        sizes = {len(self.numbers), len(self.means), len(self.stds)}
        used = len(self.numbers) + len(self.levels)
        if len(sizes) > 1 or used > self.slots or any(std <= 0 for std in self.stds):
            raise SettingError(
                f"A mapping needs a mean and a std above 0 for each of its numbers, and a slot for "
                f"each number and level: got {len(self.numbers)} numbers, {len(self.means)} means, "
                f"{len(self.stds)} stds and {len(self.levels)} levels for {self.slots} slots. "
                f"Leave them out: a mapping learns them."
            )

    @property
    def width(self) -> int:
        return 1 + self.slots + self.hashed

    @property
    def used(self) -> int:
        """How many slots have a number or a level."""
        return len(self.numbers) + len(self.levels)

    def fitted(self, values: Values) -> FeatureMapping:
        return self.grown(values)

    def grown(self, values: Values) -> FeatureMapping:
        """Return the column with slots for new names and levels: itself where there are none.

        Those in most rows come first. Slots that are in use stay what they are.
        """
        rows = listed(values)
        if self.used == self.slots or not rows:
            return self
        seen = _seen(self, rows)
        least = 1 if len(rows) < _FEW else 2
        found = [(count, key) for key, count in seen.counts.items() if count >= least]
        found.sort(key=lambda one: -one[0])  # those seen as often stay in the order they came in
        return _with_slots(self, [key for _, key in found], seen.numbers)

    def without_unused(
        self, used: NDArray[np.bool_], declared: FeatureMapping | None
    ) -> FeatureMapping:
        """Return the column without what is said of slots that are not used; they stay taken.

        What is `declared` stays, too.
        """
        kept = set[Any]() if declared is None else {*declared.numbers, *declared.levels}
        numbers, levels = [*self.numbers], [*self.levels]
        means, stds = [*self.means], [*self.stds]
        for n, name in enumerate(self.numbers):
            if not used[1 + n] and name not in kept:
                numbers[n], means[n], stds[n] = _nameless(numbers, n, "."), 0.0, 1.0
        for n, name in enumerate(self.levels):
            if not used[self.slots - n] and name not in kept:
                levels[n] = _nameless(levels, n, "=")
        own = {"numbers": numbers, "means": means, "stds": stds, "levels": levels}
        named: dict[str, Any] = {name: tuple(one) for name, one in own.items()}
        return replace(self, **named)

    def writer(self, at: int) -> Write:
        return _writer(self, at)

    def fill(self, values: Values, out: Row) -> None:
        fill_each(self._write, listed(values), out)

    @cached_property
    def _write(self) -> Write:
        """What writes a value, with all names that it has met."""
        return self.writer(0)

    def from_text(self, text: str) -> Any:
        return parsed_text(text)

    def shape(self) -> dict[str, Any]:
        return {"type": ["object", "array", "null"], "additionalProperties": True}

    def learned(self) -> list[tuple[str, list[str] | None]]:
        """Return each name with slots and its levels, in the order they came; None of a number."""
        found: dict[str, list[str]] = {}
        for one in self.levels:
            name, _, level = one.partition("=")
            found.setdefault(name, []).append(level)
        return [*((name, None) for name in self.numbers), *found.items()]

    def says(self) -> str:
        first = ", ".join([*self.numbers[:3], *self.levels[:3]])
        read = f"{len(self.numbers)} numbers, {len(self.levels)} levels"
        rest = f"{self.used} of {self.slots} slots, {self.hashed} hashed"
        return f"{read}: {rest}{f' ({first})' if first else ''}"


def _nameless(names: Sequence[str], n: int, sign: str) -> str:
    """Return what is said in place of one of some names, unlike the others."""
    found, others = f"{FORGOTTEN}{sign}{n}", {*names[:n], *names[n + 1 :]}
    while found in others:
        found += "'"
    return found


Feature: TypeAlias = tuple[str, str | None]
"""The name of a feature, and its level: None where it is a number."""


def _with_slots(
    column: FeatureMapping, found: Sequence[Feature], numbers: Mapping[str, list[float]]
) -> FeatureMapping:
    """Return the column with slots for as many features as there is room for, the first first."""
    has, levels = dict.fromkeys(column.numbers), dict.fromkeys(column.levels)
    each = Counter(level.partition("=")[0] for level in levels)
    names = {*has, *each}
    for name, level in found:
        is_full = len(has) + len(levels) >= column.slots
        if is_full or (name not in names and len(names) >= column.most_names):
            continue
        if level is None:
            has.setdefault(name)
        elif f"{name}={level}" not in levels and each[name] < column.most_levels:
            levels[f"{name}={level}"] = None
            each[name] += 1
        names.add(name)
    new = list(has)[len(column.numbers) :]
    if not new and len(levels) == len(column.levels):
        return column
    scales = [_scale(numbers[name]) for name in new]
    return replace(
        column,
        numbers=tuple(has),
        means=(*column.means, *(mean for mean, _ in scales)),
        stds=(*column.stds, *(std for _, std in scales)),
        levels=tuple(levels),
    )


def _scale(values: list[float]) -> tuple[float, float]:
    """Return the mean of numbers and how far they spread: few of them guess from their size."""
    numbers, count = np.clip(values, -_LARGE, _LARGE), len(values)
    fitted, is_flat = Number("x").fitted(numbers), numbers.min() == numbers.max()
    guess = abs(fitted.mean) if abs(fitted.mean) > _SMALL else 1.0
    spread = 0.0 if is_flat else fitted.std
    if count >= _SURE and not is_flat:
        return fitted.mean, spread
    both = math.hypot(math.sqrt(count) * spread, math.sqrt(_PRIOR) * guess)
    return fitted.mean, both / math.sqrt(count + _PRIOR)


# -- writing


def _finite(column: FeatureMapping, name: Name, value: Any) -> float:
    """Return a number, NaN where it is missing; raise where it is too large."""
    found = to_float(value)
    if math.isinf(found):
        fix = "Send a finite number, or null where there is none."
        raise wrong(column, f"finite numbers ({name.path})", value, fix)
    return found


def _writer(column: FeatureMapping, at: int) -> Write:
    """Return what writes a value into a row of zeros."""
    hash_of = _hasher(column, at)

    def number(name: Name, value: Any, out: Row) -> None:
        value = value if -1e300 < value < 1e300 else _finite(column, name, value)
        if name.slot:
            value = (value - name.mean) / name.std
            if value == value:
                out[name.slot] = CLIP if value > CLIP else -CLIP if value < -CLIP else value
        elif value == value:
            size = math.copysign(min(math.log1p(abs(value)), CLIP), value)
            one, this, other, that = hash_of(name, None)
            out[one] += _stepped(this * size)
            out[other] += _stepped(that * size)

    def level(name: Name, value: str, out: Row) -> None:
        slot = name.levels.get(value)
        if slot is not None:
            out[slot] = 1.0
            return
        one, this, other, that = hash_of(name, value)
        out[one] += this
        out[other] += that

    walk = Walker(column, number, level, _placed(column, at)).walk

    def write(value: Any, out: Row) -> None:
        if is_missing(value):
            out[at] = 1.0
        else:
            walk(value, out)

    return write


def _hasher(column: FeatureMapping, at: int) -> Callable[[Name, str | None], Hash]:
    """Return what says where a feature without a slot is added, and with which numbers."""
    first, dim, held = at + 1 + column.slots, column.hashed, 0

    def hash_of(name: Name, level: str | None) -> Hash:
        nonlocal held
        found = name.hashes.get(level)
        if found is None:
            path = name.path if level is None else f"{name.path}={level}"
            one, this, other, that = name_numbers(path, dim)
            found = first + one, _stepped(this), first + other, _stepped(that)
            if held < HELD:
                held += 1
                name.hashes[level] = found
        return found

    return hash_of


def _stepped(number: float) -> float:
    return round(number * _STEPS) / _STEPS


def _placed(column: FeatureMapping, at: int) -> dict[str, Name]:
    """Return the names that have slots: numbers from the first slot on, levels from the last."""
    found: dict[str, Name] = {}
    for n, (path, mean, std) in enumerate(
        zip(column.numbers, column.means, column.stds, strict=True)
    ):
        found[path] = Name(path, at + 1 + n, mean, std)
    for n, one in enumerate(column.levels):
        path, _, level = one.partition("=")
        name = found.setdefault(path, Name(path))
        name.levels[level] = at + column.slots - n
    return found


# -- growing


@dataclass(frozen=True, eq=False)
class _Seen:
    """In how many rows features were seen, in the order they came in, and numbers of each name."""

    counts: Counter[Feature] = field(default_factory=Counter)
    numbers: dict[str, list[float]] = field(default_factory=dict)


def _seen(column: FeatureMapping, values: Iterable[Any]) -> _Seen:
    seen = _Seen()

    def number(name: Name, value: Any, features: dict[Feature, None]) -> None:
        found = _finite(column, name, value)
        if found == found and _is_short(name.path):
            features[name.path, None] = None
            seen.numbers.setdefault(name.path, []).append(found)

    def level(name: Name, value: str, features: dict[Feature, None]) -> None:
        if _is_short(name.path) and len(value) <= _LONGEST:
            features[name.path, value] = None

    walk = Walker(column, number, level, {}).walk
    for value in values:
        if not is_missing(value):
            features: dict[Feature, None] = {}
            walk(value, features)
            seen.counts.update(features.keys())
    return seen


def _is_short(path: str) -> bool:
    return len(path) <= _LONGEST and "=" not in path


def merged(features: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """Return features that came as several objects as one; of a name twice the last counts.

    So a service logs them, and so logs of others are read: both learn what is served.
    """
    if not features:
        return {}
    if len(features) == 1:
        return features[0]
    found: dict[str, Any] = {}
    for one in features:
        for name, value in one.items():
            both = isinstance(value, dict) and isinstance(found.get(name), dict)
            found[name] = merged([found[name], value]) if both else value
    return found
