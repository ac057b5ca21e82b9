"""Columns of the arms, and the rows on which a predicate on them holds.

A predicate is plain data, so that a service can take it from JSON. All conditions must hold:

    {"price": {"<=": 10}, "year": {">=": 1990, "<": 2000}, "language": "en",
     "genre": {"in": ["drama", "comedy"]}, "adult": False, "colour": {"not": "red"}}
"""

from __future__ import annotations

import json
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Array, Mask, read_only
from fastbandit.declaration import known_name
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import to_array

REMEMBERED = 16
"""The masks of so many recent predicates are remembered; each takes a byte a row."""

_Answer = TypeVar("_Answer")
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "not": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS = (*_COMPARISONS, "in", "not in")
_ORDERED = ("<", "<=", ">", ">=")
_WITH_GAPS = np.dtype(np.float16)
_NEEDED = {"numbers": "a number", "booleans": "True or False", "text": "a string"}


class Recent(Generic[_Answer]):
    """The answers to the last few questions, shared by threads."""

    def __init__(self) -> None:
        self._recent: OrderedDict[str, _Answer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, question: str, answer: Callable[[str], _Answer]) -> _Answer:
        """Return an answer that is remembered, or find and remember it."""
        with self._lock:
            if question in self._recent:
                self._recent.move_to_end(question)
                return self._recent[question]
        found = answer(question)
        with self._lock:
            self._recent[question] = found
            while len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
        return found


@dataclass(frozen=True)
class Column:
    """One value for each row: numbers, booleans, or the positions of texts among `categories`.

    A number or boolean that is missing is NaN: no condition but "not" holds of it. So booleans with
    gaps are floats of 16 bits.
    """

    values: Array
    categories: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """What it holds: "text", "booleans" or "numbers"."""
        if self.categories is not None:
            return "text"
        return "booleans" if self.values.dtype in (np.bool_, _WITH_GAPS) else "numbers"

    def value(self, row: int) -> Any:
        value = self.values[row].item()
        if self.categories is not None:
            return self.categories[value]
        if value != value:
            return None
        return bool(value) if self.kind == "booleans" else value

    def holds(self, sign: str, value: Any) -> Mask:
        """Return for each row whether a condition holds."""
        if self.categories is None:
            return _holds(self.values, sign, value)
        texts = np.array(self.categories, dtype=object)
        return _holds(texts, sign, value)[self.values]

    def joined(self, other: Column) -> Column:
        """Return a column with the rows of another of its kind at its end."""
        if self.categories is None or other.categories is None:
            return Column(read_only(np.concatenate([self.values, other.values])))
        codes = {text: code for code, text in enumerate(self.categories)}
        moved = [codes.setdefault(text, len(codes)) for text in other.categories]
        fresh = np.array(moved, dtype=np.int32)[other.values]
        return Column(read_only(np.concatenate([self.values, fresh])), tuple(codes))


class Columns(Mapping[str, Column]):
    """Named columns of the arms, one value for each row, never changed: `added` returns others."""

    def __init__(self, columns: Mapping[str, Column], *, rows: int) -> None:
        self._columns, self.rows = dict(columns), rows
        self._masks: Recent[Mask] = Recent()

    @staticmethod
    def of(columns: Any, *, rows: int) -> Columns:
        """Read a mapping or a frame of pandas or polars, one value for each of so many rows."""
        if isinstance(columns, Columns) and columns.rows == rows:
            return columns
        names = _names(columns)
        return Columns({name: _read(name, columns[name], rows) for name in names}, rows=rows)

    @staticmethod
    def restored(notes: Mapping[str, Any], arrays: Mapping[str, Array], *, rows: int) -> Columns:
        """Return the columns that were written as `notes` and `arrays`, or raise ValueError."""
        columns = {
            name: Column(arrays[name], None if texts is None else tuple(texts))
            for name, texts in notes.items()
        }
        for name, column in columns.items():
            _check_restored(name, column, rows)
        return Columns(columns, rows=rows)

    def notes(self) -> dict[str, list[str] | None]:
        """Return the names of the columns, with the categories of text, as JSON values."""
        return {
            name: None if column.categories is None else list(column.categories)
            for name, column in self.items()
        }

    def arrays(self) -> dict[str, Array]:
        return {name: column.values for name, column in self.items()}

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def added(self, columns: Any, *, rows: int) -> Columns:
        """Return columns with the values of more rows at their end."""
        if rows == 0:
            return self
        more = Columns.of({} if columns is None else columns, rows=rows)
        missing = [name for name in self if name not in more]
        if missing:
            raise InputError(
                f"New arms need a value in each column of the arms: got none for "
                f"{', '.join(missing)}. Give columns={{{missing[0]!r}: [...]}}, one for each arm."
            )
        for name, column in more.items():
            known_name("column of new arms", name, tuple(self))
            if column.kind != self[name].kind:
                raise InputError(
                    f"The column {name!r} of the arms holds {self[name].kind}: got "
                    f"{column.kind} for new arms. Give values of the same kind."
                )
        joined = {name: self[name].joined(more[name]) for name in self}
        return Columns(joined, rows=self.rows + rows)

    def take(self, rows: NDArray[np.int64]) -> Columns:
        taken = {n: Column(read_only(c.values[rows]), c.categories) for n, c in self.items()}
        return Columns(taken, rows=len(rows))

    def row(self, row: int) -> dict[str, Any]:
        return {name: column.value(row) for name, column in self.items()}

    def mask(self, predicate: Mapping[str, Any]) -> Mask:
        """Return for each row whether all conditions hold; recent answers are remembered."""
        return self._masks.get(canonical(predicate), self._mask_of)

    def _mask_of(self, text: str) -> Mask:
        mask = np.ones(self.rows, dtype=np.bool_)
        for name, wanted in json.loads(text).items():
            known_name("column of a predicate", name, tuple(self))
            for sign, value in (wanted if isinstance(wanted, dict) else {"==": wanted}).items():
                _check(name, self[name].kind, sign, value)
                mask &= self[name].holds(sign, value)
        return read_only(mask)


