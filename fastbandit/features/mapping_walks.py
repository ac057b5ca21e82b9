"""A walk through dicts of dicts and lists: each number and each level of it, with its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fastbandit.features.columns import is_missing, to_float, wrong

HELD = 16_384
"""So many names, or hashes of levels, are remembered."""
Hash: TypeAlias = tuple[int, float, int, float]


@dataclass(eq=False, slots=True)
class Name:
    """A name: its slots, where it has some, and the names below it.

    `slot` is that of its number, 0 where it has none; `hashes` are places and numbers of levels
    without a slot, and of the number as None.
    """

    path: str
    slot: int = 0
    mean: float = 0.0
    std: float = 1.0
    levels: dict[str, int] = field(default_factory=dict)
    below: dict[str, Name] = field(default_factory=dict)
    hashes: dict[str | None, Hash] = field(default_factory=dict)


Take: TypeAlias = Callable[[Name, Any, Any], None]


class Walker:
    """Calls `number` and `level` for each feature of a value, with its name and what it fills."""

    def __init__(self, column: Any, number: Take, level: Take, names: Mapping[str, Name]) -> None:
        self._column, self._number, self._level, self._names = column, number, level, names
        self._most, self._deepest = column.most_features, column.depth
        self._root, self._held = Name(""), 0

    def walk(self, value: Any, out: Any) -> None:
        """Go through one value."""
        if isinstance(value, Mapping):
            self._each(self._root, value, out, 0, 1)
        elif isinstance(value, list | tuple):
            self._several(self._root, value, out, 0, 1)
        else:
            fix = "Send the features by name, or null."
            raise wrong(self._column, "a dict of features", value, fix)

    def _each(self, at: Name, value: Any, out: Any, count: int, depth: int) -> int:
        """Take the features of a dict; return how many came until now."""
        count, below = self._entered(value, count, depth), at.below
        number, level = self._number, self._level
        for key, one in value.items():
            name = below.get(key)
            if name is None:
                name = self._named(at, key)
            kind = type(one)
            if kind is str:
                if one:
                    level(name, one, out)
            elif kind is float or kind is int:
                number(name, one, out)
            elif kind is dict:
                count = self._each(name, one, out, count, depth + 1)
            else:
                count = self._other(name, one, out, count, depth)
        return count

    def _other(self, name: Name, value: Any, out: Any, count: int, depth: int) -> int:
        """Take what is rarer than texts, numbers and dicts."""
        if isinstance(value, bool | np.bool_):
            self._level(name, "true" if value else "false", out)
        elif isinstance(value, Mapping):
            return self._each(name, value, out, count, depth + 1)
        elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
            return self._several(name, value, out, count, depth + 1)
        elif is_missing(value):
            pass
        elif isinstance(value, str):
            self._level(name, str(value), out)
        elif isinstance(value, int | float | np.integer | np.floating):
            self._number(name, to_float(value), out)
        else:
            needed = f"numbers, texts, flags, lists and dicts below {name.path!r}"
            raise wrong(self._column, needed, value, "Send one of these, or null.")
        return count

    def _several(self, at: Name, value: Any, out: Any, count: int, depth: int) -> int:
        """Take the members of a list: dicts merge, numbers are named by their position."""
        values = value.tolist() if isinstance(value, np.ndarray) else value
        count = self._entered(values, count, depth)
        for position, one in enumerate(values):
            if type(one) is float or type(one) is int:
                key = str(position)
                self._number(at.below.get(key) or self._named(at, key), one, out)
            else:
                count = self._other(at, one, out, count, depth)
        return count

    def _entered(self, value: Any, count: int, depth: int) -> int:
        """Return how many features came with those of a dict or list; raise beyond the limits."""
        count += len(value)
        if depth > self._deepest:
            needed = f"features nested at most {self._deepest} deep (depth)"
            raise wrong(self._column, needed, value, "Send flatter ones, or raise that limit.")
        if count > self._most:
            needed = f"at most {self._most:,} features in a value (most_features)"
            raise wrong(self._column, needed, value, "Send fewer, or raise that limit.")
        return count

    def _named(self, above: Name, key: Any) -> Name:
        """Return a name below another one, and remember it where there is room."""
        if type(key) is not str:
            fix = "Name each feature by a text."
            raise wrong(self._column, f"names that are texts below {above.path!r}", key, fix)
        path = key if above is self._root else f"{above.path}.{key}"
        found = self._names.get(path) or Name(path)
        if self._held < HELD:
            self._held += 1
            found = above.below.setdefault(key, found)
        return found
