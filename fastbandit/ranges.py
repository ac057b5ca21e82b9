"""What the fields of parts may hold: by their types and, where that is not enough, their names."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import numpy as np

from fastbandit.errors import SettingError

CHOICES = {
    "gradients": ("current", "when chosen"),
    "penalties": ("per observation", "constant"),
    "rule": ("direction", "printed"),
    "target": ("best of sample", "ascent"),
    "told": ("draw", "gaussian"),
}
_MAY_BE_ZERO = (
    "exhaustive_up_to",
    "far",
    "full_below",
    "hops",
    "iterations",
    "neighbours",
    "scan",
    "steps",
    "units",
    "waves",
)
_MAY_BE_NEGATIVE = ("enough",)
_ABOVE_ZERO = (
    "constant_width",
    "grow",
    "half_life",
    "prior_precision",
    "rate",
    "ridge",
    "slope_width",
)
_LARGEST = 2**53  # beyond it, a float would round


def check_fields(part: Any) -> None:
    """Raise unless each field of a part, a dataclass, holds what it can work with."""
    hints = get_type_hints(type(part))
    for field in fields(part):
        value = getattr(part, field.name)
        needed, is_right = need(field.name, hints[field.name], value)
        if not is_right and value is not field.default:  # which may be None
            rest = "" if field.default is MISSING else f", or leave it out for {field.default!r}"
            raise SettingError(
                f"{type(part).__name__} needs {field.name} to be {needed}: got {value!r}. "
                f"Change it{rest}."
            )


def check_number(name: str, number: float, *, above_zero: bool = False) -> None:
    """Raise unless a setting is finite and at least 0, or above it."""
    needed, is_right = _number(number, above_zero=above_zero)
    if not is_right:
        raise SettingError(f"The {name} needs to be {needed}: got {number!r}. Try 1.0.")


def check_seed(seed: Any) -> int:
    """Give a seed, if it is a whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise SettingError(
            f"A seed needs to be a whole number: got {seed!r}. Any one will do, 0 for example."
        )
    return int(seed)


def need(name: str, hint: Any, value: Any) -> tuple[str, bool]:
    """Say what a field needs, and whether a value is that; of other types, anything is."""
    if name in CHOICES:
        return f"one of {', '.join(map(repr, CHOICES[name]))}", value in CHOICES[name]
    if hint is bool:
        return "true or false", isinstance(value, bool)
    if hint in (int, int | None):
        return _whole(value, least=0 if name in _MAY_BE_ZERO else 1)
    if hint in (float, float | None):
        if name in _MAY_BE_NEGATIVE:
            return "a finite number", _is_finite(value)
        return _number(value, above_zero=name in _ABOVE_ZERO)
    if hint == tuple[int, ...]:
        is_list = isinstance(value, list | tuple) and len(value) > 0
        is_sound = is_list and all(_whole(item, least=1)[1] for item in value)
        return "a list of whole numbers of at least 1, such as [32]", is_sound
    return "", True


def _whole(value: Any, *, least: int) -> tuple[str, bool]:
    return f"a whole number of at least {least}", _is_whole(value) and value >= least


def _number(value: Any, *, above_zero: bool) -> tuple[str, bool]:
    if above_zero:
        return "a finite number above 0", _is_finite(value) and value > 0
    return "a finite number of at least 0", _is_finite(value) and value >= 0


def _is_whole(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and abs(value) < _LARGEST


def _is_finite(value: Any) -> bool:
    is_number = _is_whole(value) or isinstance(value, float | np.floating)
    return is_number and math.isfinite(value)
