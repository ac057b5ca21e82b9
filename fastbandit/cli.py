"""The command line: parse, call, print. Whatever needs torch is imported by its command."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastbandit import __version__
from fastbandit.errors import FastbanditError, MissingExtraError
from fastbandit.progress import progress_bar

if TYPE_CHECKING:
    from fastbandit.experiments.demo import DemoResult

_TRAIN = {"torch", "jaxtyping", "scipy"}
_EXPERIMENTS = {
    "quality": (
        "fastbandit.experiments.quality",
        "quality_command",
        "Measure how close each search comes to an exhaustive one, and what policies earn.",
    ),
}


def main(args: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0, 2 where something was asked wrongly, 130 when stopped."""
    try:
        status = cli.main(args=args, prog_name="fastbandit", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except FastbanditError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except MemoryError:
        click.echo("Error: This needs more memory than there is. Use fewer arms.", err=True)
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


class ExperimentGroup(click.Group):
    """Experiments by name, imported only when one is run."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_EXPERIMENTS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _EXPERIMENTS:
            return None
        module, attribute, _ = _EXPERIMENTS[name]
        with needs_train(f"The experiment {name}"):
            command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _EXPERIMENTS[name][2]) for name in sorted(_EXPERIMENTS)])


@click.group()
@click.version_option(__version__, message="fastbandit %(version)s")
def cli() -> None:
    """Choose among very many arms, for each context, without scoring them all."""


@cli.group(cls=ExperimentGroup)
def experiment() -> None:
    """Measure policies against data."""


@cli.command()
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
def demo(
    rounds: int,
    arms: int,
    batch: int,
    function: str,
    dim: int,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Compare six policies in one synthetic world: what they earn, what a choice costs.

    Prints a table, and writes a figure of cumulative reward and an HTML page.
    """
    with needs_train("The demo"):
        from fastbandit.experiments.demo import run_demo
        from fastbandit.experiments.run import one_thread
    from fastbandit.experiments.page import import_matplotlib, make_folder, write_report

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

    from fastbandit.experiments.page import HEADINGS, footnotes, summary, table_rows

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


@contextmanager
def needs_train(what: str) -> Iterator[None]:
    """Turn a missing import of the extra `train` into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _TRAIN:
            raise
        raise MissingExtraError(
            f"{what} needs {missing}, which is not installed. Run: pip install 'fastbandit[train]'"
        ) from error


if __name__ == "__main__":
    main()
