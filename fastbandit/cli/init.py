"""The command `init`: a commented file of settings to start from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from fastbandit.errors import SettingError
from fastbandit.files.atomic import write_atomic
from fastbandit.settings.service import SECTIONS, settings_of
from fastbandit.settings.service_files import CONFIG_FILE, written

_HEAD = (
    "Settings of a fastbandit service. A line that is commented out shows the default.",
    "An environment variable stands over this file: FASTBANDIT_SERVER_PORT over [server] port.",
)


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path), default=Path(CONFIG_FILE))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(path: Path, force: bool) -> None:
    """Write a commented file of all settings to PATH (fastbandit.toml)."""
    write_config(path, force=force)
    named = shlex.quote(str(path))
    click.echo(f"{path} is written. Set context.features and arms.file in it, then run:")
    click.echo(f"  fastbandit config show --config {named}")
    click.echo(f"  fastbandit serve --config {named}")


def write_config(
    path: Path, *, force: bool = False, values: Mapping[str, Any] | None = None
) -> None:
    """Write a file of all settings: those given, such as {"server.port": 80}, else the defaults.

    It replaces none without `force`.
    """
    if path.exists() and not force:
        raise SettingError(
            f"`fastbandit init` needs a path where no file is: found one at {path}. Name another, "
            f"or add --force to replace it."
        )
    try:
        write_atomic(path, "\n".join([*_lines(values or {}), ""]).encode(), sync=False)
    except OSError as error:
        raise SettingError(
            f"A file of settings needs a folder that can be written to: got {path} ({error}). "
            f"Choose another place."
        ) from error


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {line}" for line in _HEAD)
    for section, kind in SECTIONS.items():
        yield from ("", f"# {kind.__doc__}", f"[{section}]")
        known = {own.name: own for own in settings_of(section)}
        for own in known.values():
            mark = "" if own.is_asked or own.name in values else "# "
            value = values.get(own.name, own.default)
            yield f"{mark}{own.key} = {written(value)}  # {own.meaning}"
        for name, value in values.items():
            if name.startswith(f"{section}.") and name not in known:
                yield f"{name.partition('.')[2]} = {written(value)}"
