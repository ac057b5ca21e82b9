"""A recipe: which base an experiment builds its bandits on, and settings that stand over it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.files.atomic import raising, write_atomic
from fastbandit.settings.files import (
    FORMAT,
    Sections,
    Settings,
    Value,
    is_settings_file,
    parsed,
    read_settings,
)
from fastbandit.settings.service_files import written

BASES = ("default", "paper", "paper-scaled")
"""What the product does by default, and the two readings of the printed recipe."""


@dataclass(frozen=True)
class Recipe:
    """A base by name, and the settings that stand over it."""

    base: str = "default"
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        known_name("preset", self.base, BASES)

    @property
    def sections(self) -> Sections:
        return self.settings.sections

    def of(self, section: str) -> dict[str, Any]:
        """Return the fields that a section sets."""
        return self.settings.of(section)

    def merged(self, sections: Sections) -> Recipe:
        """Return a recipe in which these fields replace those of the same name."""
        return replace(self, settings=self.settings.merged(_current(sections)))

    def to_json(self) -> dict[str, Any]:
        """Return the base and the sections as JSON reads them back."""
        found: dict[str, Any] = json.loads(
            json.dumps({"base": self.base, "sections": dict(self.sections)})
        )
        return found


Preset = str | Path | Settings | Recipe
"""The name of a base, the path of a file of settings, settings over the defaults, or a recipe."""


def recipe_for(preset: Preset) -> Recipe:
    """Return the recipe that a name, a file or an object stands for."""
    if isinstance(preset, Recipe):
        return preset
    if isinstance(preset, Settings):
        return Recipe(settings=preset)
    if is_settings_file(preset):
        return _read(Path(preset))
    return Recipe(str(preset))


def recipe_from_json(written: Mapping[str, Any]) -> Recipe:
    """Return the recipe that a result holds, also by the names of before."""
    return Recipe(written["base"], Settings(_current(written["sections"])))


def write_recipe(path: Path, recipe: Recipe, *, note: str = "") -> None:
    """Write a file that reads back as the same recipe; over the defaults any bandit takes it."""
    lines = [f"# {line}".rstrip() for line in note.splitlines()]
    lines += [f"format = {FORMAT}"]
    lines += [f'base = "{recipe.base}"'] if recipe.base != "default" else []
    for section, values in recipe.sections.items():
        role, _, name = section.partition(".")
        lines += ["", f'[{role}."{name}"]' if ":" in name else f"[{section}]"]
        lines += [f"{name} = {written(value)}" for name, value in values.items()]
    needs = f"A file of settings needs a folder that can be written to: {path} is in none"
    with raising(SettingError, needs, fix="Choose another place."):
        write_atomic(path, "\n".join([*lines, ""]).encode(), sync=False)


def _read(path: Path) -> Recipe:
    """Read a file of settings, in which a line `base = "paper"` may stand before all sections."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Recipe(settings=read_settings(path))  # which says what is wrong with the file
    base = raw.pop("base", "default")
    known_name(f"base in {path}", base, BASES)
    return Recipe(base, parsed(raw, source=str(path)))


def _current(sections: Sections) -> Sections:
    """Return sections by their present names: a posterior was called a doubt before."""
    return {re.sub(r"^doubt\b", "posterior", name): part for name, part in sections.items()}


def write_settings(path: str | Path, settings: Settings, *, note: str = "") -> None:
    """Write a file that reads back as the same settings; `note` stands above them."""
    path = Path(path)
    lines = [f"# {line}".rstrip() for line in note.splitlines()]
    lines += [f"format = {FORMAT}"]
    for section, values in settings.sections.items():
        role, _, name = section.partition(".")
        lines += ["", f'[{role}."{name}"]' if ":" in name else f"[{section}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in values.items()]
    try:
        write_atomic(path, "\n".join([*lines, ""]).encode(), sync=False)
    except OSError as error:
        raise SettingError(
            f"A file of settings needs a folder that can be written to: got {path} ({error}). "
            f"Choose another place."
        ) from error


def _toml(value: Value) -> str:
    """Return a value as TOML, which agrees with JSON on texts, booleans, numbers and lists."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, allow_nan=False)
