"""The command `rollback`: let a service decide by an earlier snapshot."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from fastbandit.cli.options import config_option, data_dir_option
from fastbandit.cli.snapshots import open_snapshots
from fastbandit.errors import SnapshotError
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot


@click.command("rollback")
@click.argument("version", type=int, required=False)
@config_option
@data_dir_option
def command(version: int | None, path: Path | None, data_dir: Path | None) -> None:
    """Serve VERSION again, or the one that the current version came from.

    Where that one is damaged and no version is named, the newest older one is served that is whole.
    The service follows within a second. The learner goes on from there once as many rewards
    have come again as a new version needs.
    """
    snapshot = _rolled_back(open_snapshots(path, data_dir), version)
    click.echo(f"Version {snapshot.version} is served now.")


def _rolled_back(store: SnapshotStore, version: int | None) -> Snapshot:
    """Roll back to a version; where none is named, past those that cannot be served."""
    from fastbandit.runtime.servable import servable

    try:
        return store.rollback(version, check=servable)
    except SnapshotError as error:
        current = store.current()
        parent = None if current is None or version is not None else current.parent
        for older in reversed(store.list()):
            if parent is not None and older.version < parent:
                with suppress(SnapshotError):
                    snapshot = store.rollback(older.version, check=servable)
                    click.echo(f"Version {parent} cannot be served: {error}", err=True)
                    return snapshot
        raise
