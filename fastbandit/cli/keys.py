"""The commands `keys create | list | revoke`: who may use a service."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from fastbandit.cli.options import (
    config_option,
    data_dir_option,
    print_json,
    read_service,
    service_options,
)
from fastbandit.serving.keys import (
    KEYS_FILE,
    SCOPES,
    Key,
    KeyRing,
    create_key,
    keys_path,
    revoke_key,
)


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
@config_option
@data_dir_option
def create(
    name: str, scopes: str, expires: datetime | None, *, path: Path | None, data_dir: Path | None
) -> None:
    """Create a key, and print it: only now, for the service stores but a hash."""
    named = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    day = expires.date() if expires else None
    file = keys_file(path, data_dir)
    text, key = create_key(file, name=name, scopes=named, expires=day)
    click.echo(text)
    click.echo(
        f"{_line(key)}. Stored as a hash in {file}: copy the key now, it is not shown again.",
        err=True,
    )


@command.command("list")
@service_options
def list_keys(as_json: bool, path: Path | None, data_dir: Path | None) -> None:
    """List the keys, without their secrets."""
    file = keys_file(path, data_dir)
    keys = KeyRing.load(file).keys
    if as_json:
        print_json([key.to_json() for key in keys])
        return
    for key in keys:
        click.echo(_line(key))
    if not keys:
        click.echo(f"There are no keys in {file}.")


@command.command("revoke")
@click.argument("id")
@config_option
@data_dir_option
def revoke(id: str, path: Path | None, data_dir: Path | None) -> None:
    """Revoke the key with this ID; a running service rejects it from then on."""
    click.echo(f"Revoked: {_line(revoke_key(keys_file(path, data_dir), id))}")


def keys_file(path: Path | None, data_dir: Path | None) -> Path:
    return keys_path(read_service(path).server) if data_dir is None else data_dir / KEYS_FILE


def _line(key: Key) -> str:
    end = f"expires after {key.expires}" if key.expires else "does not expire"
    return f"{key.id}  {key.name}  {','.join(key.scopes)}  created {key.created}, {end}"
