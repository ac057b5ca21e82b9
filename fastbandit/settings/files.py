"""Settings in a TOML file: what it sets stands over a preset, and the preset sets the rest."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from fastbandit.declaration import need
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.files.atomic import write_atomic
from fastbandit.reward.model import NetworkSettings
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import ArmGenerator, GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.search.spanner import SpannerSearch
from fastbandit.settings.blueprint import (
    ArmEffectsPosterior,
    BootstrapPosterior,
    DropoutPosterior,
    FourierPosterior,
    GradientPosterior,
    LastLayerPosterior,
    VariationalPosterior,
)
from fastbandit.training.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit

FORMAT = 1
BASES = ("default", "paper", "paper-scaled")
PARTS: dict[str, type[Any]] = {
    "network": NetworkSettings,
    "exploration.ts": ThompsonSampling,
    "exploration.ucb": UpperConfidence,
    "posterior.dropout": DropoutPosterior,
    "posterior.gradient": GradientPosterior,
    "posterior.last-layer": LastLayerPosterior,
    "posterior.bootstrap": BootstrapPosterior,
    "posterior.variational": VariationalPosterior,
    "posterior.arm-effects": ArmEffectsPosterior,
    "posterior.fourier": FourierPosterior,
    "search.generator": GeneratorSearch,
    "search.ascent": GradientAscent,
    "search.exhaustive": Exhaustive,
    "search.spanner": SpannerSearch,
    "training.reward": RewardFit,
    "training.generator": GeneratorFit,
}
"""The sections of a file, each with the part whose fields it sets."""

Value = bool | int | float | str | Sequence[int]
Sections = Mapping[str, Mapping[str, Value]]
_Part = TypeVar("_Part")

_SHARED = (
    "exploration",
    "posterior",
    "search",
)  # what stands here is meant for each part that has it


@dataclass(frozen=True)
class Settings:
    """A preset by name, and the fields that differ from it, by section (see `PARTS`).

    `source` names where they come from in errors, a file for example.
    """

    base: str = "default"
    sections: Sections = field(default_factory=dict)
    source: str = field(default="the settings", compare=False)

    def __post_init__(self) -> None:
        _known("the base", self.base, BASES, source=self.source)
        checked = {name: self._checked(name, part) for name, part in self.sections.items()}
        kept = {name: part for name, part in checked.items() if part}
        object.__setattr__(self, "sections", kept)

    def of(self, section: str) -> dict[str, Any]:
        """Give the fields that a section sets."""
        return dict(self.sections.get(section, {}))

    def over(self, part: _Part) -> _Part:
        """Give a part with the fields that its section sets."""
        return self._made(part, self.of(section_of(part)))

    def merged(self, sections: Sections) -> Settings:
        """Give settings in which these fields replace those of the same name."""
        names = dict.fromkeys([*self.sections, *sections])
        both = {name: {**self.of(name), **sections.get(name, {})} for name in names}
        return replace(self, sections=both)

    def _checked(self, section: str, values: Mapping[str, Any]) -> dict[str, Value]:
        _known("a section", section, tuple(PARTS), source=self.source)
        known = settable(PARTS[section])
        for name in values:
            _known(f"a field of [{section}]", name, tuple(known), source=self.source)
        own = {one.name: one for one in fields(PARTS[section])}
        checked = {
            name: _value(own[name], known[name], value, where=f"[{section}]", source=self.source)
            for name, value in values.items()
        }
        if PARTS[section] is not NetworkSettings:  # whose fields have no defaults
            self._made(PARTS[section](), checked)
        return checked

    def _made(self, part: _Part, values: dict[str, Any]) -> _Part:
        try:
            return replace(part, **values)  # type: ignore[type-var]
        except SettingError as error:
            raise SettingError(f"{error} It stands in {self.source}.") from error


def section_of(part: Any) -> str:
    """Give the section whose fields a part has."""
    return next((name for name, kind in PARTS.items() if isinstance(part, kind)), "")


def settable(kind: type[Any]) -> dict[str, Any]:
    """Give the fields of a part that a file may set, each with its type."""
    hints = get_type_hints(kind)
    mine = [f.name for f in fields(kind) if hints[f.name] != ArmGenerator | None]
    return {name: hints[name] for name in mine}


def is_settings_file(preset: Any) -> bool:
    """Tell whether a preset is the path of a file rather than a name."""
    return isinstance(preset, Path) or (isinstance(preset, str) and preset.endswith(".toml"))


# -- reading


def read_settings(path: str | Path) -> Settings:
    """Read a file of settings, or say which of its lines cannot be used."""
    raw = _read_toml(Path(path))
    source = str(path)
    if raw.pop("format", None) != FORMAT:
        raise SettingError(
            f"A file of settings needs the line 'format = {FORMAT}' before all sections: "
            f"{source} has none that this version reads. Add it, or install a newer version."
        )
    base = raw.pop("base", "default")
    sections: dict[str, dict[str, Any]] = {}
    for name, table in raw.items():
        for section, values in _split(name, table, source=source):
            sections[section] = {**sections.get(section, {}), **values}
    return Settings(base, sections, source)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingError(
            f"A file of settings needs to exist: found none at {path}. Write one, or give one "
            f"of the presets {', '.join(BASES)}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingError(
            f"The settings in {path} need to be TOML: got {error}. Correct that place."
        ) from error


def _split(name: str, table: Any, *, source: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield sections with their fields: first what all parts share, then what each has alone."""
    groups = dict.fromkeys(section.partition(".")[0] for section in PARTS)
    _known("a section", name, tuple(groups), source=source)
    if not isinstance(table, dict):
        raise SettingError(
            f"The settings in {source} need [{name}] to be a section: got {name} = {table!r}. "
            f"Write its fields below a line [{name}]."
        )
    if name in PARTS:
        yield name, table
        return
    parts = [section for section in PARTS if section.startswith(f"{name}.")]
    loose = {key: value for key, value in table.items() if not isinstance(value, dict)}
    known = {section: settable(PARTS[section]) for section in parts if name in _SHARED}
    for key in loose:
        every = tuple(dict.fromkeys(field for mine in known.values() for field in mine))
        subs = tuple(section.partition(".")[2] for section in parts)
        _known(f"a field or section of [{name}]", key, every + subs, source=source)
    for section, mine in known.items():
        yield section, {key: value for key, value in loose.items() if key in mine}
    for key, value in table.items():
        if isinstance(value, dict):
            subs = tuple(section.partition(".")[2] for section in parts)
            _known(f"a section in [{name}]", key, subs, source=source)
            yield f"{name}.{key}", value


