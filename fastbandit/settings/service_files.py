"""Reads the settings of the service: the command line, else the environment, else a TOML file."""

from __future__ import annotations

import csv
import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name, need, range_of
from fastbandit.errors import SettingError
from fastbandit.settings.files import check_section, read_toml
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service import SECTIONS, Config, Setting, all_settings, settings_of

_LOGGER = logging.getLogger("fastbandit.settings")
CONFIG_FILE = "fastbandit.toml"
_PREFIX = "FASTBANDIT_"
_HUGE = 1e300
_FORMERLY = {
    "select.explore": "exploration",
    "select.floor": "epsilon",
    "learn.quality_floor": "min_quality",
}
"""Keys that files of before have under another name."""
_DROPPED = {
    "learn.min_recall": "the recall of an index is shown, and refuses no version",
    "learn.recall_floor": "the recall of an index is shown, and refuses no version",
}
"""Settings that are read and not used any more, and why."""


def written(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        named = ", ".join(f"{json.dumps(name)} = {number}" for name, number in value)
        return f"{{{named}}}"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def find_config(path: Path | None = None) -> Path | None:
    """Return the file that was named, else fastbandit.toml where the working directory has it."""
    if path is None and Path(CONFIG_FILE).exists():
        return Path(CONFIG_FILE)
    return path


def read_config(
    path: Path | None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Read all settings, or say which cannot be used, why, and where it came from.

    `environ` is the environment of this process unless given. `overrides` come from the
    command line, such as {"server.port": 8081}; those that are None count as not given.
    """
    known = {setting.name: setting for setting in all_settings()}
    values = {name: setting.default for name, setting in known.items()}
    sources = dict.fromkeys(known, "default")
    found = [*_from_file(path)] if path is not None else []
    found += _from_environment(os.environ if environ is None else environ)
    for name, value in (overrides or {}).items():
        known_name("setting", name, tuple(known))
        if value is not None:
            found.append((name, str(value) if isinstance(value, Path) else value, "command line"))
    for name, value, source in found:
        values[name] = check_value(known[name], value, source=source)
        sources[name] = source
    made = {
        section: kind(**{own.key: values[own.name] for own in settings_of(section)})
        for section, kind in SECTIONS.items()
    }
    return Config(**made, sources=sources)


def _from_file(path: Path) -> Iterator[tuple[str, Any, str]]:
    """Return the name, value and source of each setting in a file."""
    raw = read_toml(path, what="A config file", fix=f"Run: fastbandit init {path}")
    for section, table in raw.items():
        known_name(f"section in {path}", section, tuple(SECTIONS))
        check_section(section, table, source=str(path))
        keys = tuple(setting.key for setting in settings_of(section))
        for given, value in table.items():
            if _is_dropped(f"{section}.{given}", f"file {path}"):
                continue
            key = _FORMERLY.get(f"{section}.{given}", given)
            known_name(f"key of [{section}] in {path}", key, keys)
            if key == "schema" and isinstance(value, str) and value:
                value = str(path.parent / value)
            yield f"{section}.{key}", value, f"file {path}"


def _is_dropped(name: str, source: str) -> bool:
    """Return whether a setting is not used any more, and say so in the log."""
    if name in _DROPPED:
        _LOGGER.warning(f"{name} from {source} is not used any more: {_DROPPED[name]}")
    return name in _DROPPED


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """Return the settings in variables that begin with FASTBANDIT_ and a section."""
    for section in SECTIONS:
        known = {setting.variable: setting for setting in settings_of(section)}
        for variable in sorted(environ):
            if variable.startswith(f"{_PREFIX}{section}".upper()):
                name = variable.removeprefix(_PREFIX).lower().replace("_", ".", 1)
                if _is_dropped(name, f"environment {variable}"):
                    continue
                known_name("environment variable", variable, tuple(known))
                own, text = known[variable], environ[variable]
                yield own.name, _parsed(own.kind, text), f"environment {variable}"


def _parsed(kind: Any, text: str) -> Any:
    """Turn text into a value of a kind; text that cannot is left for the check to refuse."""
    try:
        if kind is bool:
            return {"true": True, "false": False}.get(text.strip().lower(), text)
        if kind in (int, float):
            return kind(text)
        if kind is not str:
            listed = next(csv.reader([text], skipinitialspace=True), [])
            parts = [part.strip() for part in listed]
            is_json = text.lstrip().startswith(("[", "{"))
            return json.loads(text) if is_json else [*filter(None, parts)]
    except ValueError:
        pass
    return text


# -- checks


def check_value(setting: Setting, value: Any, *, source: str = "code") -> Any:
    """Return a value as its setting takes it, or raise."""
    needed, is_right = need(setting.own, setting.kind, value)
    if is_right and not (setting.kind is float and abs(value) >= _HUGE):
        if setting.kind is float:
            return float(value)
        if isinstance(value, Mapping):
            return tuple((name, float(number)) for name, number in value.items())
        return tuple(value) if isinstance(value, list) else value
    names = range_of(setting.own).choices
    if names and isinstance(value, str):
        try:
            known_name(f"setting {setting.name}", value, names)
        except SettingError as error:
            raise SettingError(f"{error} It came from {source}.") from None
    got = hide_password(repr(value))
    raise SettingError(
        f"The setting {setting.name} needs {needed}: got {got} from {source}. Correct it there."
    )
