"""The command `demo`: six policies side by side in one synthetic environment."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
@click.option("--seed", default=0, show_default=True, help="Another seed, another world.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("fastbandit-demo"),
    show_default=True,
    help="Folder for the figure and the page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    rounds: int,
    arms: int,
    batch: int,
    function: str,
    dim: int,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Compare six policies in one synthetic world: what they earn and cost.

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
        told = {**result.to_json(), "command": command, "files": [str(path) for path in paths]}
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        print_table(result)
        click.echo("\nWritten:\n" + "\n".join(f"  {path}" for path in paths))


def print_table(result: DemoResult) -> None:
    """Print how each policy did, and what the columns mean."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    title = f"{result.arms:,} arms, {result.rounds:,} rounds, {result.function}"
    table = Table(title=title, box=SIMPLE_HEAD)
    for place, heading in enumerate(HEADINGS):
        if place == 0:
            table.add_column(heading, no_wrap=True)
        else:
            table.add_column(heading, justify="right")
    for row in table_rows(result):
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.print(table)
    for sentence in (*summary(result), "", *footnotes(result)):
        console.print(sentence)
