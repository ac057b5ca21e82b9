"""Settings of the service to read, and what is said of those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import SettingError
from fastbandit.settings.service import Config, Setting, all_settings
from fastbandit.settings.service_files import read_config

EVERY = [pytest.param(setting, id=setting.name) for setting in all_settings()]
OTHER: dict[str, Any] = {
    "server.host": "localhost",
    "server.tls_cert": "",
    "server.tls_key": "",
    "server.log_level": "debug",
    "arms.file": "arms.csv",
    "reward.kind": "real",
    "reward.default": 1.0,
    "reward.combine": "first",
    "reward.weights": (),
    "reward.missing": "skip",
    "select.exploration": "ucb",
    "select.search": "ascent",
    "select.posterior": "dropout",
    "select.preset": "mine.toml",
    "personalizer.prefix": "/other",
    "shadow.baseline": "random",
    "context.schema": "",
    "arms.schema": "arms-schema.json",
    "log.url": "",
    "snapshots.url": "",
}
"""Values other than the defaults, for settings where any other of the type will not do."""


def other_value(setting: Setting) -> Any:
    if setting.name in OTHER:
        return OTHER[setting.name]
    others: dict[Any, Any] = {bool: not setting.default, int: 7, float: 0.5, str: "other"}
    return others.get(setting.kind, ("red", "big"))


def value_of(config: Config, setting: Setting) -> Any:
    return getattr(getattr(config, setting.section), setting.key)


def file_with(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(SettingError) as caught:
        call()
    return str(caught.value)


def in_file(folder: Path, text: str) -> str:
    return refusal(lambda: read_config(file_with(folder, text), environ={}))


def in_environment(**environ: str) -> str:
    return refusal(lambda: read_config(None, environ=environ))
