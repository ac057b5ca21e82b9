"""Import modules and ask every command for help: run by the Python of a clean environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any


def main(modules: list[str]) -> None:
    """Import all modules; print as JSON what each command says that cannot be run here."""
    for module in modules:
        import_module(module)
    import click

    from fastbandit.cli.main import cli

    told = dict(help_of(cli, click.Context(cli, info_name="fastbandit"), ""))
    print(json.dumps(told))


def help_of(group: Any, context: Any, before: str) -> Iterator[tuple[str, str]]:
    """Give each command with "ok", or with the error that names what to install."""
    import click

    from fastbandit.errors import MissingExtraError

    for name in group.list_commands(context):
        try:
            command = group.get_command(context, name)
        except MissingExtraError as error:
            yield f"{before}{name}", str(error)
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from help_of(command, inner, f"{before}{name} ")
        else:
            assert command.get_help(inner)
            yield f"{before}{name}", "ok"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
