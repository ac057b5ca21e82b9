"""Options of commands that make runs, each once, and write them into a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

figure_option = click.option(
    "--figure",
    "picture",
    type=click.Path(path_type=Path),
    help="A file (.svg or .png) for the figure; with --doc it is shown in the page.",
)


def run_options(folder: str) -> Decorator:
    """Return what adds the options of where runs are written, and which of them are made."""
    options = (
        click.option(
            "--data", type=click.Path(path_type=Path), help="Folder of the datasets' files."
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            default=Path("results") / folder,
            show_default=True,
            help="Results, a file for each run; those that are there are not made again.",
        ),
        click.option(
            "--keep",
            type=click.Path(path_type=Path),
            help="File of rows: make no run that has one, add new ones, show all.",
        ),
        click.option(
            "--most-seconds",
            default=600.0,
            show_default=True,
            type=click.FloatRange(0.0, min_open=True),
            help="End a run that takes the processor longer.",
        ),
        click.option(
            "--retry-failed", is_flag=True, help="Make those runs again that failed before."
        ),
        click.option(
            "--made-only", is_flag=True, help="Make no run; compare those that are there."
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add
