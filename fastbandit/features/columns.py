"""What a column is, and the plainest kinds: numbers, flags, and what is not used.

A column knows all it takes to turn a value into numbers: `Schema.infer` or `fit` finds that from a
table, and TOML or JSON may correct it. What is missing is a value of its own: the first of the
encoded numbers says so. One value and many are encoded alike, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import Range, part, ranged, setting
from fastbandit.errors import SettingError, ValueOfColumnError

CLIP = 5.0
"""So many standard deviations from the mean, a number is cut."""
Row: TypeAlias = NDArray[np.float32]
Values: TypeAlias = Sequence[Any] | NDArray[Any]
Write: TypeAlias = Callable[[Any, Row], None]
ANY = Range(least=-math.inf)


@runtime_checkable
class Column(Protocol):
    """What a column means, and how its values become `width` numbers."""

    @property
    def name(self) -> str: ...
    @property
    def default(self) -> Any:
        """What stands in where a row lacks the name; None where it must not."""

    @property
    def note(self) -> str:
        """Why it was taken for this kind."""

    @property
    def secret(self) -> bool:
        """Whether its values are learned from, and neither shown nor exported."""

    @property
    def drop_after_days(self) -> int:
        """After how many days a log drops its values; 0 for never."""

    @property
    def width(self) -> int: ...
    def fitted(self, values: Values) -> Column:
        """Return the column with what its values say."""
        ...

    def writer(self, at: int) -> Write:
        """Return a function that writes a value into a row of zeros, from position `at` on."""
        ...

    def fill(self, values: Values, out: Row) -> None:
        """Write values into rows of zeros: (n, width)."""

    def from_text(self, text: str) -> Any:
        """Return the value that a cell of a CSV file holds, which is not empty."""

    def shape(self) -> dict[str, Any]:
        """Return the JSON schema of a value."""
        ...

    def says(self) -> str:
        """Return in a few words how it is encoded."""
        ...


def wrong(column: Any, needed: str, value: Any, fix: str) -> ValueOfColumnError:
    """Return the error for a value of another kind."""
    text = "another value, not shown as it is secret" if column.secret else repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return ValueOfColumnError(
        f"The column {column.name!r} needs {needed}: got {text} ({type(value).__name__}). {fix}",
        column=column.name,
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is none: None, NaN, NaT, pandas' NA, or an empty text."""
    if value is None or (isinstance(value, str) and not value):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