def _check_restored(name: str, column: Column, rows: int) -> None:
    """Raise ValueError unless a column has a value for each row, and texts one among its own."""
    values, texts = column.values, column.categories
    is_fit = values.shape == (rows,) and values.dtype.kind in "biuf"
    if is_fit and texts is not None:
        are_texts = all(isinstance(text, str) for text in texts)
        is_fit = are_texts and values.dtype.kind in "iu"
        is_fit = is_fit and (not rows or 0 <= values.min() <= values.max() < len(texts))
    if not is_fit:
        raise ValueError(f"the column {name!r} has {values.shape} values of {values.dtype}")


def canonical(predicate: Mapping[str, Any]) -> str:
    """Write a predicate as JSON, equal ones alike."""
    try:
        return json.dumps(predicate, sort_keys=True, default=_plain)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"A predicate needs to be plain data, such as {{'price': {{'<=': 10}}}}: got "
            f"{predicate!r} ({error}). Use strings, numbers, booleans, lists and dicts."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


# -- conditions


def _holds(values: Array, sign: str, value: Any) -> Mask:
    if sign in _COMPARISONS:
        return np.asarray(_COMPARISONS[sign](values, value), dtype=np.bool_)
    if values.dtype == object:
        wanted = set(value)
        is_in = np.fromiter((text in wanted for text in values), np.bool_, len(values))
    else:  # in the precision of the column, as when compared with a single number
        kind = values.dtype if values.dtype.kind == "f" else None
        is_in = np.isin(values, np.asarray(value, dtype=kind))
    return is_in if sign == "in" else ~is_in


def _check(name: str, kind: str, sign: str, value: Any) -> None:
    """Raise unless a column of this kind can be compared with the value in this way."""
    known_name(f"operator on {name!r}", sign, _OPERATORS)
    if sign in _ORDERED and kind == "booleans":
        raise SettingError(
            f"The column {name!r} holds booleans, which have no order: got {sign!r}. Give True "
            f"or False itself."
        )
    is_listed = sign in ("in", "not in")
    items: Sequence[Any] = value if is_listed and isinstance(value, list) else [value]
    if is_listed != isinstance(value, list) or not all(_is_a(kind, item) for item in items):
        needed = f"a list, each of them {_NEEDED[kind]}" if is_listed else _NEEDED[kind]
        raise SettingError(
            f"The column {name!r} holds {kind}, so {sign!r} needs {needed}: got {value!r}. "
            f"Write, say, {{{name!r}: {{'in': [...]}}}} for one of several."
        )


def _is_a(kind: str, value: Any) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "booleans" or isinstance(value, bool):
        return kind == "booleans" and isinstance(value, bool)
    return isinstance(value, int | float) and value == value


# -- reading


def _names(columns: Any) -> list[str]:
    if not isinstance(columns, Mapping) and not hasattr(columns, "columns"):
        raise InputError(
            f"Columns of arms need names: got a {type(columns).__name__}. Give a dict of lists, "
            f"or a frame of pandas or polars."
        )
    names = list(getattr(columns, "columns", columns))
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong or len(set(names)) != len(names):
        what = repr(wrong[0]) if wrong else "one name twice"
        raise InputError(
            f"Columns of arms need strings as names, each its own: got {what}. Rename it."
        )
    return names


def _read(name: str, raw: Any, rows: int) -> Column:
    array = to_array(raw, what=f"values of {name!r}")
    if array.shape != (rows,):
        raise ShapeError(
            f"The column {name!r} needs one value for each of {rows} rows: got shape "
            f"{array.shape}. Give a value for every arm there ever was, in their order."
        )
    if array.dtype.kind in "OU":
        return _read_objects(name, array.tolist())
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"The column {name!r} needs numbers, booleans or strings: got {array.dtype}. Turn "
            f"dates into numbers or text first."
        )
    return Column(read_only(array.astype(np.float32 if array.dtype == _WITH_GAPS else array.dtype)))


def _read_objects(name: str, values: list[Any]) -> Column:
    """Read Python values: strings, numbers among which none is missing, or booleans."""
    kinds = set(map(type, values))
    if kinds <= {str}:
        codes: dict[str, int] = {}
        positions = [codes.setdefault(value, len(codes)) for value in values]
        return Column(read_only(np.array(positions, dtype=np.int32)), tuple(codes))
    if kinds <= {bool, type(None)} and kinds != {bool}:
        return Column(read_only(np.array(values, dtype=_WITH_GAPS)))
    if kinds in ({bool}, {int}, {float}, {int, float}):
        return _read(name, np.array(values), len(values))
    wrong = next(row for row, value in enumerate(values) if not isinstance(value, str))
    raise InputError(
        f"The column {name!r} needs strings, numbers or booleans, one kind of them: got "
        f"{values[wrong]!r} in row {wrong}. Fill or turn such values."
    )
