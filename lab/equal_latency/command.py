"""`python -m lab experiment equal-latency`: reward beside the time of one decision."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fastbandit.cluster.engine import engine_for
from fastbandit.demo.page import make_folder
from fastbandit.progress import progress_bar
from lab.bakeoff.bake import bake, jobs_of, kept_results
from lab.bakeoff.command import failures, names_of
from lab.bakeoff.options import figure_option, run_options
from lab.bakeoff.page import write_figure, write_into
from lab.equal_latency.measure import measure
from lab.equal_latency.page import MARKS, figure_of, shown_in, text_of
from lab.equal_latency.rows import rows_of
from lab.equal_latency.sets import BATCH, ROUNDS, asked
from lab.equal_latency.sets import NAMES as SET_NAMES
from lab.equal_latency.systems import NAMES as SYSTEM_NAMES
from lab.equal_latency.systems import SYSTEMS
from lab.experiments.sizes import sizes_of
from lab.stamps import command_line, stamp_of


@click.command("equal-latency")
@click.option(
    "--sets", default="all", show_default=True, help=f"Comma-separated, of {', '.join(SET_NAMES)}."
)
@click.option(
    "--systems",
    default="all",
    show_default=True,
    help=f"Comma-separated, of {', '.join(SYSTEM_NAMES)}.",
)
@click.option(
    "--arms",
    default="1000,10000,100000,1000000",
    show_default=True,
    help="Numbers of arms of h1, h2 and h3, comma-separated.",
)
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help="So many: 0, 1, …"
)
@click.option("--rounds", default=ROUNDS, show_default=True, type=click.IntRange(1))
@click.option(
    "--batch",
    default=BATCH,
    show_default=True,
    type=click.IntRange(1),
    help="Rounds between updates.",
)
@run_options("equal-latency")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--doc",
    type=click.Path(path_type=Path),
    help=f"A page whose marks {MARKS[0]} and {MARKS[1]} get the tables.",
)
@figure_option
def equal_latency_command(
    sets: str,
    systems: str,
    arms: str,
    seeds: int,
    rounds: int,
    batch: int,
    data: Path | None,
    out: Path,
    keep: Path | None,
    most_seconds: float,
    retry_failed: bool,
    made_only: bool,
    as_json: bool,
    doc: Path | None,
    picture: Path | None,
) -> None:
    """Step the same rounds with each system: what it earns, and what a decision costs.

    Contexts, their order, reward draws and the arms of the first batch are the same for all. After
    the last round decisions are timed one by one, with one thread. Times are the processor's.
    """
    chosen = names_of("system", systems, SYSTEM_NAMES)
    players = [system for system in SYSTEMS if system.name in chosen]
    names = names_of("set", sets, SET_NAMES)
    entries = asked(names, sizes_of(arms), rounds=rounds, batch=batch)
    make_folder(out)
    jobs = jobs_of(entries, players, seeds)
    if made_only:
        jobs = [job for job in jobs if job.key.path(out).exists()]
    with progress_bar("Equal latency") as progress, engine_for("local", workers=1) as engine:
        results, missing = bake(
            jobs,
            out,
            engine=engine,
            data=data,
            most_seconds=most_seconds,
            is_retried=retry_failed,
            keep=keep,
            measure=measure,
            progress=progress,
        )
    if keep is not None:
        results = kept_results(keep, entries, players)
    rows = rows_of(results)
    text = text_of(rows, entries, players) if rows else "No run could be made."
    if picture is not None and rows:
        write_figure(picture, figure_of(rows, players))
    if doc is not None and rows:
        text = f"{text}\n\n{stamp_of(command_line('experiment equal-latency'), results)}"
        shown = text if picture is None else f"{shown_in(doc, picture)}\n\n{text}"
        write_into(doc, shown, marks=MARKS)
    if as_json:
        lost = [{**asdict(job.key), "error": error} for job, error in missing]
        report = {"rows": [asdict(row) for row in rows], "missing": lost}
        click.echo(json.dumps(report, indent=1, allow_nan=False))
    else:
        click.echo(text)
    for line in failures(missing):
        click.echo(f"Error: {line}", err=True)
    if missing:
        click.get_current_context().exit(2)
