"""The command `demo`: six policies side by side in one synthetic environment."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastbandit.cli.options import json_option, print_json
from fastbandit.cli.tables import print_table
from fastbandit.cores import one_thread
from fastbandit.demo.page import (
    HEADINGS,
    footnotes,
    import_matplotlib,
    make_folder,
    summary,
    table_rows,
    write_report,
)
from fastbandit.progress import progress_bar

if TYPE_CHECKING:
    from fastbandit.demo.comparison import DemoResult


@click.command("demo")
@click.option("--rounds", default=3_000, show_default=True, help="Decisions of each policy.")
@click.option("--arms", default=10_000, show_default=True, help="Arms to choose from.")
@click.option("--batch", default=500, show_default=True, help="Decisions between two updates.")
@click.option(
    "--function",
    type=click.Choice(["h1", "h1b", "h2", "h3"]),
    default="h2",
    show_default=True,
    help="The reward of a context and an arm.",
)
@click.option("--dim", default=4, show_default=True, help="Features of contexts and arms.")
@click.option("--seed", default=0, show_default=True, help="Another seed, another environment.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("fastbandit-demo"),
    show_default=True,
    help="Folder for the figure and the page.",
)
@json_option
def command(
    rounds: int,
    arms: int,
    batch: int,
    *,
    function: str,
    dim: int,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Compare six policies in one synthetic environment: what they earn and cost.

    Prints a table, and writes a figure of cumulative reward and an HTML page.
    """
    from fastbandit.cli.main import needs_extra

    with needs_extra("The demo"):
        from fastbandit.demo.comparison import run_demo
    import_matplotlib()
    make_folder(out)
    one_thread()
    with progress_bar("Playing") as progress:
        result = run_demo(
            arms=arms,
            rounds=rounds,
            batch=batch,
            function=function,
            dim=dim,
            seed=seed,
            progress=progress,
        )
    command = (
        f"fastbandit demo --rounds {rounds} --arms {arms} --batch {batch} "
        f"--function {function} --dim {dim} --seed {seed} --out {shlex.quote(str(out))}"
    )
    paths = write_report(result, out, command=command)
    if as_json:
        print_json({**result.to_json(), "command": command, "files": [*map(str, paths)]})
    else:
        print_result(result)
        click.echo("\nWritten:\n" + "\n".join(f"  {path}" for path in paths))


def print_result(result: DemoResult) -> None:
    """Print how each policy did, and what the columns mean."""
    title = f"{result.arms:,} arms, {result.rounds:,} rounds, {result.function}"
    print_table(HEADINGS, table_rows(result), title=title)
    click.echo("\n".join((*summary(result), "", *footnotes(result))))
