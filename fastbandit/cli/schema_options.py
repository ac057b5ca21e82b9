"""Options that say what columns mean: --kind price=number, --levels city=Oslo,Rome."""

from __future__ import annotations

import json
from typing import Any

import click

from fastbandit.cli.options import split_texts
from fastbandit.errors import SettingError
from fastbandit.features.column_settings import column_from
from fastbandit.features.text_columns import Category


def _read_kinds(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """Read what columns mean: price=number, or settings of a kind as JSON."""
    found = {}
    for text in given:
        column, mark, said = text.partition("=")
        if not column or not mark or not said:
            raise SettingError(
                f"--kind needs a column and its kind, such as city=category: got {text!r}. Write "
                f"it so."
            )
        found[column] = column_from(column, _settings(said))
    return found


def _settings(said: str) -> Any:
    """Return the name of a kind, or settings of one."""
    if not said.startswith("{"):
        return said
    try:
        return json.loads(said)
    except ValueError as error:
        raise SettingError(
            f"The settings of a column need to be JSON: got {said!r} ({error}). Write for example "
            f"""price='{{"kind": "number", "log": true}}'."""
        ) from error


def _read_levels(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """Read the names of categories: city=Oslo,Rome; one with a comma stands in quotes."""
    found = {}
    for text in given:
        column, mark, names = text.partition("=")
        levels = tuple(split_texts(names))
        if not column or not mark or not levels or len(set(levels)) < len(levels):
            raise SettingError(
                f"--levels needs a column and each of its texts once, such as city=Oslo,Rome: got "
                f"{text!r}. Write it so."
            )
        found[column] = Category(column, levels=levels)
    return found


kind_option = click.option(
    "--kind",
    "kinds",
    multiple=True,
    callback=_read_kinds,
    help="What a column means, where it is not as inferred: city=category. May be given again.",
)
levels_option = click.option(
    "--levels",
    multiple=True,
    callback=_read_levels,
    help="A column of categories, and their names: city=Oslo,Rome. May be given again.",
)
