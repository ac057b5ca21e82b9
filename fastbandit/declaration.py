"""How a part is declared: once, as a frozen dataclass whose fields know what they may hold.

    @part("search", name="ascent")
    class GradientAscent:
        starts: int = 8
        far: int = setting(default=64, least=0)

A whole number is at least 1 and a number at least 0 unless its `setting` says otherwise. What a
part is called in TOML, what it was called before, and which fields came later stand here too:
`fastbandit.settings.parts` builds, saves and reads every part from its declaration alone.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import numpy as np

from fastbandit.errors import SettingError

_LARGEST = 2**53  # beyond it, a float would round
_Part = TypeVar("_Part")


class PartInfo(NamedTuple):
    """What a part is: its role, its name among those of the role, and what older files say of it.

    `formerly` are names of its class; `dropped` are fields that it no longer has, with the value
    that they must have had for it to mean the same.
    """

    role: str
    name: str
    formerly: tuple[str, ...]
    dropped: Mapping[str, Any]


class Range(NamedTuple):
    """What a field may hold beyond its type, what it means, and how older files treat it.

    A number is at least `least`, or more than `above`, and at most `most`, or less than `below`; a
    text is one of `choices`; where that does not say enough, the value `holds` what is `needed`.
    A field that `came_later` is left out of files where it is as if it were not there; `formerly`
    is its name in older files. Nobody but the user can know one that `is_asked`.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    holds: Callable[[Any], bool] | None = None
    needed: str = ""
    text: str = ""
    came_later: bool = False
    formerly: str = ""
    is_asked: bool = False


def setting(
    *,
    default: Any = MISSING,
    least: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] = (),
    came_later: bool = False,
    formerly: str = "",
) -> Any:
    """Return a field of a part with the limits that parts mostly have."""
    limits = Range(
        least=least, above=above, choices=choices, came_later=came_later, formerly=formerly
    )
    return ranged(limits, default=default)


def ranged(limits: Range, *, default: Any = MISSING) -> Any:
    """Return a field with its range."""
    return field(default=default, metadata={"range": limits})


def range_of(own: Field[Any]) -> Range:
    """Return the range of a field."""
    return own.metadata.get("range", Range())


@dataclass_transform(frozen_default=True, field_specifiers=(field, setting, ranged))
def part(
    role: str,
    *,
    name: str = "",
    formerly: tuple[str, ...] = (),
    dropped: Mapping[str, Any] | None = None,
) -> Callable[[type[_Part]], type[_Part]]:
    """Declare a part: a frozen dataclass that checks its fields when it is made."""

    def declare(cls: type[_Part]) -> type[_Part]:
        further = cls.__dict__.get("__post_init__")

        def check(self: Any) -> None:
            check_fields(self)
            if further is not None:
                further(self)

        cls.__post_init__ = check  # type: ignore[attr-defined]
        cls.__part__ = PartInfo(role, name, formerly, dropped or {})  # type: ignore[attr-defined]
        return dataclass(frozen=True)(cls)

    return declare


def info_of(kind: Any) -> PartInfo | None:
    """Return what a class declares of itself as a part; None where it is no part."""
    return kind.__dict__.get("__part__") if isinstance(kind, type) else None


# -- checks


def check_fields(part: Any) -> None:
    """Raise unless each field of a part holds what it can work with."""
    hints = get_type_hints(type(part))
    for own in fields(part):
        value = getattr(part, own.name)
        needed, is_right = need(own, hints[own.name], value)
        if not is_right and value is not own.default:  # which may be None
            rest = "" if own.default is MISSING else f", or leave it out for {own.default!r}"
            raise SettingError(
                f"{type(part).__name__} needs {own.name} to be {needed}: got {value!r}. "
                f"Change it{rest}."
            )


