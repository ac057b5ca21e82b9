"""`python -m lab estimators`: how far the estimators of a policy's value can be trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from fastbandit.evaluation.intervals import INTERVALS
from fastbandit.progress import progress_bar
from fastbandit.runtime.frozen import FrozenBandit
from lab.estimators.coverage import check_coverage, coverage_rows
from lab.estimators.open_bandit import check_open_bandit, rows_of, summary_of
from lab.estimators.page import write_into
from lab.estimators.speed import check_speed, speed_sentences
from lab.experiments.tables import markdown

_COUNT = click.IntRange(1)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _options(command: _Command) -> _Command:
    """Add the options of every check."""
    seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
    page = click.option(
        "--write",
        "page",
        type=click.Path(path_type=Path),
        help="A page to put what was found into.",
    )
    return seed(page(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)))


@click.command("coverage")
@click.option("--logs", default=200, show_default=True, type=_COUNT, help="Synthetic logs.")
@click.option("--interval", type=click.Choice(INTERVALS), default="bootstrap", show_default=True)
@_options
def coverage_command(logs: int, interval: str, seed: int, page: Path | None, as_json: bool) -> None:
    """Count how often intervals hold the truth, over synthetic logs."""
    with progress_bar("Checking") as progress:
        found = check_coverage(logs=logs, interval=interval, seed=seed, progress=progress)
    values = [{**asdict(one), "is_met": one.is_met} for one in found]
    _show("coverage", _table(coverage_rows(found)), values, page=page, as_json=as_json)


@click.command("open-bandit")
@click.option("--data", type=click.Path(path_type=Path), help="The folder of the Open Bandit data.")
@_options
def open_bandit_command(data: Path | None, seed: int, page: Path | None, as_json: bool) -> None:
    """Judge each policy of the Open Bandit data from the log of the other."""
    with progress_bar("Open Bandit") as progress:
        found = check_open_bandit(data, seed=seed, progress=progress)
    text = f"{_table(rows_of(found))}\n\n{summary_of(found)}"
    _show("open-bandit", text, [one.to_json() for one in found], page=page, as_json=as_json)


@click.command("speed")
@click.option("--rounds", default=1_000_000, show_default=True, type=_COUNT, help="Of the log.")
@click.option("--arms", default=1_000_000, show_default=True, type=_COUNT, help="Of the catalogue.")
@click.option("--policy", help="A frozen bandit to judge, in place of a synthetic policy.")
@click.option("--draws", type=int, help="Choices of that bandit a context.")
@_options
def speed_command(
    rounds: int,
    arms: int,
    policy: str | None,
    draws: int | None,
    seed: int,
    page: Path | None,
    as_json: bool,
) -> None:
    """Time an evaluation of many rounds over many arms, and compare it with the truth."""
    frozen = None if policy is None else FrozenBandit.load(Path(policy).expanduser())
    with progress_bar("Evaluating") as progress:
        found = check_speed(
            rounds=rounds, arms=arms, frozen=frozen, draws=draws, seed=seed, progress=progress
        )
    check = "speed" if frozen is None else "frozen-speed"
    _show(check, speed_sentences(found), found.to_json(), page=page, as_json=as_json)


def _show(check: str, text: str, values: Any, *, page: Path | None, as_json: bool) -> None:
    if page is not None:
        write_into(page, check, text)
    click.echo(json.dumps(values, indent=1, allow_nan=False) if as_json else text)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as Markdown, the first as the heading."""
    return markdown(rows[0], rows[1:], words=len(rows[0]))
