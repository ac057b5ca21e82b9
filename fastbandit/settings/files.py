"""Settings in a TOML file: what it sets stands over the defaults, which set the rest."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from fastbandit.declaration import info_of, known_name, need, range_of
from fastbandit.errors import SettingError
from fastbandit.settings.parts import Modules, find, parts_of

FORMAT = 1
_SHARED = ("exploration", "posterior", "search")  # what stands here is for each part that has it
_ROLES = ("network", *_SHARED, "training")

Value = bool | int | float | str | Sequence[int]
Sections = Mapping[str, Mapping[str, Value]]
_Part = TypeVar("_Part")


@cache
def sections() -> dict[str, type[Any]]:
    """Return the sections of a file, each with the part whose fields it sets."""
    every = {f"{role}.{name}": kind for role in _ROLES for name, kind in parts_of(role).items()}
    named = {name.removesuffix("."): kind for name, kind in every.items()}
    return {name: kind for name, kind in named.items() if name != "training" and settable(kind)}


def settable(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a part that a file may set, each with its type."""
    hints = get_type_hints(kind)
    return {own.name: hints[own.name] for own in fields(kind)}


def section_of(part: Any) -> str:
    """Return the section whose fields a part has."""
    kind = type(part)
    info = info_of(kind)
    if info is None:
        return ""
    is_ours = kind in parts_of(info.role).values()
    name = info.name if is_ours else f"{kind.__module__}:{kind.__qualname__}"
    return f"{info.role}.{name}".removesuffix(".")


@dataclass(frozen=True)
class Settings:
    """The fields that differ from the defaults, by section (see `sections`).

    `source` names where they come from in errors, a file for example. A section may be that of a
    part from outside the package, [search."my_module:MySearch"], if its module is among `modules`.
    """

    sections: Sections = field(default_factory=dict)
    source: str = field(default="the settings", compare=False)
    modules: Modules = field(default=(), compare=False)

    def __post_init__(self) -> None:
        checked = {name: self._checked(name, part) for name, part in self.sections.items()}
        object.__setattr__(self, "sections", {name: part for name, part in checked.items() if part})

    def of(self, section: str) -> dict[str, Any]:
        """Return the fields that a section sets."""
        return dict(self.sections.get(section, {}))

    def over(self, part: _Part) -> _Part:
        """Return a part with the fields that its section sets."""
        return self._made(part, self.of(section_of(part)))

    def merged(self, sections: Sections) -> Settings:
        """Return settings in which these fields replace those of the same name."""
        names = dict.fromkeys([*self.sections, *sections])
        both = {name: {**self.of(name), **sections.get(name, {})} for name in names}
        return replace(self, sections=both)

    def _checked(self, section: str, values: Mapping[str, Any]) -> dict[str, Value]:
        kind = self._kind(section)
        own = {one.name: one for one in fields(kind)}
        former = {range_of(one).formerly: name for name, one in own.items()}
        values = {former.get(name, name): value for name, value in values.items()}
        for name in values:
            known_name(f"field of [{section}] in {self.source}", name, tuple(own))
        hints = settable(kind)
        values = {
            name: self._fitted(own[name], hints[name], value, where=f"[{section}]")
            for name, value in values.items()
        }
        if not any(
            one.default is MISSING and one.default_factory is MISSING for one in own.values()
        ):
            self._made(kind(), dict(values))
        return dict(values)

    def _kind(self, section: str) -> type[Any]:
        role, _, name = section.partition(".")
        if ":" in name and role in _SHARED:
            return find(role, name, modules=self.modules)
        known_name(f"section in {self.source}", section, tuple(sections()))
        return sections()[section]

    def _fitted(self, own: Field[Any], hint: Any, value: Any, *, where: str) -> Value:
        """Return a value as its field takes it, or say what the field needs."""
        needed, is_right = need(own, hint, value)
        if not is_right:
            raise SettingError(
                f"{self.source}: {own.name} in {where} needs to be {needed}: got {value!r}. "
                f"Change it, or leave it out for the default."
            )
        if value is None or hint in (bool, str):
            return value
        if isinstance(value, list | tuple):
            return tuple(value)
        return float(value) if hint in (float, float | None) else int(value)

    def _made(self, part: _Part, values: dict[str, Any]) -> _Part:
        try:
            return replace(part, **values)  # type: ignore[type-var]
        except SettingError as error:
            raise SettingError(f"{error} It stands in {self.source}.") from error


