"""The command `snapshots`: the versions of a service's bandit, and those refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from fastbandit.settings.service import Config
from fastbandit.settings.service_files import find_config, read_config
from fastbandit.storage.shared import open_store
from fastbandit.storage.snapshot_store import Snapshot, SnapshotStore

config_option = click.option(
    "--config", "path", type=click.Path(path_type=Path), help="The file of the service's settings."
)
data_dir_option = click.option(
    "--data-dir", type=click.Path(), help="The folder of the log and the snapshots."
)


@click.command("snapshots")
@config_option
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: Path | None, data_dir: str | None, as_json: bool) -> None:
    """List the versions of a service's bandit, and those that were refused."""
    store = open_snapshots(path, data_dir)
    current = store.current()
    found, reports = store.list(), store.refused()
    if as_json:
        rows = [_row(one) for one in found]
        told = {"current": current and current.version, "snapshots": rows, "refused": reports}
        click.echo(json.dumps(told, indent=1))
        return
    if current is None:
        click.echo(f"{store.folder} holds no version yet.")
    refused = {report["version"] for report in reports}
    for one in found:
        mark = "→" if current and one.version == current.version else " "
        state = "rolled back" if one.version in refused else ""
        click.echo(f"{mark} {_line(one)} {state}".rstrip())
    for report in reports:
        click.echo(f"✗ version {report['version']}: {report['reason']}")
    if current is not None and current.fell_back:
        click.echo(current.fell_back)


def read_service(path: Path | None, data_dir: str | None) -> Config:
    """Read the settings of a service."""
    return read_config(find_config(path), overrides={"server.data_dir": data_dir})


def open_snapshots(path: Path | None, data_dir: str | None) -> SnapshotStore:
    """Open the snapshots of a service, up to date."""
    config = read_service(path, data_dir)
    store = open_store(config.log.url, config.snapshots.url, Path(config.server.data_dir))
    store.follow()
    return store


def _row(snapshot: Snapshot) -> dict[str, Any]:
    keys = ("version", "parent", "cut", "hash", "notes")
    told = asdict(snapshot)
    return {**{key: told[key] for key in keys}, "made": _made(snapshot).isoformat()}


def _made(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp((snapshot.folder / "snapshot.json").stat().st_mtime).astimezone()


def _line(snapshot: Snapshot) -> str:
    when = _made(snapshot).strftime("%Y-%m-%d %H:%M:%S")
    quality = snapshot.notes.get("checks", {}).get("quality")
    q = "" if quality is None else f", q {quality:.3f}"
    pairs, arms = snapshot.cut.pairs, snapshot.notes.get("arms", 0)
    return (
        f"version {snapshot.version}  {when}  {snapshot.hash[:12]}  {pairs:,} rewards, "
        f"{arms:,} arms{q}"
    )