def _known(what: str, name: Any, known: tuple[str, ...], *, source: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Leave it out."
        listed = ", ".join(known) or "(none)"
        raise SettingError(f"{source}: {what} needs to be one of {listed}: got {name!r}. {hint}")


def _value(own: Field[Any], hint: Any, value: Any, *, where: str, source: str) -> Value:
    """Give a value as its field takes it, or say what the field needs."""
    needed, is_right = need(own, hint, value)
    if not is_right:
        raise SettingError(
            f"{source}: {own.name} in {where} needs to be {needed}: got {value!r}. Change it, or "
            f"leave it out for what the base has."
        )
    if isinstance(value, list | tuple):
        return tuple(value)
    if hint in (float, float | None):
        return float(value)
    return int(value) if hint in (int, int | None) else value


# -- writing


def write_settings(path: str | Path, settings: Settings, *, note: str = "") -> None:
    """Write a file that reads back as the same settings; `note` stands above them."""
    path = Path(path)
    lines = [f"# {line}".rstrip() for line in note.splitlines()]
    lines += [f"format = {FORMAT}", f"base = {_toml(settings.base)}"]
    for section, values in settings.sections.items():
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in values.items()]
    try:
        write_atomic(path, "\n".join([*lines, ""]).encode(), sync=False)
    except OSError as error:
        raise SettingError(
            f"A file of settings needs a folder that can be written to: got {path} ({error}). "
            f"Choose another place."
        ) from error


def _toml(value: Value) -> str:
    """Word a value: JSON and TOML agree on plain strings, booleans, finite numbers and lists."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, allow_nan=False)
