"""Columns of vectors that you bring, and of images."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import part, ranged, setting
from fastbandit.features.columns import (
    ANY,
    CLIP,
    Row,
    Values,
    Write,
    fill_each,
    is_missing,
    to_float,
    wrong,
)


@part("column", name="vector")
class Vector:
    """A list of `dim` numbers: an embedding that you bring."""

    name: str
    dim: int = 1
    mean: float = ranged(ANY, default=0.0)
    std: float = setting(default=1.0, above=0)
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    @property
    def width(self) -> int:
        return 1 + self.dim

    def fitted(self, values: Values) -> Vector:
        brought = [value for value in values if not is_missing(value)]
        if not brought:
            return self
        known = [numeric(self, value) for value in brought]
        size = known[0].shape
        odd = next((n for n, one in enumerate(known) if one.shape != size or one.ndim != 1), None)
        if odd is not None:
            needed = f"lists of {known[0].size} numbers each"
            raise wrong(self, needed, brought[odd], "Send as many in each row.")
        every = np.stack(known)
        std = float(every.std())
        return replace(
            self, dim=len(known[0]), mean=float(every.mean()), std=std if std > 1e-9 else 1.0
        )

    def writer(self, at: int) -> Write:
        def write(value: Any, out: Row) -> None:
            if is_missing(value):
                out[at] = 1.0
                return
            numbers = numeric(self, value)
            if numbers.shape != (self.dim,):
                raise wrong(self, f"a list of {self.dim} numbers", value, "Send as many.")
            scaled = np.clip((numbers - self.mean) / self.std, -CLIP, CLIP)
            out[at + 1 : at + 1 + self.dim] = scaled

        return write

    def fill(self, values: Values, out: Row) -> None:
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu" and values.ndim == 2:
            numbers = values.astype(np.float64)
            if numbers.shape[1] == self.dim and np.isfinite(numbers).all():
                out[:, 1:] = np.clip((numbers - self.mean) / self.std, -CLIP, CLIP)
                return
        fill_each(self.writer(0), list(values), out)

    def from_text(self, text: str) -> Any:
        numbers = [to_float(one) for one in text.strip("[]() ").replace(",", " ").split()]
        return text if any(map(math.isinf, numbers)) else numbers

    def shape(self) -> dict[str, Any]:
        numbers = {"type": "number"}
        size = {"minItems": self.dim, "maxItems": self.dim}
        return {"type": ["array", "null"], "items": numbers, **size}

    def says(self) -> str:
        return f"{self.dim} numbers, mean {self.mean:.3g}, deviation {self.std:.3g}"


def numeric(column: Any, value: Any) -> NDArray[np.float64]:
    """Return finite numbers as an array."""
    try:
        raw = np.asarray(value)
        numbers = raw.astype(np.float64) if raw.dtype.kind in "fiubO" else np.array(np.nan)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise wrong(column, "finite numbers", value, "Send a list of numbers, or null.")
    return numbers


@part("column", name="image")
class Picture:
    """A gray image: its mean brightness in `side` x `side` fields."""

    name: str
    side: int = 8
    mean: float = ranged(ANY, default=0.0)
    std: float = setting(default=1.0, above=0)
    default: Any = None
    note: str = ""
    secret: bool = setting(default=False, came_later=True)
    drop_after_days: int = setting(default=0, least=0, came_later=True)

    @property
    def width(self) -> int:
        return 1 + self.side**2

    def fitted(self, values: Values) -> Picture:
        known = [self._fields(value) for value in values if not is_missing(value)]
        if not known:
            return self
        std = float(np.std(known))
        return replace(self, mean=float(np.mean(known)), std=std if std > 1e-9 else 1.0)

    def _fields(self, value: Any) -> NDArray[np.float64]:
        pixels = numeric(self, value)
        if pixels.ndim != 2 or min(pixels.shape) < self.side:
            needed = f"rows of pixels, at least {self.side} x {self.side}"
            raise wrong(self, needed, value, "Send a gray image as a list of rows.")
        rows = np.array_split(pixels, self.side, axis=0)
        return np.array([p.mean() for row in rows for p in np.array_split(row, self.side, axis=1)])

    def writer(self, at: int) -> Write:
        def write(value: Any, out: Row) -> None:
            if is_missing(value):
                out[at] = 1.0
                return
            scaled = (self._fields(value) - self.mean) / self.std
            out[at + 1 : at + self.width] = np.clip(scaled, -CLIP, CLIP)

        return write

    def fill(self, values: Values, out: Row) -> None:
        fill_each(self.writer(0), list(values), out)

    def from_text(self, text: str) -> Any:
        return text

    def shape(self) -> dict[str, Any]:
        row = {"type": "array", "items": {"type": "number"}}
        return {"type": ["array", "null"], "items": row}

    def says(self) -> str:
        return f"brightness of {self.side} x {self.side} fields"
