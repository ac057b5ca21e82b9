"""Write the pages of commands, each with all its options, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from fastbandit.cli.main import cli as product
from lab.__main__ import cli as laboratory

REFERENCE = Path(__file__).parent / "reference"


@dataclass(frozen=True)
class CommandPage:
    """A page below docs/reference: its name, how it opens, and whose commands it lists."""

    name: str
    opening: str
    group: click.Group
    program: str


PAGES = (
    CommandPage(
        "commands.md",
        """# Commands

Written by `make docs` from the commands themselves; not typed. What each is for stands in
[reference](../reference.md#commands). `--help` after any of them says the same.
""",
        product,
        "fastbandit",
    ),
    CommandPage(
        "lab.md",
        """# Commands of the laboratory

Written by `make docs` from the commands themselves; not typed. They run from a checkout of the
repository, after `pip install -e '.[lab]'`, and are not in the wheel. What each is for stands in
[reference](../reference.md#commands-of-the-laboratory). `--help` after any of them says the same.
""",
        laboratory,
        "python -m lab",
    ),
)


def commands_of(group: click.Group, before: str) -> Iterator[click.Context]:
    """Yield the context of each command below a group, in the order of their names."""
    context = click.Context(group, info_name=before)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{before} {name}")
        elif command is not None:
            yield click.Context(command, info_name=f"{before} {name}")


def written_page(page: CommandPage) -> str:
    """Return the text of a page."""
    sections = (_section(context) for context in commands_of(page.group, page.program))
    return "\n".join([page.opening, *sections])


def _section(context: click.Context) -> str:
    command = context.command
    told = inspect.cleandoc(command.help or "").replace("\b\n", "")
    rows = [row for option in command.params for row in _row(option, context)]
    table = ["| option | default | meaning |", "| --- | --- | --- |", *rows] if rows else []
    return "\n".join([f"## `{context.info_name}`", "", told, "", *table, *([""] if rows else [])])


def _row(option: click.Parameter, context: click.Context) -> Iterator[str]:
    if isinstance(option, click.Argument):
        needed = "needed" if option.required else ""
        yield f"| `{option.human_readable_name}` | {needed} | {_choices(option)} |"
    elif isinstance(option, click.Option) and not option.hidden:
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        said = " ".join((option.help or "").split()).replace("|", "\\|")
        yield f"| {names} | {_default(option, context)} | {said}{_choices(option)} |"


def _default(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    default = "needed" if option.required else str(extra.get("default", ""))
    return "" if default == "" else default.replace("|", "\\|")


def _choices(option: click.Parameter) -> str:
    if not isinstance(option.type, click.Choice):
        return ""
    return f" One of {', '.join(f'`{choice}`' for choice in option.type.choices)}."


if __name__ == "__main__":
    for page in PAGES:
        (REFERENCE / page.name).write_text(written_page(page), encoding="utf-8")
