"""The command `config show`: each setting of a service, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service import Config, Setting, all_settings
from fastbandit.settings.service_files import find_config, read_config, written


@click.group("config")
def command() -> None:
    """See the settings of a service."""


@command.command("show")
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    help="The file of settings; else fastbandit.toml, where there is one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(path: Path | None, as_json: bool) -> None:
    """Print each value, and where it came from."""
    config = read_config(find_config(path))
    if as_json:
        told = {own.name: _told(config, own) for own in all_settings()}
        click.echo(json.dumps(told, indent=1, ensure_ascii=False))
        return
    lines = [f"{own.name} = {written(value_of(config, own))}" for own in all_settings()]
    width = max(map(len, lines))
    for own, line in zip(all_settings(), lines, strict=True):
        click.echo(f"{line:<{width}}  # {config.sources[own.name]}")


def _told(config: Config, own: Setting) -> dict[str, Any]:
    return {"value": value_of(config, own), "source": config.sources[own.name]}


def value_of(config: Config, own: Setting) -> Any:
    """Give the value that a setting has, without the password of a URL."""
    value = getattr(getattr(config, own.section), own.key)
    return hide_password(value) if own.key == "url" else value
