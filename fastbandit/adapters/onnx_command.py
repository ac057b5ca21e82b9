"""What `fastbandit export --onnx` does: a saved bandit as files for ONNX Runtime and faiss."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fastbandit.adapters.onnx_export import export_snapshot
from fastbandit.progress import progress_bar

ONNX_OPTION = click.option(
    "--onnx",
    "snapshot",
    type=click.Path(path_type=Path),
    help="Write this saved bandit as ONNX into the new folder --out, in place of decisions.",
)


def run_onnx(snapshot: Path, out: Path, *, as_json: bool) -> None:
    """Export a saved bandit, and tell what was written."""
    with progress_bar("Exporting") as progress:
        made = export_snapshot(snapshot, out, progress=progress)
    if as_json:
        click.echo(json.dumps({**asdict(made), "folder": str(made.folder)}, indent=1))
        return
    click.echo(f"{made.arms:,} arms of version {made.version}")
    for name, size in made.files.items():
        click.echo(f"{name}: {size / 1e6:,.1f} MB")
    click.echo(str(made.folder))
