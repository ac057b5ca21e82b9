"""The command `snapshots`: the versions of a service's bandit, and those rejected."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import print_json, read_service, service_options
from fastbandit.files.private import write_privately
from fastbandit.storage.shared import service_store
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot


@click.command("snapshots")
@service_options
@click.option("--sign", is_flag=True, help="Sign them first, by snapshots.signing_key_file.")
def command(path: Path | None, data_dir: Path | None, as_json: bool, sign: bool) -> None:
    """List the versions of a service's bandit, and those that were rejected."""
    store = open_snapshots(path, data_dir)
    if sign:
        store.sign()
    current = store.current()
    found, reports = store.list(), store.refused()
    if as_json:
        rows = [_row(one) for one in found]
        now = current and current.version
        print_json({"current": now, "snapshots": rows, "refused": reports})
        return
    if current is None:
        click.echo(f"{store.folder} holds no version yet.")
    rejected = {report["version"] for report in reports}
    for one in found:
        mark = "→" if current and one.version == current.version else " "
        state = "rolled back" if one.version in rejected else ""
        click.echo(f"{mark} {_line(one)} {state}".rstrip())
        _print_checks(one.notes)
    for report in reports:
        click.echo(f"✗ version {report['version']}: {report['reason']}")
        _print_checks(report)
    if current is not None and current.fell_back:
        click.echo(current.fell_back)


def open_snapshots(path: Path | None, data_dir: Path | None) -> SnapshotStore:
    """Open the snapshots of a service, up to date."""
    config = read_service(path, data_dir)
    write_privately()
    store = service_store(config)
    store.follow()
    return store


def _row(snapshot: Snapshot) -> dict[str, Any]:
    keys = ("version", "parent", "cut", "hash", "notes")
    fields = asdict(snapshot)
    return {**{key: fields[key] for key in keys}, "made": _made(snapshot).isoformat()}


def _made(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp((snapshot.folder / "snapshot.json").stat().st_mtime).astimezone()


def _print_checks(notes: dict[str, Any]) -> None:
    """Print what was measured of a version, where something was."""
    checks = notes.get("checks") or {}
    if checks.get("loss") is None:
        return
    click.echo(
        f"    held-out loss {checks['loss']:.4f} of {checks['held_out']:,}, {_measures(checks)}"
    )
    for name in ("in_service", "constant", "popularity"):
        if other := checks.get(name):
            click.echo(
                f"    {name.replace('_', ' ')} {other['loss']:.4f}: {other['difference']:+.4f}, "
                f"between {other['low']:+.4f} and {other['high']:+.4f} (95 %)"
            )


def _measures(checks: dict[str, Any]) -> str:
    found = ((name, checks.get(key)) for name, key in (("q", "quality"), ("recall", "recall")))
    return ", ".join(f"{name} {value:.3f}" for name, value in found if value is not None)


def _line(snapshot: Snapshot) -> str:
    when = _made(snapshot).strftime("%Y-%m-%d %H:%M:%S")
    quality = snapshot.notes.get("checks", {}).get("quality")
    q = "" if quality is None else f", q {quality:.3f}"
    pairs, arms = snapshot.cut.interactions, snapshot.notes.get("arms", 0)
    return (
        f"version {snapshot.version}  {when}  {snapshot.hash[:12]}  {pairs:,} rewards, "
        f"{arms:,} arms{q}"
    )
