"""The command `config show`: each setting of a service, and where it came from."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.options import config_option, json_option, print_json, read_service
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service import all_settings
from fastbandit.settings.service_files import written


@click.group("config")
def command() -> None:
    """See the settings of a service."""


@command.command("show")
@config_option
@json_option
def show(path: Path | None, as_json: bool) -> None:
    """Print each value, and where it came from."""
    config = read_service(path)
    values = {}
    for own in all_settings():
        value = getattr(getattr(config, own.section), own.key)
        values[own.name] = hide_password(value) if own.key == "url" else value
    if as_json:
        print_json(
            {name: {"value": v, "source": config.sources[name]} for name, v in values.items()}
        )
        return
    lines = {name: f"{name} = {written(value)}" for name, value in values.items()}
    width = max(map(len, lines.values()))
    for name, line in lines.items():
        click.echo(f"{line:<{width}}  # {config.sources[name]}")
