"""The command `evaluate`: what a policy would have earned on a log that another one made."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import counted, json_option, print_json, taking
from fastbandit.cli.schema_options import kind_option, levels_option
from fastbandit.cli.tables import print_table
from fastbandit.errors import SettingError
from fastbandit.evaluation.drawn_policies import Draws, schema_of
from fastbandit.evaluation.estimators import (
    Estimator,
    SwitchDR,
    declared_estimators,
    possible_estimators,
)
from fastbandit.evaluation.intervals import INTERVALS, Interval
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.evaluation.named_policies import (
    check_columns,
    is_plain,
    learned_until,
    load_bandit,
    load_policy,
)
from fastbandit.evaluation.readers import read_log
from fastbandit.evaluation.report import HEADINGS, Evaluation
from fastbandit.evaluation.reward_models import MODELS
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.progress import progress_bar
from fastbandit.settings.passwords import hide_password


@dataclass(frozen=True)
class Options:
    """What the command was asked for: an option each."""

    log: str | None
    config: Path | None
    policy: str | None
    context: tuple[str, ...]
    arm: str | None
    reward: str | None
    propensity: str | None
    arms: Path | None
    text_ids: bool
    kinds: dict[str, Any]
    levels: dict[str, Any]
    estimators: tuple[str, ...]
    model: str
    draws: int | None
    greedy: bool
    epsilon: float
    interval: str
    confidence: float
    clip: float | None
    switch_at: float
    clusters: int | None
    seed: int
    as_json: bool


def _renamed(option: str) -> str:
    """Return what an option is called now."""
    return "epsilon" if option == "floor" else option


@click.command("evaluate", cls=taking(Options), context_settings={"token_normalize_func": _renamed})
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
@kind_option
@levels_option
@click.option(
    "--estimator",
    "estimators",
    type=click.Choice(tuple(declared_estimators())),
    multiple=True,
    help="One of these only; may be given again.",
)
@click.option(
    "--model", type=click.Choice(MODELS), default="ridge", show_default=True, help="Of the reward."
)
@click.option("--draws", type=int, help="Choices of a bandit a context; 16 to 1 by the rounds.")
@click.option("--greedy", is_flag=True, help="Let the bandit choose without exploring.")
@click.option("--epsilon", default=0.0, show_default=True, help="Share of uniform choices.")
@click.option("--interval", type=click.Choice(INTERVALS), default="bootstrap", show_default=True)
@click.option("--confidence", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--clip", type=float, help="Cut weights above this; it says the bias.")
@click.option(
    "--switch-at",
    default=SwitchDR.threshold,
    show_default=True,
    help="Above it, SWITCH trusts the model.",
)
@click.option("--clusters", type=int, help="Clusters of arms, for MIPS.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Of draws, folds and resamples.",
)
@json_option
def command(options: Options) -> None:
    """Estimate what a policy would have earned on a log that another policy made.

    Prints a table of estimators with intervals, and says whether to trust them.
    """
    policy = _check(options)
    bandit, kinds = load_bandit(policy), {**options.kinds, **options.levels}
    columns = LogColumns(
        context=options.context,
        arm=options.arm,
        reward=options.reward,
        propensity=options.propensity,
        is_text=options.text_ids,
        schema=schema_of(bandit),
        kinds=kinds,
    )
    draws = Draws(options.draws, explore=not options.greedy, epsilon=options.epsilon)
    interval = Interval(options.interval, confidence=options.confidence)
    with progress_bar("Evaluating") as progress:
        log = options.log
        if log is None:
            from fastbandit.cli.data_folder import log_folder

            log = str(log_folder(options.config, None, progress=progress))
        after = learned_until(policy, log)
        rounds = read_log(log, columns, arms=options.arms, after=after, progress=progress)
        check_columns(bandit, rounds, given=kinds)
        rounds, loaded = load_policy(policy, rounds, log=log, bandit=bandit)
        found = evaluate(
            rounds,
            loaded,
            estimators=_estimators(options, rounds),
            model=options.model,
            draws=draws,
            interval=interval,
            seed=options.seed,
            progress=progress,
        )
    if options.as_json:
        print_json(found.to_json())
    else:
        print_evaluation(found, title=f"{policy} on {hide_password(log)}")


def _estimators(options: Options, rounds: LoggedRounds) -> list[Estimator] | None:
    """Return the estimators asked for, by default all, each with the options that it knows."""
    given = {
        "clip": options.clip,
        "clusters": options.clusters,
        "threshold": None if options.switch_at == SwitchDR.threshold else options.switch_at,
    }
    given = {name: value for name, value in given.items() if value is not None}
    known = declared_estimators()
    asked: list[Any] = [known[name]() for name in options.estimators]
    if not asked and not given:
        return None
    asked = asked or list(possible_estimators(rounds, has_clusters=options.clusters is not None))
    return [
        replace(one, **{own.name: given[own.name] for own in fields(one) if own.name in given})
        for one in asked
    ]


def _check(options: Options) -> str:
    """Return the policy; raise where one is missing, or where options would change nothing."""
    log, policy, estimators = options.log, options.policy, options.estimators
    if (log is None) == (options.config is None) or policy is None:
        raise SettingError(
            f"An evaluation needs a log or a config, and a policy: got --log "
            f"{None if log is None else hide_password(log)}, --config {options.config} and "
            f"--policy {policy}. Name them, for example --log events.parquet --policy uniform."
        )
    of_draws = {
        "--draws": options.draws is not None,
        "--greedy": options.greedy,
        "--epsilon": options.epsilon > 0.0,
    }
    given = next((option for option, is_given in of_draws.items() if is_given), None)
    if given is not None and is_plain(policy):
        raise SettingError(
            f"{given} needs a policy that is a bandit: got --policy {policy}, which draws nothing. "
            f"Leave it out."
        )
    if options.clusters is not None and estimators and "mips" not in estimators:
        raise SettingError(
            f"--clusters needs the estimator mips: got --estimator {', '.join(estimators)} alone. "
            f"Add --estimator mips, or leave it out."
        )
    return policy


def print_evaluation(found: Evaluation, *, title: str) -> None:
    """Print the table, and what to make of it."""
    print_table(HEADINGS, found.table(), title=title)
    counts = f"{counted(found.rounds, 'round')}, {counted(found.arms, 'arm')}"
    click.echo(f"{counts}, {found.confidence:.0%} intervals ({found.interval})")
    for sentence in found.sentences:
        click.echo(f"- {sentence}")
