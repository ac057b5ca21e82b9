"""The command `export`: a service's decisions and rewards, or a saved bandit, as files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from fastbandit.cli.data_folder import log_folder
from fastbandit.cli.options import counted, print_either, service_options, taking, warn
from fastbandit.errors import SettingError
from fastbandit.files.private import write_privately
from fastbandit.progress import Progress, progress_bar
from fastbandit.storage.daily_exports import export_days
from fastbandit.storage.exports import FORMATS, export, format_of
from fastbandit.storage.joined_rows import Bounds


def _bound(_: click.Context, option: click.Parameter, text: str | None) -> int | datetime | None:
    """Read an event number, or a time (in UTC unless it names a zone)."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingError(
            f"--{option.name} needs an event number, or a time such as 2026-01-31T12:00: got "
            f"{text!r}. Give one of these."
        ) from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Options:
    """What to export, and where; see the help of each option."""

    out: Path
    format: str | None
    is_replaced: bool
    since: int | datetime | None
    until: int | datetime | None
    is_resumed: bool
    snapshot: Path | None
    path: Path | None
    data_dir: Path | None
    as_json: bool

    @property
    def bounds(self) -> Bounds:
        named = {"since": self.since, "until": self.until}
        return Bounds(**{name: value for name, value in named.items() if value is not None})


@click.command("export", cls=taking(Options))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="By the file's name if left out; DSJSON lines are for Vowpal Wabbit.",
)
@click.option("--replace", "is_replaced", is_flag=True, help="Write over a file that is there.")
@click.option("--since", callback=_bound, help="The first event number, or time, to write.")
@click.option("--until", callback=_bound, help="The event number, or time, to end before.")
@click.option(
    "--resume",
    "is_resumed",
    is_flag=True,
    help="Go on where the last one stopped: a Parquet file for each day, in the folder --out.",
)
@click.option(
    "--onnx",
    "snapshot",
    type=click.Path(path_type=Path),
    help="Write this saved bandit as ONNX into the new folder --out, in place of decisions.",
)
@service_options
def command(options: Options) -> None:
    """Write decisions with their rewards, one row each.

    The service may run meanwhile. A reward that is still waited for is empty; DSJSON leaves
    such decisions out, and those that do not say how likely their arm was. With --onnx a saved
    bandit is written instead, for ONNX Runtime and faiss.
    """
    out = options.out
    if options.snapshot is not None:
        _export_onnx(options.snapshot, out, as_json=options.as_json)
        return
    if options.is_resumed:
        _export_days(options)
        return
    wanted = format_of(out, options.format)
    if out.exists() and not options.is_replaced:
        raise SettingError(
            f"An export needs a file that is not there yet: {out} is. Name another, or write over "
            f"it with --replace."
        )
    with progress_bar("Exporting") as progress:
        folder = _read_for(options, progress)
        made = export(folder, out, wanted, bounds=options.bounds, progress=progress)
    found = {"file": str(made.file), "rows": made.rows, "left_out": made.left_out}
    left_out = [f"{count:,} left out: {why}" for why, count in made.left_out.items()]
    counts = counted(made.rows, "decision")
    print_either(options.as_json, found, counts, *left_out, str(made.file))


def _read_for(options: Options, progress: Progress) -> Path:
    """Return the folder of the log to read; what is written into it is its owner's alone."""
    folder = log_folder(options.path, options.data_dir, progress=progress)
    if options.out.resolve().is_relative_to(folder.resolve()):
        write_privately()
    return folder


def _export_days(options: Options) -> None:
    if options.since is not None or options.until is not None or options.format:
        raise SettingError(
            "An export that goes on writes whole days as Parquet: got --since, --until or --format "
            "with --resume. Leave them out."
        )
    with progress_bar("Exporting") as progress:
        folder = _read_for(options, progress)
        made = export_days(folder, options.out, warn=warn, progress=progress)
    rows, files = sum(one.rows for one in made), [str(one.file) for one in made]
    counts = f"{counted(rows, 'decision')} of {counted(len(made), 'day')}"
    print_either(options.as_json, {"files": files, "rows": rows}, counts, str(options.out))


def _export_onnx(snapshot: Path, out: Path, *, as_json: bool) -> None:
    from fastbandit.adapters.onnx_export import export_snapshot

    with progress_bar("Exporting") as progress:
        made = export_snapshot(snapshot, out, progress=progress)
    folder, said = str(made.folder), f"{made.arms:,} arms of version {made.version}"
    sizes = [f"{name}: {size / 1e6:,.1f} MB" for name, size in made.files.items()]
    print_either(as_json, {**asdict(made), "folder": folder}, said, *sizes, folder)
