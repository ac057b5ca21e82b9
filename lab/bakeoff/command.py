"""`python -m lab experiment bakeoff`: the same rounds with fastbandit and with other libraries."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fastbandit.cluster.engine import engine_for
from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from lab.bakeoff.bake import Job, bake, jobs_of, kept_results
from lab.bakeoff.options import figure_option, run_options
from lab.bakeoff.page import figure_of, text_of, write_figure, write_into
from lab.bakeoff.results import Row, summarise
from lab.bakeoff.sets import NAMES as SET_NAMES
from lab.bakeoff.sets import asked
from lab.bakeoff.systems import NAMES as SYSTEM_NAMES
from lab.bakeoff.systems import SYSTEMS
from lab.stamps import command_line, stamp_of

_ALL = "all"


@click.command("bakeoff")
@click.option(
    "--sets",
    default=_ALL,
    show_default=True,
    help=f"Comma-separated, of {', '.join(SET_NAMES)}.",
)
@click.option(
    "--systems",
    default=_ALL,
    show_default=True,
    help=f"Comma-separated, of {', '.join(SYSTEM_NAMES)}.",
)
@click.option(
    "--seeds", default=10, show_default=True, type=click.IntRange(1), help="So many: 0, 1, …"
)
@click.option("--rounds", type=click.IntRange(1), help="So many rounds instead.")
@click.option("--batch", type=click.IntRange(1), help="So many rounds between updates instead.")
@run_options("bakeoff")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--doc",
    type=click.Path(path_type=Path),
    help="A page whose marks <!-- bakeoff --> and <!-- end of bakeoff --> get the tables.",
)
@figure_option
def bakeoff_command(
    sets: str,
    systems: str,
    seeds: int,
    rounds: int | None,
    batch: int | None,
    data: Path | None,
    out: Path,
    keep: Path | None,
    most_seconds: float,
    retry_failed: bool,
    made_only: bool,
    workers: int,
    as_json: bool,
    doc: Path | None,
    picture: Path | None,
) -> None:
    """Step the same rounds with fastbandit and with other libraries, and compare what they earn.

    Contexts, their order, reward draws and the arms of the first batch are the same for all. A
    system that fails or takes too long is listed with its error, and does not stop the others.
    """
    entries = asked(names_of("set", sets, SET_NAMES), rounds=rounds, batch=batch)
    chosen = names_of("system", systems, SYSTEM_NAMES)
    chosen_systems = [system for system in SYSTEMS if system.name in chosen]
    _make_folder(out)
    jobs = jobs_of(entries, chosen_systems, seeds)
    if made_only:
        jobs = [job for job in jobs if job.key.path(out).exists()]
    with progress_bar("Bake-off") as progress, engine_for("local", workers=workers) as engine:
        results, missing = bake(
            jobs,
            out,
            engine=engine,
            data=data,
            most_seconds=most_seconds,
            is_retried=retry_failed,
            keep=keep,
            progress=progress,
        )
    if keep is not None:
        results = kept_results(keep, entries, chosen_systems)
    rows = summarise(results)
    stamp = stamp_of(command_line("experiment bakeoff"), results)
    text = text_of(rows, entries, chosen_systems) if rows else "No run could be made."
    text = f"{text}\n\n{stamp}" if rows else text
    if picture is not None and rows:
        write_figure(picture, figure_of(rows, entries, chosen_systems))
    if doc is not None:
        write_into(doc, text if picture is None else f"{_shown(picture, doc)}\n\n{text}")
    click.echo(_as_json(rows, missing) if as_json else text)
    for line in failures(missing):
        click.echo(f"Error: {line}", err=True)
    if missing:
        click.get_current_context().exit(2)


def names_of(what: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Read names that are separated by commas, or all that are known."""
    if text == _ALL:
        return known
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        known_name(what, name, known)
    return names


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"Results need a folder that can be written to: got {str(folder)!r} "
            f"({error.strerror}). Choose another with --out."
        ) from error


def _shown(picture: Path, doc: Path) -> str:
    path = Path(os.path.relpath(picture, doc.parent)).as_posix()
    return f"![The share of the best possible reward of every system, on each set.]({path})"


def failures(missing: Sequence[tuple[Job, str]]) -> list[str]:
    """Format what could not be tried, runs with the same error in one line."""
    groups: dict[str, list[Job]] = {}
    for job, error in missing:
        groups.setdefault(error, []).append(job)
    return [
        f"{jobs[0].system.name} on {jobs[0].set.name}, seed {jobs[0].seed}"
        f"{f' and {len(jobs) - 1} more' if len(jobs) > 1 else ''}: {error}"
        for error, jobs in groups.items()
    ]


def _as_json(rows: Sequence[Row], missing: Sequence[tuple[Job, str]]) -> str:
    report: dict[str, Any] = {
        "rows": [asdict(row) for row in rows],
        "missing": [{**asdict(job.key), "error": error} for job, error in missing],
    }
    return json.dumps(report, indent=1, allow_nan=False)
