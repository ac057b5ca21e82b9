"""Suites as files: which policies play which datasets, how long and with how many seeds."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from lab.experiments import datasets, policies
from lab.experiments.recipe import recipe_for

_FOLDER = Path(__file__).parent / "suites"
_SHARED = ("rounds", "batch", "seeds", "presets", "policies", "training")
_DEFAULTS = {"presets": ["default"], "training": False}


@dataclass(frozen=True)
class Part:
    """One dataset of a suite; with `training`, updates are timed as well."""

    dataset: str
    options: Mapping[str, bool | int | float | str]
    rounds: int
    batch: int
    seeds: int
    presets: tuple[str, ...]
    policies: tuple[str, ...]
    training: bool


@dataclass(frozen=True)
class Suite:
    """What a file of a suite says."""

    name: str
    title: str
    parts: tuple[Part, ...]


def suite_names() -> tuple[str, ...]:
    """Name the suites that come with the package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def read_suite(name: str) -> Suite:
    """Read a suite by its name, or by the path of a file."""
    path = _FOLDER / f"{name}.toml" if name in suite_names() else Path(name)
    table = _read_toml(name, path)
    _check_keys("key of a suite", table, ("title", *_SHARED, "datasets"))
    entries = table.get("datasets")
    if not isinstance(entries, list) or not entries:
        raise SettingError(
            f"A suite needs datasets to play: {path} has none. Begin one with [[datasets]] and "
            f"give its name."
        )
    shared = {**_DEFAULTS, **{key: table[key] for key in _SHARED if key in table}}
    parts = tuple(_read_part(entry, shared) for entry in entries)
    return Suite(path.stem, str(table.get("title", path.stem)), parts)


def _read_toml(name: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"A suite needs to be TOML: {path} is not. {error}.") from error
    except OSError as error:
        raise SettingError(
            f"A suite needs to be one of {', '.join(suite_names())} or the path of a TOML file: "
            f"got {name!r}, which cannot be read ({error.strerror})."
        ) from error


def _read_part(entry: Any, shared: Mapping[str, Any]) -> Part:
    if not isinstance(entry, dict) or "name" not in entry:
        raise SettingError(
            f"A dataset of a suite needs a name: got {entry!r}. Use one of "
            f"{', '.join(datasets.NAMES)}."
        )
    name = entry["name"]
    known_name("dataset", name, datasets.NAMES)
    _check_keys(f"key of the dataset {name}", entry, ("name", "options", *_SHARED))
    merged = {**shared, **entry}
    if not isinstance(merged["training"], bool):
        raise SettingError(
            f"training needs to be true or false: {name} has {merged['training']!r}."
        )
    return Part(
        dataset=name,
        options=_read_options(name, entry.get("options", {})),
        rounds=_read_count(name, merged, "rounds"),
        batch=_read_count(name, merged, "batch"),
        seeds=_read_count(name, merged, "seeds"),
        presets=check_presets(_read_names(name, merged, "presets")),
        policies=check_policies(_read_names(name, merged, "policies")),
        training=merged["training"],
    )


def check_presets(names: Sequence[str]) -> tuple[str, ...]:
    """Raise unless each is the name of a preset, or a file of settings that can be used."""
    for name in names:
        recipe_for(name)
    return tuple(names)


def check_policies(names: Sequence[str]) -> tuple[str, ...]:
    """Raise unless each is the name of a policy."""
    for name in names:
        known_name("policy", name, policies.NAMES)
    return tuple(names)


def _check_keys(what: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        known_name(what, key, known)


def _read_options(name: str, options: Any) -> Mapping[str, bool | int | float | str]:
    if not isinstance(options, dict):
        raise SettingError(f"The options of {name} need to be a table: got {options!r}.")
    for option, value in options.items():
        is_number = isinstance(value, int | float) and math.isfinite(value)
        if not is_number and not isinstance(value, str):
            raise SettingError(
                f"An option needs to be a number, a text, true or false: {name} has {option} = "
                f"{value!r}."
            )
    return options


def _read_count(name: str, merged: Mapping[str, Any], key: str) -> int:
    count = merged.get(key)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        got = "nothing" if count is None else repr(count)
        raise SettingError(
            f"{key} needs to be a whole number of at least 1: {name} has {got}. Write it there, "
            f"or above the datasets for all."
        )
    return count


def _read_names(name: str, merged: Mapping[str, Any], key: str) -> list[str]:
    names = merged.get(key)
    is_list = isinstance(names, list) and all(isinstance(each, str) for each in names)
    if not is_list or not names:
        got = "nothing" if names is None else repr(names)
        raise SettingError(
            f"{key} needs to be a list of names: {name} has {got}. Write it there, or above the "
            f"datasets for all."
        )
    return names
