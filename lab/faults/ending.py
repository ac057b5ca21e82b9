"""How a campaign ends: its report is printed, and the status says whether it met its bars."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fastbandit import __version__
from lab.experiments.results import code_commit

_R = TypeVar("_R")


def end_with_report(
    report: _R, notes: dict[str, Any], *, as_json: bool, show: Callable[[_R], None], is_met: bool
) -> None:
    """Print a report for machines (`notes`) or for people, and end with 1 where a bar is missed."""
    if as_json:
        code = {"version": __version__, "commit": code_commit()}
        click.echo(json.dumps({**notes, **code}, indent=1))
    else:
        show(report)
    if not is_met:
        raise click.exceptions.Exit(1)
