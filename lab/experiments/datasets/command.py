"""The command `data`: which datasets there are, where their files lie, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fastbandit.declaration import known_name
from fastbandit.errors import DataError
from fastbandit.progress import progress_bar
from lab.experiments.datasets.celeba import write_sample
from lab.experiments.datasets.files import SOURCES, data_folder, fetch, find
from lab.experiments.datasets.sources import Source

_DATA = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that holds data; else FASTBANDIT_DATA, else a cache.",
)


@click.group("data")
def data_command() -> None:
    """List datasets, fetch those that may be downloaded, and show where they lie."""


@data_command.command("list")
@_DATA
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(data: Path | None, as_json: bool) -> None:
    """List datasets: their size, where they lie or how to get them, and their terms."""
    found = [_state(source, data_folder(data)) for source in SOURCES.values()]
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    click.echo(f"{'name':<12} {'rounds × arms':<16} where, and on what terms")
    for state in found:
        click.echo(f"{state['name']:<12} {_size(state):<16} {state['path'] or _missing(state)}")
        click.echo(f"{'':<30}{state['terms']}")


@data_command.command("fetch")
@click.argument("name")
@_DATA
def fetch_command(name: str, data: Path | None) -> None:
    """Download a dataset; a download that stopped half-way goes on where it ended."""
    for path in fetch(name, data):
        click.echo(path)


@data_command.command("where")
@click.argument("name")
@_DATA
def where_command(name: str, data: Path | None) -> None:
    """Print the path of a dataset's main file, or how to get it (and exit with 2)."""
    known_name("dataset", name, tuple(SOURCES))
    click.echo(find(name, SOURCES[name].files, data=data))


@data_command.command("sample")
@click.argument("name")
@_DATA
@click.option("--identities", default=40, show_default=True, help="People to draw.")
@click.option("--images", default=50, show_default=True, help="Pictures of each.")
@click.option("--seed", default=0, show_default=True)
def sample_command(name: str, data: Path | None, identities: int, images: int, seed: int) -> None:
    """Draw faces in the layout of celeba, to try things on; they are not that dataset."""
    known_name("sample", name, ("celeba",))
    folder = data_folder(data)
    _check_not_there(folder)
    with progress_bar("Drawing faces") as progress:
        drawn = write_sample(
            folder / "celeba", identities=identities, images=images, seed=seed, progress=progress
        )
    click.echo(drawn)
    click.echo("These pictures are generated: they are NOT CelebA and show nobody.", err=True)


def _check_not_there(folder: Path) -> None:
    """Raise where the real CelebA lies in another place, which a sample would stand before."""
    own, *others = (folder / file for file in SOURCES["celeba"].files)
    for other in others:
        if other.exists() and not (own.exists() and other.samefile(own)):
            raise DataError(
                f"A sample needs a folder of its own: {other} lies in {folder} already. Name "
                f"another folder with --data."
            )


def _state(source: Source, folder: Path) -> dict[str, Any]:
    paths = [folder / file for file in source.files if (folder / file).exists()]
    return {
        "name": source.name,
        "what": source.what,
        "present": bool(paths),
        "path": str(paths[0]) if paths else None,
        "rounds": source.rounds,
        "arms": source.arms,
        "can_fetch": bool(source.downloads),
        "terms": source.terms,
        "page": source.page,
    }


def _size(state: dict[str, Any]) -> str:
    return f"{state['rounds']:,} × {state['arms']:,}" if state["rounds"] else ""


def _missing(state: dict[str, Any]) -> str:
    command = "fetch" if state["can_fetch"] else "where"
    return f"missing: python -m lab data {command} {state['name']}"
