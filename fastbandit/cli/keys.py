"""The commands `keys create | list | revoke`: who may use a service."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from fastbandit.serving.keys import (
    KEYS_FILE,
    SCOPES,
    Key,
    KeyRing,
    create_key,
    keys_path,
    revoke_key,
)
from fastbandit.settings.service_files import find_config, read_config

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _places(command: _Command) -> _Command:
    """Add the options that say which service is meant."""
    config = click.option(
        "--config", type=click.Path(path_type=Path), help="The service's file of settings."
    )
    data_dir = click.option(
        "--data-dir", type=click.Path(path_type=Path), help="Its data folder, in place of these."
    )
    return config(data_dir(command))


@click.group("keys")
def command() -> None:
    """Create, list and revoke the API keys of a service."""


@command.command("create")
@click.option("--name", required=True, help="Who will use it.")
@click.option("--scopes", required=True, help=f"Some of {','.join(SCOPES)}; admin has all.")
@click.option(
    "--expires",
    type=click.DateTime(formats=["%Y-%m-%d"]),
    help="The last day on which it is taken, such as 2027-01-31 (UTC); else it has none.",
)
@_places
def create(
    name: str, scopes: str, expires: datetime | None, config: Path | None, data_dir: Path | None
) -> None:
    """Create a key, and print it: only now, for the service keeps but a hash."""
    named = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    day = expires.date() if expires else None
    path = keys_file(config, data_dir)
    text, key = create_key(path, name=name, scopes=named, expires=day)
    click.echo(text)
    click.echo(
        f"{_worded(key)}. Kept as a hash in {path}: copy the key now, it is not shown again.",
        err=True,
    )


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_places
def list_keys(as_json: bool, config: Path | None, data_dir: Path | None) -> None:
    """List the keys, without their secrets."""
    path = keys_file(config, data_dir)
    keys = KeyRing.load(path).keys
    if as_json:
        click.echo(json.dumps([_told(key) for key in keys], indent=1))
        return
    for key in keys:
        click.echo(_worded(key))
    if not keys:
        click.echo(f"There are no keys in {path}.")


@command.command("revoke")
@click.argument("id")
@_places
def revoke(id: str, config: Path | None, data_dir: Path | None) -> None:
    """Revoke the key with this ID; a running service refuses it from then on."""
    click.echo(f"Revoked: {_worded(revoke_key(keys_file(config, data_dir), id))}")


def keys_file(config: Path | None, data_dir: Path | None) -> Path:
    """Give the file that holds the keys of a service."""
    if data_dir is None:
        return keys_path(read_config(find_config(config)).server)
    return data_dir / KEYS_FILE


def _told(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": list(key.scopes),
        "created": str(key.created),
        "expires": str(key.expires) if key.expires else None,
    }


def _worded(key: Key) -> str:
    end = f"expires after {key.expires}" if key.expires else "does not expire"
    return f"{key.id}  {key.name}  {','.join(key.scopes)}  created {key.created}, {end}"