@part("column", name="number")
class Number:
    """A number: standardised and clipped; its logarithm where `log`."""

    name: str
    log: bool = False
    mean: float = ranged(ANY, default=0.0)
    std: float = setting(default=1.0, above=0)
    texts: bool = False
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    @property
    def width(self) -> int:
        return 2

    def fitted(self, values: Values) -> Number:
        numbers = self._numbers(values)
        numbers = self._scaled(numbers[~np.isnan(numbers)])
        if not len(numbers):
            return self
        low, high = np.quantile(numbers, (0.005, 0.995))
        near = np.clip(numbers, low - (high - low), high + (high - low))
        std = float(near.std())
        return replace(self, mean=float(near.mean()), std=std if std > 1e-9 else 1.0)

    def number(self, value: Any) -> float:
        """Return a value as a number, NaN where it is missing."""
        if type(value) is float or type(value) is int:
            found = to_float(value)
        elif is_missing(value):
            return math.nan
        elif isinstance(value, bool | np.bool_ | str | bytes | bytearray):
            if not (self.texts and isinstance(value, str)):
                raise wrong(self, "a number", value, "Send a number, or null where there is none.")
            found = to_float(value)
        else:
            found = to_float(value)
        if math.isinf(found):
            fix = "Send a finite number, or null where there is none."
            raise wrong(self, "a number", value, fix)
        return found

    def _numbers(self, values: Values) -> NDArray[np.float64]:
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
            numbers = values.astype(np.float64)
            if not np.isinf(numbers).any():
                return numbers
        found = listed(values)
        if set(map(type, found)) == {float}:  # as most are: at once
            numbers = np.array(found)
            if not np.isinf(numbers).any():
                return numbers
        return np.array(read_each(self.number, found), dtype=np.float64)

    def _scaled(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.log:
            return numbers
        sizes = map(math.log1p, np.abs(numbers).tolist())  # as for one: NumPy's may differ
        return np.copysign(np.fromiter(sizes, np.float64, len(numbers)), numbers)

    def writer(self, at: int) -> Write:
        number, log, mean, std, log1p = self.number, self.log, self.mean, self.std, math.log1p
        copysign = math.copysign

        def write(value: Any, out: Row) -> None:
            found = value if type(value) is float and value - value == 0.0 else number(value)
            if found != found:
                out[at] = 1.0
                return
            if log:
                found = copysign(log1p(abs(found)), found)
            found = (found - mean) / std
            out[at + 1] = CLIP if found > CLIP else -CLIP if found < -CLIP else found

        return write

    def fill(self, values: Values, out: Row) -> None:
        numbers = (self._scaled(self._numbers(values)) - self.mean) / self.std
        gaps, clipped = np.isnan(numbers), np.maximum(np.minimum(numbers, CLIP), -CLIP)
        if gaps.any():
            out[:, 0] = gaps
            clipped[gaps] = 0.0
        out[:, 1] = clipped

    def from_text(self, text: str) -> Any:
        found = math.nan if text.lower() in ("nan", "na", "null") else to_float(text)
        return text if math.isinf(found) else found

    def shape(self) -> dict[str, Any]:
        return {"type": ["number", "null"]}

    def says(self) -> str:
        return f"{'logarithm, ' if self.log else ''}mean {self.mean:.4g}, deviation {self.std:.3g}"


def to_float(value: Any) -> float:
    """Return a value as a number: infinite where it is too large, or no number at all."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.inf


def read_each(read: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Read values one by one; an error says in which row."""
    found: list[Any] = []
    try:
        for value in values:
            found.append(read(value))
    except ValueOfColumnError as error:
        raise error.at(len(found)) from None
    return found


def are_texts(values: Sequence[Any]) -> bool:
    """Return whether all values are plain texts."""
    return set(map(type, values)) == {str}


def listed(values: Values) -> list[Any]:
    """Return values as a list of Python objects."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "t": True, "f": False}
_FLAGS |= {"y": True, "n": False, "1": True, "0": False}


@part("column", name="flag")
class Flag:
    """True or false; 1 and 0 count as these."""

    name: str
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    @property
    def width(self) -> int:
        return 2

    def fitted(self, values: Values) -> Flag:
        return self

    def writer(self, at: int) -> Write:
        def write(value: Any, out: Row) -> None:
            if value is True or value is False or (type(value) is int and 0 <= value <= 1):
                out[at + 1] = value
            elif is_missing(value):
                out[at] = 1.0
            elif isinstance(value, int | float | np.bool_ | np.integer | np.floating) and (
                value in (0, 1)
            ):
                out[at + 1] = value
            else:
                raise wrong(self, "true or false", value, "Send one of these, or null.")

        return write

    def fill(self, values: Values, out: Row) -> None:
        if isinstance(values, np.ndarray) and values.dtype == np.bool_:
            out[:, 1] = values
            return
        fill_each(self.writer(0), listed(values), out)

    def from_text(self, text: str) -> Any:
        return _FLAGS.get(text.lower(), text)

    def shape(self) -> dict[str, Any]:
        return {"type": ["boolean", "null"]}

    def says(self) -> str:
        return "0 or 1"


def fill_each(write: Write, values: Sequence[Any], out: Row) -> None:
    """Write values one by one; an error says in which row."""
    for row, value in enumerate(values):
        try:
            write(value, out[row])
        except ValueOfColumnError as error:
            raise error.at(row) from None


@part("column", name="ignored")
class Ignored:
    """A column that may come and says nothing, or holds the ids of arms (`is_id`)."""

    name: str
    is_id: bool = False
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    def __post_init__(self) -> None:
        if self.is_id and (self.secret or self.drop_after_days):
            raise SettingError(
                f"The ids of arms are in every answer, and stay: got {self.name!r} with secret or "
                f"drop_after_days. Leave that out."
            )

    @property
    def default(self) -> Any:
        return ""

    @property
    def width(self) -> int:
        return 0

    def fitted(self, values: Values) -> Ignored:
        return self

    def writer(self, at: int) -> Write:
        return lambda value, out: None

    def fill(self, values: Values, out: Row) -> None:
        """Write nothing."""

    def from_text(self, text: str) -> Any:
        return text

    def shape(self) -> dict[str, Any]:
        return {}

    def says(self) -> str:
        return "the id" if self.is_id else "not used"
