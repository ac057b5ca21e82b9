"""The command line: parse, call, print. Whatever needs torch is imported by its command."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastbandit import __version__
from fastbandit.chaos.command import COMMANDS as CAMPAIGNS
from fastbandit.errors import FastbanditError
from fastbandit.packages import missing_extra
from fastbandit.progress import progress_bar

if TYPE_CHECKING:
    from fastbandit.experiments.demo import DemoResult

Lazy = dict[str, tuple[str, str, str]]
"""Commands by name: the module and the attribute that hold each, and what its help says."""

_COMMANDS: Lazy = {
    "backup": (
        "fastbandit.storage_command",
        "backup_command",
        "Copy a service's log and snapshots, while it runs.",
    ),
    "config": (
        "fastbandit.config_command",
        "config_command",
        "Show each setting of a service, and where it came from.",
    ),
    "copy-log": (
        "fastbandit.storage_command",
        "copy_log_command",
        "Copy a log that services share into a data folder.",
    ),
    "data": (
        "fastbandit.experiments.datasets.command",
        "data_command",
        "List, fetch and check the files of datasets.",
    ),
    "doctor": (
        "fastbandit.doctor_command",
        "doctor_command",
        "Check the installation, and say what is slow and why.",
    ),
    "evaluate": (
        "fastbandit.evaluate_command",
        "evaluate_command",
        "Estimate what a policy would have earned on another's log.",
    ),
    "export": (
        "fastbandit.storage_command",
        "export_command",
        "Write a service's decisions and rewards as Parquet, JSON lines or DSJSON.",
    ),
    "freeze": (
        "fastbandit.freeze_command",
        "freeze_command",
        "Turn a saved bandit into a folder that decides without torch.",
    ),
    "init": (
        "fastbandit.config_command",
        "init_command",
        "Write a commented config file for a service.",
    ),
    "keys": (
        "fastbandit.keys_command",
        "keys_command",
        "Make, list and revoke the API keys of a service.",
    ),
    "learn": (
        "fastbandit.learn_command",
        "learn_command",
        "Learn from a service's log, and publish snapshots to it.",
    ),
    "plan": (
        "fastbandit.benchmarks.plan_command",
        "plan_command",
        "Measure which search so many arms need on this machine.",
    ),
    "promote": (
        "fastbandit.promote_command",
        "promote_command",
        "Let a bandit in shadow mode decide, or its baseline again.",
    ),
    "report": (
        "fastbandit.experiments.report",
        "report_command",
        "Turn result files into tables, figures and a page.",
    ),
    "restore": (
        "fastbandit.storage_command",
        "restore_command",
        "Put a backup into a new data folder.",
    ),
    "rollback": (
        "fastbandit.learning.command",
        "rollback_command",
        "Let a service decide by an earlier snapshot.",
    ),
    "score": (
        "fastbandit.score_command",
        "score_command",
        "Choose arms for files of contexts, on many workers.",
    ),
    "serve": (
        "fastbandit.serve_command",
        "serve_command",
        "Serve decisions over HTTP, remember them, and learn.",
    ),
    "shadow": (
        "fastbandit.promote_command",
        "shadow_command",
        "Say how a bandit in shadow mode compares with its baseline.",
    ),
    "snapshots": (
        "fastbandit.learning.command",
        "snapshots_command",
        "List the snapshots of a service, and those refused.",
    ),
    "tune": (
        "fastbandit.experiments.tune",
        "tune_command",
        "Search for settings that earn more, and write them as a file.",
    ),
}
_BENCHMARKS: Lazy = {
    "batch": (
        "fastbandit.benchmarks.batch",
        "batch_command",
        "Time batches, frozen and in torch, on one core and on all.",
    ),
    "engines": (
        "fastbandit.benchmarks.engines",
        "engines_command",
        "Learn one log in one process and on workers of Ray, and compare.",
    ),
    "gpu": (
        "fastbandit.benchmarks.gpu",
        "gpu_command",
        "Time large batches on a GPU, beside the exhaustive search.",
    ),
    "index": (
        "fastbandit.benchmarks.index",
        "index_command",
        "Compare our cells and hops with the inverted lists of faiss.",
    ),
    "log": (
        "fastbandit.benchmarks.log",
        "log_command",
        "Time appends to the event log, in PostgreSQL and in SQLite.",
    ),
    "peers": (
        "fastbandit.benchmarks.peers",
        "peers_command",
        "Time one decision of other libraries beside ours.",
    ),
    "score": (
        "fastbandit.benchmarks.score",
        "score_command",
        "Score files of contexts with one worker and with two, and after kills.",
    ),
    "select": (
        "fastbandit.benchmarks.select",
        "select_command",
        "Time one decision of a frozen bandit as arms grow, and audit it.",
    ),
}
_EXPERIMENTS: Lazy = {
    "run": (
        "fastbandit.experiments.suite",
        "run_command",
        "Play a suite of datasets and policies, one result file a run.",
    ),
    "runtime": (
        "fastbandit.experiments.runtime",
        "runtime_command",
        "Time decisions and updates of neural policies, beside the paper's times.",
    ),
    "scaling": (
        "fastbandit.experiments.scaling",
        "scaling_command",
        "Time decisions as the number of arms grows.",
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


def with_one_thread() -> None:
    """Keep NumPy, which is not imported yet, to one thread: work is compared, not cores."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


class LazyGroup(click.Group):
    """Commands of which some are imported only when they are run, after `before` was called."""

    def __init__(
        self,
        *args: Any,
        lazy: Lazy,
        before: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.lazy, self.before = lazy, before

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*self.commands, *self.lazy})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.lazy:
            return super().get_command(context, name)
        module, attribute, _ = self.lazy[name]
        self.before()
        with needs_extra(f"`{context.command_path} {name}`"):
            command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        own = {name: command.get_short_help_str(80) for name, command in self.commands.items()}
        helps = own | {name: said for name, (_, _, said) in self.lazy.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, helps[name]) for name in sorted(helps)])


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@click.version_option(__version__, message="fastbandit %(version)s")
def cli() -> None:
    """Choose among very many arms, for each context, without scoring them all."""


@cli.group(cls=LazyGroup, lazy=_EXPERIMENTS)
def experiment() -> None:
    """Measure policies against data."""


@cli.group(cls=LazyGroup, lazy=_BENCHMARKS, before=with_one_thread)
def bench() -> None:
    """Measure how fast decisions are on this machine."""


@cli.group(cls=LazyGroup, lazy=CAMPAIGNS)
def chaos() -> None:
    """Try to break a service, and see what it keeps."""


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
    """Compare six policies in one synthetic world: what they earn and cost.

    Prints a table, and writes a figure of cumulative reward and an HTML page.
    """
    with needs_extra("The demo"):
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
def needs_extra(what: str) -> Iterator[None]:
    """Turn the missing import of an extra into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        told = missing_extra(error, what=what)
        if told is None:
            raise
        raise told from error


if __name__ == "__main__":
    main()
