"""The command line: a command's module is imported when the command is run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from fastbandit import __version__
from fastbandit.errors import FastbanditError
from fastbandit.packages import EXTRAS, missing

COMMANDS = {
    "backup": "Copy a service's log and snapshots, while it runs.",
    "config": "Show each setting of a service, and where it came from.",
    "copy-log": "Copy a log that services share into a data folder.",
    "demo": "Compare six policies in one synthetic environment: what they earn and cost.",
    "doctor": "Check the installation, and say what is wrong.",
    "evaluate": "Estimate what a policy would have earned on another's log.",
    "export": "Write a service's decisions and rewards as Parquet, JSON lines or DSJSON.",
    "forget": "Remove what a service knows of one subject, and write a receipt.",
    "freeze": "Turn a saved bandit into a folder that decides without torch.",
    "init": "Write a commented config file for a service.",
    "keys": "Make, list and revoke the API keys of a service.",
    "learn": "Learn from a service's log, and publish snapshots to it.",
    "migrate": "Move in from Personalizer or Vowpal Wabbit, with logs and settings.",
    "promote": "Let a bandit in shadow mode decide, or its baseline again.",
    "restore": "Put a backup into a new data folder.",
    "retain": "Let old days leave the log of a service, while it runs.",
    "rollback": "Let a service decide by an earlier snapshot.",
    "score": "Choose arms for files of contexts, on many workers.",
    "serve": "Serve decisions over HTTP, remember them, and learn.",
    "shadow": "Compare a bandit in shadow mode with its baseline.",
    "snapshots": "List the snapshots of a service, and those rejected.",
    "verify": "Read all of a service's log and snapshots, and name what is damaged.",
}
"""What the help says of each command; its module has the command's name, and holds `command`."""

Lazy = Mapping[str, tuple[str, str, str]]
"""Commands by name: the module and the attribute that hold each, and what its help says."""


def main(args: Sequence[str] | None = None) -> None:
    """Run a command of fastbandit, and exit."""
    run(cli, args, prog_name="fastbandit")


def run(group: click.Group, args: Sequence[str] | None, *, prog_name: str) -> None:
    """Run a command and exit: 0, 2 where something was asked wrongly, 130 when stopped."""
    try:
        status = group.main(args=args, prog_name=prog_name, standalone_mode=False)
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


_LAZY: Lazy = {
    name: (f"fastbandit.cli.{name.replace('-', '_')}", "command", said)
    for name, said in COMMANDS.items()
}


@click.group(cls=LazyGroup, lazy=_LAZY)
@click.version_option(__version__, message="fastbandit %(version)s")
def cli() -> None:
    """Choose among very many arms, for each context, without scoring them all."""


@contextmanager
def needs_extra(what: str, *, extra: str | None = None) -> Iterator[None]:
    """Turn a missing import into an error that says which extra to install.

    That is the named one; without a name, the one that brings the package, if any does.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "fastbandit" or (extra is None and module not in EXTRAS):
            raise
        raise missing(module, what=what, extra=extra) from error
