"""What columns mean, as options say it."""

from __future__ import annotations

from typing import Any

import click
import pytest
from little_data import invoke

from fastbandit.cli.schema_options import kind_option, levels_option
from fastbandit.errors import SettingError
from fastbandit.features.columns import Number
from fastbandit.features.text_columns import Category


@click.command
@kind_option
@levels_option
def command(kinds: dict[str, Any], levels: dict[str, Any]) -> None:
    click.echo(repr({**kinds, **levels}))


def test_a_kind_is_named() -> None:
    assert repr(Number("price")) in invoke(command, "--kind", "price=number").output


def test_a_kind_may_have_settings() -> None:
    said = 'price={"kind": "number", "log": true}'

    assert repr(Number("price", log=True)) in invoke(command, "--kind", said).output


def test_levels_may_hold_commas() -> None:
    found = invoke(command, "--levels", 'city="Bonn, Rhein",Oslo').output

    assert repr(Category("city", levels=("Bonn, Rhein", "Oslo"))) in found


@pytest.mark.parametrize("said", ["price", "=number", "price=", "price={", "price=nonsense"])
def test_what_is_no_kind_is_rejected(said: str) -> None:
    with pytest.raises(SettingError):
        invoke(command, "--kind", said)
