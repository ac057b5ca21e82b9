"""The one mechanism that turns names into parts, and parts into JSON values and back.

A part is found by its declaration alone (`fastbandit.declaration.part`): every module of the rooms
below is looked through. One from outside the package is named by its import path,
"my_package.my_module:MySearch", and is imported only from modules that the caller allows.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastbandit.declaration import info_of, known_name, range_of
from fastbandit.errors import SettingError, SnapshotError

_ROOMS = (
    "fastbandit.arms",
    "fastbandit.exploration",
    "fastbandit.features",
    "fastbandit.reward",
    "fastbandit.search",
    "fastbandit.settings",
    "fastbandit.training",
)
Modules = Iterable[str]
"""Names of modules, or of packages, from which parts may be imported."""


@cache
def _classes() -> Mapping[str, type[Any]]:
    """Return the parts of the package by the names of their classes, former ones among them."""
    found: dict[str, type[Any]] = {}
    for module in (name for room in _ROOMS for name in _modules_of(room)):
        for kind in vars(import_module(module)).values():
            info = info_of(kind)
            if info is not None and kind.__module__ == module:
                found |= dict.fromkeys((kind.__name__, *info.formerly), kind)
    return found


def _modules_of(room: str) -> list[str]:
    """Return the modules of a room that declare a part: others may need what is not installed."""
    spec = find_spec(room)
    assert spec is not None
    below = pkgutil.iter_modules(spec.submodule_search_locations or (), f"{room}.")
    names = [room, *(one.name for one in below)]
    return [name for name in names if "@part(" in _source(name)]


def _source(module: str) -> str:
    spec = find_spec(module)
    loader: Any = None if spec is None else spec.loader
    return str(loader.get_source(module) or "")


def parts_of(role: str) -> dict[str, type[Any]]:
    """Return the package's parts of a role by their names, in the order of these."""
    infos = [(info_of(kind), kind) for kind in _classes().values()]
    named = {info.name: kind for info, kind in infos if info is not None and info.role == role}
    return dict(sorted(named.items()))


@cache
def names_of(role: str) -> tuple[str, ...]:
    """Return the names of the package's parts of a role, without importing any of them."""
    sources = [_source(name) for room in _ROOMS for name in _modules_of(room)]
    pattern = rf'@part\(\s*"{role}",\s*name="([^"]+)"'
    return tuple(sorted(name for source in sources for name in re.findall(pattern, source)))


def find(role: str, name: str, *, modules: Modules = ()) -> type[Any]:
    """Return the part of a role that a name, or an import path, stands for."""
    if ":" in name:
        return imported(name, modules=modules)
    known = parts_of(role)
    known_name(role, name, tuple(known), or_object=True)
    return known[name]


def imported(path: str, *, modules: Modules) -> type[Any]:
    """Import a part from outside the package, if the caller allows its module."""
    module, _, name = path.partition(":")
    if not any(module == one or module.startswith(f"{one}.") for one in modules):
        raise SettingError(
            f"A part from outside needs a module that is allowed: got {path!r}, and allowed are "
            f"{', '.join(modules) or 'none'}. Name {module!r} in part_modules if you trust it."
        )
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"A part needs to be importable: {path!r} is not ({error}). Install its package, or "
            f"correct the path."
        ) from error
    if info_of(kind) is None:
        raise SettingError(
            f"A part needs to be declared by @part(role, name=...) of fastbandit.declaration: "
            f"{path!r} is not. Declare it."
        )
    return kind


# -- values that can be written down


def write(part: Any) -> Any:
    """Return a part as JSON values: its name and its settings."""
    if isinstance(part, bool | int | float | str) or part is None:
        return part
    if isinstance(part, tuple | list):
        return [write(item) for item in part]
    kind = type(part)
    if not is_dataclass(part) or info_of(kind) is None:
        raise SettingError(
            f"Only declared parts can be saved: got a {kind.__name__}. Declare it by @part(role, "
            f"name=...) of fastbandit.declaration."
        )
    is_ours = _classes().get(kind.__name__) is kind
    name = kind.__name__ if is_ours else f"{kind.__module__}:{kind.__qualname__}"
    late = {own.name: own.default for own in fields(part) if range_of(own).came_later}
    values = {own.name: getattr(part, own.name) for own in fields(part)}
    stored = {key: value for key, value in values.items() if value != late.get(key, MISSING)}
    return {"part": name, **{key: write(value) for key, value in stored.items()}}


def read(written: Any, *, modules: Modules = ()) -> Any:
    """Return the part that JSON values describe; those of earlier formats are read too."""
    if isinstance(written, list):
        return tuple(read(item, modules=modules) for item in written)
    if not isinstance(written, dict):
        return written
    name = str(written.get("part"))
    values = {key: item for key, item in written.items() if key != "part"}
    try:
        kind = imported(name, modules=modules) if ":" in name else _classes()[name]
        values = {key: read(item, modules=modules) for key, item in values.items()}
        return kind(**_current(kind, values))
    except (KeyError, TypeError, SettingError) as error:
        raise SnapshotError(
            f"The snapshot names a part that this version cannot build: {name!r} with "
            f"{sorted(values)} ({error}). Load it with the version that saved it."
        ) from error


def _current(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return fields as a part has them now: renamed, and without those it no longer has."""
    renamed = {range_of(own).formerly: own.name for own in fields(kind) if range_of(own).formerly}
    dropped = info_of(kind).dropped  # type: ignore[union-attr]
    lost = [key for key, value in dropped.items() if values.get(key, value) != value]
    if lost:
        raise SettingError(f"{kind.__name__} has no {lost[0]}={values[lost[0]]!r} any more")
    return {renamed.get(key, key): value for key, value in values.items() if key not in dropped}
