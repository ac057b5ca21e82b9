"""Kinds of columns that hold names: categories, sets of them, texts, ids.

Levels that are named have a number of their own; others share one. Where there are too many, all
are hashed. Texts are hashed word by word, rare words counting more (idf); those of many lie where
their words do, in a space in which words that go together are near each other.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import Range, part, ranged, setting
from fastbandit.errors import ValueOfColumnError
from fastbandit.features.columns import (
    Row,
    Values,
    Write,
    are_texts,
    fill_each,
    is_missing,
    listed,
    read_each,
    wrong,
)
from fastbandit.features.hashed_columns import one_writer
from fastbandit.features.hashing import (
    RARITIES,
    add_names,
    add_tokens,
    bytes_of,
    count_tokens,
    crc_table,
    name_numbers,
    names_of,
)
from fastbandit.features.text_spaces import fit_space, space_array

MOST_LEVELS = 64
"""Above so many levels, all are hashed."""
_RARE, _LARGE = 5, 500  # of so many rows on, levels seen less often share a number
_IDF = 0.6  # a digit of rarity stands for so much
_ROWS = 10_000  # texts that tell how common words are, read at a time


def level_of(column: Any, value: Any) -> str:
    """Return the name of a category: text as it is, whole numbers and flags as text."""
    if type(value) is str:
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    if isinstance(value, str):
        return str(value)
    raise wrong(column, "a category, as text or a number", value, "Send its name, or null.")


def _name_of(column: Any, value: Any, row: int | None = None) -> str:
    try:
        return "" if is_missing(value) else level_of(column, value)
    except ValueOfColumnError as error:
        raise (error if row is None else error.at(row)) from None


def name_bytes(column: Any, value: Any) -> bytes:
    """Return the name of a category as bytes to hash: none where it is missing."""
    name = value if type(value) is str else _name_of(column, value)
    return name.encode("utf-8", "surrogatepass")


def _frequent(counts: Counter[str], rows: int) -> tuple[tuple[str, ...], int]:
    """Return levels that are kept, by name, and how many numbers all are hashed to (0: not)."""
    least = _RARE if rows >= _LARGE else 1
    levels = tuple(sorted(level for level, count in counts.items() if count >= least))
    return (levels, 0) if len(levels) <= MOST_LEVELS else ((), 32)


def _has_room(levels: Any) -> bool:
    return isinstance(levels, tuple | list) and all(isinstance(level, str) for level in levels)


_LEVELS = Range(holds=_has_room, needed="a list of texts")


@part("column", name="category")
class Category:
    """One of some names: a number for each of `levels`, one for all others, one for none.

    With `hashed`, names set two of so many numbers each.
    """

    name: str
    levels: tuple[Any, ...] = ranged(_LEVELS, default=())
    hashed: int = setting(default=0, least=0)
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)
    as_bytes = name_bytes

    @property
    def width(self) -> int:
        return 1 + self.hashed if self.hashed else 2 + len(self.levels)

    def fitted(self, values: Values) -> Category:
        if self.levels or self.hashed:
            return self
        known = Counter(level_of(self, one) for one in listed(values) if not is_missing(one))
        levels, hashed = _frequent(known, len(values))
        return replace(self, levels=levels, hashed=hashed)

    def writer(self, at: int) -> Write:
        if self.hashed:
            return one_writer(self, at)
        places = {level: at + 2 + number for number, level in enumerate(self.levels)}

        def write(value: Any, out: Row) -> None:
            place = places.get(value) if type(value) is str else None
            if place is None:
                if is_missing(value):
                    out[at] = 1.0
                    return
                place = places.get(level_of(self, value), at + 1)
            out[place] = 1.0

        return write

    def fill(self, values: Values, out: Row) -> None:
        if self.hashed:
            _fill_hashed(self, listed(values), out)
            return
        places: dict[Any, int] = {level: 2 + n for n, level in enumerate(self.levels)}
        rows = listed(values)
        try:
            found = np.fromiter(map(places.get, rows, repeat(-1)), np.int64, len(rows))
        except TypeError:  # a list or dict, which is no name
            found = np.full(len(rows), -1)
        for row in np.flatnonzero(found < 0).tolist():
            found[row] = self._place(rows[row], places, row)
        out[np.arange(len(rows)), found] = 1.0

    def _place(self, value: Any, places: dict[Any, int], row: int) -> int:
        name = _name_of(self, value, row)
        return places.get(name, 1) if name else 0

    @property
    def is_hashed(self) -> bool:
        return self.hashed > 0

    def from_text(self, text: str) -> Any:
        return text

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"], "examples": [*self.levels[:3]]}

    def says(self) -> str:
        if self.hashed:
            return f"hashed to {self.hashed} numbers"
        some = ", ".join(self.levels[:4]) + (", …" if len(self.levels) > 4 else "")
        return f"{len(self.levels)} levels: {some}"


def _fill_hashed(column: Category | Id, values: list[Any], out: Row) -> None:
    names = values if are_texts(values) else [_name_of(column, v, n) for n, v in enumerate(values)]
    add_names(*names_of(names), crc_table(), out)


@part("column", name="set")
class CategorySet:
    """Any number of names: as for a category, a number for each that is there.

    They come as a list, or as one text with a `separator`.
    """

    name: str
    levels: tuple[Any, ...] = ranged(_LEVELS, default=())
    hashed: int = setting(default=0, least=0)
    separator: str = ""
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    @property
    def width(self) -> int:
        return 1 + self.hashed if self.hashed else 2 + len(self.levels)

    def _names(self, value: Any) -> list[str]:
        if isinstance(value, str) and self.separator:
            return [one.strip() for one in value.split(self.separator) if one.strip()]
        if isinstance(value, list | tuple | set | frozenset | np.ndarray):
            is_set = isinstance(value, set | frozenset)
            items = sorted(value, key=str) if is_set else list(value)
            return [level_of(self, one) for one in items if not is_missing(one)]
        raise wrong(self, "a list of categories", value, 'Send one such as ["red", "blue"].')

    def fitted(self, values: Values) -> CategorySet:
        if self.levels or self.hashed:
            return self
        known = [one for one in values if not is_missing(one)]
        counts = Counter(name for one in known for name in set(self._names(one)))
        levels, hashed = _frequent(counts, len(values))
        return replace(self, levels=levels, hashed=hashed)

    def writer(self, at: int) -> Write:
        places = {level: at + 2 + number for number, level in enumerate(self.levels)}
        hashed = self.hashed

        def write(value: Any, out: Row) -> None:
            if is_missing(value):
                out[at] = 1.0
                return
            names = self._names(value)
            if not hashed:
                for name in names:
                    out[places.get(name, at + 1)] = 1.0
                return
            for name in dict.fromkeys(names):
                one, this, other, that = name_numbers(name, hashed)
                out[at + 1 + one] += this
                out[at + 1 + other] += that

        return write

    def fill(self, values: Values, out: Row) -> None:
        fill_each(self.writer(0), list(values), out)

    def from_text(self, text: str) -> Any:
        if self.separator or not text.startswith("["):
            return text
        try:
            return json.loads(text)
        except ValueError:
            return text

    def shape(self) -> dict[str, Any]:
        if self.separator:
            return {"type": ["array", "string", "null"]}
        return {"type": ["array", "null"], "items": {"type": ["string", "number", "boolean"]}}

    def says(self) -> str:
        said = Category(self.name, self.levels, self.hashed).says()
        return f"{said}; parted by {self.separator!r}" if self.separator else said


@part("column", name="text")
class Text:
    """A text: its words hashed to `dim` numbers, rare words counting more.

    `rarity` has a digit for each shared count of words, from 0, in every text, to f. In a `space`,
    fitted to many texts, words that go together lie together, and a text lies in the middle of its
    words: texts of columns with one space can be compared. A text of more than `longest` characters
    is refused.
    """

    name: str
    dim: int = 32
    rarity: str = ""
    longest: int = 100_000
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)
    space: str = setting(default="", came_later=True)
    is_hashed: ClassVar[bool] = True

    @property
    def width(self) -> int:
        return 1 + self.dim

    def _text(self, value: Any) -> str:
        if is_missing(value):
            return ""
        if not isinstance(value, str):
            raise wrong(self, "a text", value, "Send a text, or null where there is none.")
        if len(value) > self.longest:
            needed = f"a text of at most {self.longest:,} characters"
            raise wrong(self, needed, value[:40], f"Shorten it: it has {len(value):,}.")
        return value

    def _texts(self, values: Sequence[Any]) -> list[str]:
        if are_texts(values) and max(map(len, values)) <= self.longest:
            return list(values)
        return read_each(self._text, values)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """How much a word of each shared count counts."""
        if not self.rarity:
            return np.ones(RARITIES)
        return np.array([_IDF * int(digit, 16) for digit in self.rarity])

    @cached_property
    def directions(self) -> NDArray[np.int8]:
        """Where the words of each bucket lie: (buckets, dim), no rows without a space."""
        return space_array(self.space, self.dim)

    def fitted(self, values: Values) -> Text:
        if self.space:
            return self
        counts, rows = np.zeros(RARITIES, dtype=np.int64), listed(values)
        for first in range(0, len(rows), _ROWS):
            count_tokens(bytes_of(self._texts(rows[first : first + _ROWS])), counts)
        idf = np.log((len(rows) + 1) / (counts + 1.0))
        digits = np.clip(np.rint(idf / _IDF), 0, 15).astype(int)
        space = fit_space(self._texts(rows), self.dim)
        rarity = "" if space else "".join(f"{digit:x}" for digit in digits)
        return replace(self, rarity=rarity, space=space)

    def as_bytes(self, value: Any) -> bytes:
        text = value if type(value) is str and len(value) <= self.longest else self._text(value)
        return text.lower().encode("utf-8", "surrogatepass")

    def writer(self, at: int) -> Write:
        return one_writer(self, at)

    def fill(self, values: Values, out: Row) -> None:
        texts = bytes_of(self._texts(listed(values)))
        add_tokens(texts, self.weights, self.directions, out)

    def from_text(self, text: str) -> Any:
        return text

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "maxLength": self.longest}

    def says(self) -> str:
        if self.space:
            return f"the middle of its words, in {self.dim} directions"
        return f"words hashed to {self.dim} numbers{' by idf' if self.rarity else ''}"


@part("column", name="id")
class Id:
    """The name of a person or thing: hashed, two of `dim` numbers each."""

    name: str
    dim: int = 16
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)
    is_hashed: ClassVar[bool] = True
    as_bytes = name_bytes

    @property
    def width(self) -> int:
        return 1 + self.dim

    def fitted(self, values: Values) -> Id:
        return self

    def writer(self, at: int) -> Write:
        return one_writer(self, at)

    def fill(self, values: Values, out: Row) -> None:
        _fill_hashed(self, listed(values), out)

    def from_text(self, text: str) -> Any:
        return text

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "null"]}

    def says(self) -> str:
        return f"hashed to {self.dim} numbers"
