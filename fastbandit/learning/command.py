"""The commands `snapshots` and `rollback`, and what they share with `learn`."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from fastbandit.config import Config, find_config, read_config
from fastbandit.storage.shared import open_store
from fastbandit.storage.snapshot_store import Snapshot, SnapshotStore

config_option = click.option(
    "--config", "path", type=click.Path(path_type=Path), help="The file of the service's settings."
)
data_dir_option = click.option(
    "--data-dir", type=click.Path(), help="The folder of the log and the snapshots."
)
_WATCH_SECONDS = 0.5
_ENDING_SECONDS = 1.0


@click.command("snapshots")
@config_option
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def snapshots_command(path: Path | None, data_dir: str | None, as_json: bool) -> None:
    """List the versions of a service's bandit, and those that were refused."""
    store = _store(path, data_dir)
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


@click.command("rollback")
@click.argument("version", type=int, required=False)
@config_option
@data_dir_option
def rollback_command(version: int | None, path: Path | None, data_dir: str | None) -> None:
    """Serve VERSION again, or the one that the current version came from.

    The service follows within a second. The learner goes on from there once as many rewards
    have come again as a new version needs.
    """
    snapshot = _store(path, data_dir).rollback(version)
    click.echo(f"Version {snapshot.version} is served now.")


def end_with(parent: int) -> None:
    """End this process as SIGTERM does, once its parent is another: the service was killed.

    A compiler may hold that up: then it ends at once, which leaves nothing half-done either.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ENDING_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def read_service(path: Path | None, data_dir: str | None) -> Config:
    """Read the settings of a service."""
    return read_config(find_config(path), overrides={"server.data_dir": data_dir})


def _store(path: Path | None, data_dir: str | None) -> SnapshotStore:
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