# -- reading


def is_settings_file(preset: Any) -> bool:
    """Return whether a preset is the path of a file rather than a name."""
    return isinstance(preset, Path) or (isinstance(preset, str) and preset.endswith(".toml"))


def read_settings(path: str | Path, *, modules: Modules = ()) -> Settings:
    """Read a file of settings, or say which of its lines cannot be used."""
    fix = "Write one, or leave out preset= for the defaults."
    raw = read_toml(Path(path), what="A file of settings", fix=fix)
    return parsed(raw, source=str(path), modules=modules)


def parsed(raw: dict[str, Any], *, source: str, modules: Modules = ()) -> Settings:
    """Return the settings that a file holds, whose values were read."""
    if raw.pop("format", None) != FORMAT:
        raise SettingError(
            f"A file of settings needs the line 'format = {FORMAT}' before all sections: "
            f"{source} has none that this version reads. Add it, or install a newer version."
        )
    if raw.pop("base", "default") != "default":
        raise SettingError(
            f"A file of settings stands over the defaults: {source} names another base. The "
            f"printed recipe is lab.experiments.paper_preset; remove the line 'base'."
        )
    found: dict[str, dict[str, Any]] = {}
    for name, table in raw.items():
        for section, values in _split(name, table, source=source):
            found[section] = {**found.get(section, {}), **values}
    return Settings(found, source, tuple(modules))


def read_toml(path: Path, *, what: str, fix: str) -> dict[str, Any]:
    """Read a file; `what` names it in errors, and `fix` says what to do where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingError(f"{what} needs to exist: found none at {path}. {fix}") from error
    except (ValueError, RecursionError, OSError) as error:
        raise SettingError(
            f"The file {path} needs to be TOML: got {error}. Correct that place."
        ) from error


def check_section(name: str, table: Any, *, source: str) -> None:
    if not isinstance(table, dict):
        raise SettingError(
            f"{source} needs [{name}] to be a section: got {name} = {table!r}. Write its keys "
            f"below a line [{name}]."
        )


def _split(name: str, table: Any, *, source: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield sections with their fields: first what all parts share, then what each has alone."""
    name = "posterior" if name == "doubt" else name  # as files of before say
    known_name(f"section in {source}", name, _ROLES)
    check_section(name, table, source=source)
    if name in sections():
        yield name, table
        return
    mine = {key: kind for key, kind in sections().items() if key.startswith(f"{name}.")}
    loose = {key: value for key, value in table.items() if not isinstance(value, dict)}
    known = {key: _accepted(kind) for key, kind in mine.items() if name in _SHARED}
    subs = tuple(key.partition(".")[2] for key in mine)
    for key in loose:
        every = tuple(dict.fromkeys(one for own in known.values() for one in own))
        known_name(f"field or section of [{name}] in {source}", key, every + subs)
    for section, own in known.items():
        yield section, {key: value for key, value in loose.items() if key in own}
    for key, value in table.items():
        if isinstance(value, dict):
            if ":" not in key:
                known_name(f"section of [{name}] in {source}", key, subs)
            yield f"{name}.{key}", value


def _accepted(kind: type[Any]) -> list[str]:
    """Return the names of a part's fields, those of before among them."""
    names = ((own.name, range_of(own).formerly) for own in fields(kind))
    return [name for both in names for name in both if name]
