"""The command `evaluate`: what a policy would have earned on a log that another one made."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.tables import print_table
from fastbandit.errors import SettingError
from fastbandit.evaluation.estimators import ESTIMATORS
from fastbandit.evaluation.intervals import INTERVALS
from fastbandit.evaluation.named_policies import (
    check_columns,
    is_plain,
    learned_until,
    load_policy,
)
from fastbandit.evaluation.readers import read_rounds
from fastbandit.evaluation.report import HEADINGS, Evaluation
from fastbandit.evaluation.reward_models import MODELS
from fastbandit.evaluation.run import evaluate
from fastbandit.progress import Progress, progress_bar
from fastbandit.settings.passwords import hide_password


def _levels(
    context: click.Context, option: click.Parameter, told: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Read the texts of columns: city=Oslo,Rome; one with a comma stands in quotes."""
    found = {}
    for text in told:
        column, mark, names = text.partition("=")
        levels = tuple(next(csv.reader([names]), ()))
        if not column or not mark or not levels or len(set(levels)) < len(levels):
            raise SettingError(
                f"--levels needs a column and each of its texts once, such as city=Oslo,Rome: got "
                f"{text!r}. Write it so."
            )
        found[column] = levels
    return found


@click.command("evaluate")
@click.option(
    "--log",
    help="A service's data folder or postgresql://URL, a Parquet, CSV or DSJSON file, or an Open "
    "Bandit folder.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A file of a service's settings, in place of --log.",
)
@click.option(
    "--policy",
    help="uniform, arm:ID, or a folder: a saved or frozen bandit, or a service's data folder.",
)
@click.option("--context", multiple=True, help="A column of the context; x_* for all such.")
@click.option("--arm", help="The column of the arm that was taken.")
@click.option("--reward", help="The column of its reward.")
@click.option("--propensity", help="The column of how likely it was.")
@click.option(
    "--arms", type=click.Path(path_type=Path), help="A table of all arms: ids and features."
)
@click.option("--text-ids", is_flag=True, help="Take the ids of arms in tables as text.")
@click.option(
    "--levels",
    multiple=True,
    callback=_levels,
    help="The texts of a column, in the order of their flags: city=Oslo,Rome. May be given again.",
)
@click.option(
    "--estimator",
    "estimators",
    type=click.Choice(ESTIMATORS),
    multiple=True,
    help="One of these only; may be given again.",
)
@click.option(
    "--model", type=click.Choice(MODELS), default="ridge", show_default=True, help="Of the reward."
)
@click.option("--draws", type=int, help="Choices of a bandit a context; 16 to 1 by the rounds.")
@click.option("--greedy", is_flag=True, help="Let the bandit choose without exploring.")
@click.option("--floor", default=0.0, show_default=True, help="Uniform exploration under it.")
@click.option("--interval", type=click.Choice(INTERVALS), default="bootstrap", show_default=True)
@click.option("--confidence", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--clip", type=float, help="Cut weights above this; it says the bias.")
@click.option(
    "--switch-at", default=10.0, show_default=True, help="Above it, SWITCH trusts the model."
)
@click.option("--clusters", type=int, help="Clusters of arms, for MIPS.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Of draws, folds and resamples.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    log: str | None,
    config: Path | None,
    policy: str | None,
    context: tuple[str, ...],
    arm: str | None,
    reward: str | None,
    propensity: str | None,
    arms: Path | None,
    text_ids: bool,
    levels: dict[str, tuple[str, ...]],
    estimators: tuple[str, ...],
    model: str,
    draws: int | None,
    greedy: bool,
    epsilon: float,
    interval: str,
    confidence: float,
    clip: float | None,
    switch_at: float,
    clusters: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Estimate what a policy would have earned on a log that another policy made.

    Prints a table of estimators with intervals, and in words whether to trust them.
    """
    if (log is None) == (config is None) or policy is None:
        told = None if log is None else hide_password(log)
        raise SettingError(
            f"An evaluation needs a log or a config, and a policy: got --log {told}, --config "
            f"{config} and --policy {policy}. Name them, for example --log events.parquet --policy "
            f"uniform."
        )
    _check_told(policy, estimators, clusters, draws=draws, is_greedy=greedy, epsilon=epsilon)
    with progress_bar("Evaluating") as progress:
        named = log or _log_of(config, progress)
        read = read_rounds(
            named,
            context=context,
            arm=arm,
            reward=reward,
            propensity=propensity,
            arms=arms,
            is_text=text_ids,
            levels=levels,
            after=learned_until(policy, named),
            progress=progress,
        )
        check_columns(policy, read, told=levels)
        read, judged = load_policy(policy, read, log=named)
        found = evaluate(
            read,
            judged,
            estimators=estimators or None,
            model=model,
            draws=draws,
            explore=not greedy,
            epsilon=epsilon,
            interval=interval,
            confidence=confidence,
            clip=clip,
            switch_at=switch_at,
            clusters=clusters,
            seed=seed,
            progress=progress,
        )
    if as_json:
        _print_json(found.to_json())
    else:
        print_evaluation(found, title=f"{policy} on {hide_password(named)}")


def _check_told(
    policy: str,
    estimators: Sequence[str],
    clusters: int | None,
    *,
    draws: int | None,
    is_greedy: bool,
    epsilon: float,
) -> None:
    """Refuse options that would change nothing."""
    of_draws = {"--draws": draws is not None, "--greedy": is_greedy, "--floor": epsilon > 0.0}
    told = next((option for option, is_told in of_draws.items() if is_told), None)
    if told is not None and is_plain(policy):
        raise SettingError(
            f"{told} needs a policy that is a bandit: got --policy {policy}, which draws nothing. "
            f"Leave it out."
        )
    if clusters is not None and estimators and "mips" not in estimators:
        raise SettingError(
            f"--clusters needs the estimator mips: got --estimator {', '.join(estimators)} alone. "
            f"Add --estimator mips, or leave it out."
        )


def _log_of(config: Path | None, progress: Progress) -> str:
    """Give the log of a service's settings: a copy of it where it is shared."""
    from fastbandit.cli.data_folder import log_folder

    return str(log_folder(config, None, progress=progress))


def counted(number: int, thing: str) -> str:
    """Word a number of things: 1 round, 2 rounds."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def print_evaluation(found: Evaluation, *, title: str) -> None:
    """Print the table, and what to make of it."""
    print_table(HEADINGS, found.table(), title=title)
    width = f"{found.confidence:.0%} intervals ({found.interval})"
    counts = f"{counted(found.rounds, 'round')}, {counted(found.arms, 'arm')}"
    click.echo(f"{counts}, {width}")
    for sentence in found.words:
        click.echo(f"- {sentence}")


def _print_json(told: Any) -> None:
    click.echo(json.dumps(told, indent=1, allow_nan=False))
