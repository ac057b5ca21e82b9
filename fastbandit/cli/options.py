"""What commands on a service share: the options that name it, its settings, and how they print."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fastbandit.settings.service import Config
from fastbandit.settings.service_files import find_config, read_config

_COMMA_SPACE = re.compile(r",(?= )")
Command = TypeVar("Command", bound=Callable[..., Any])

config_option = click.option(
    "--config", "path", type=click.Path(path_type=Path), help="The file of the service's settings."
)
data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The folder of the log, the snapshots and the keys.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def service_options(command: Command) -> Command:
    """Add the options that name a service, and --json."""
    return config_option(data_dir_option(json_option(command)))


def taking(kind: type[Any]) -> type[click.Command]:
    """Return a class of commands whose function takes all options as one value of a kind."""

    class OneValueCommand(click.Command):
        def invoke(self, ctx: click.Context) -> Any:
            assert self.callback is not None
            return ctx.invoke(self.callback, kind(**ctx.params))

    return OneValueCommand


def read_service(path: Path | None, data_dir: Path | None = None) -> Config:
    named = None if data_dir is None else str(data_dir)
    return read_config(find_config(path), overrides={"server.data_dir": named})


def split_texts(text: str) -> list[str]:
    """Return the texts of a list by the rules of CSV: one with a comma stands in quotes.

    A comma before a space belongs to a text, too: a shell takes quotes away.
    """
    marked = _COMMA_SPACE.sub("\0", text) if '"' not in text else text
    return [one.replace("\0", ",") for one in next(csv.reader([marked]), [])]


def split_names(text: str) -> list[str]:
    """Return the names of a list by the rules of CSV, without the spaces around them."""
    listed = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in listed if name.strip()]


def counted(number: int, thing: str) -> str:
    """Return a number of things as text: 1 round, 2 rounds."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=1, ensure_ascii=False))


def print_either(as_json: bool, value: Any, *lines: str) -> None:
    """Print a value as JSON, or lines that say the same."""
    if as_json:
        print_json(value)
    else:
        click.echo("\n".join(lines))


def warn(note: str) -> None:
    """Print a note in yellow, on stderr."""
    click.secho(note, fg="yellow", err=True)