def need(own: Field[Any], hint: Any, value: Any) -> tuple[str, bool]:
    """Return what a field needs, and whether a value is that; of other types, anything is."""
    limits = range_of(own)
    if limits.choices and limits.holds is None:
        return f"one of {', '.join(map(repr, limits.choices))}", value in limits.choices
    text, is_right = _typed(hint, value, limits)
    if limits.holds is None:
        return text, is_right
    needed = ", ".join(filter(None, (text, limits.needed)))
    return needed, is_right and limits.holds(value)


def _typed(hint: Any, value: Any, limits: Range) -> tuple[str, bool]:
    """Return what a type and the ends of a range need, and whether a value is that."""
    if hint is bool:
        return "true or false", isinstance(value, bool)
    if hint is str:
        return "printable text", isinstance(value, str) and value.isprintable()
    if hint in (int, int | None):
        least = 1 if limits.least is None else int(limits.least)
        return _whole(value, least=least, most=limits.most)
    if hint in (float, float | None):
        return _number(value, limits)
    if hint == tuple[int, ...]:
        is_list = isinstance(value, list | tuple) and len(value) > 0
        is_sound = is_list and all(_whole(item, least=1, most=None)[1] for item in value)
        return "a list of whole numbers of at least 1, such as [32]", is_sound
    if hint == tuple[str, ...]:
        is_list = isinstance(value, list | tuple)
        is_sound = is_list and all(isinstance(v, str) and v.isprintable() for v in value)
        return "a list of printable texts", is_sound
    if hint == tuple[tuple[str, float], ...]:
        needed = "a table of names and finite numbers, such as {quality = 1.0, cost = -0.5}"
        return needed, _are_weights(value)
    return "", True


def check_number(name: str, number: float, *, above_zero: bool = False) -> None:
    """Raise unless a setting is finite and at least 0, or above it."""
    needed, is_right = _number(number, Range(above=0 if above_zero else None))
    if not is_right:
        raise SettingError(f"The {name} needs to be {needed}: got {number!r}. Try 1.0.")


def check_seed(seed: Any) -> int:
    """Return a seed, if it is a whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise SettingError(
            f"A seed needs to be a whole number: got {seed!r}. Any one will do, 0 for example."
        )
    return int(seed)


def known_name(what: str, name: Any, known: tuple[str, ...], *, or_object: bool = False) -> None:
    """Raise unless `name` is one of the known ones, and suggest the nearest."""
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        other = ", or give an object" if or_object else ""
        hint = f"Did you mean {near[0]!r}?" if near else f"Use one of them{other}."
        raise SettingError(
            f"The {what} needs to be one of {', '.join(known)}: got {name!r}. {hint}"
        )


def _whole(value: Any, *, least: int, most: float | None) -> tuple[str, bool]:
    is_right = _is_whole(value) and value >= least and (most is None or value <= most)
    if most is None:
        return f"a whole number of at least {least}", is_right
    return f"a whole number from {least} to {most:.0f}", is_right


def _number(value: Any, limits: Range) -> tuple[str, bool]:
    least, above, most, below = limits.least, limits.above, limits.most, limits.below
    least = 0.0 if least is None and above is None else least
    ends = []
    if above is not None:
        ends.append(f"above {above:g}")
    elif least != -math.inf:
        ends.append(f"of at least {least:g}")
    if most is not None:
        ends.append(f"at most {most:g}")
    if below is not None:
        ends.append(f"below {below:g}")
    is_right = (
        _is_finite(value)
        and (value > above if above is not None else value >= least)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    return " ".join(["a finite number", " and ".join(ends)]).rstrip(), is_right


def _are_weights(value: Any) -> bool:
    pairs = [*value.items()] if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple):
        return False
    return all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and pair[0].isprintable()
        and pair[0] != ""
        and _is_finite(pair[1])
        for pair in pairs
    )


def _is_whole(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and abs(value) < _LARGEST


def _is_finite(value: Any) -> bool:
    is_number = _is_whole(value) or isinstance(value, float | np.floating)
    return is_number and math.isfinite(value)
