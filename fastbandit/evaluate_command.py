"""The command `evaluate`: what a policy would have earned on a log that another one made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation.estimators import ESTIMATORS
from fastbandit.evaluation.intervals import INTERVALS
from fastbandit.evaluation.page import write_into
from fastbandit.evaluation.readers import SERVICE_LOG, read_rounds
from fastbandit.evaluation.report import HEADINGS, Evaluation
from fastbandit.evaluation.reward_models import MODELS
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.experiments.tables import markdown
from fastbandit.progress import progress_bar
from fastbandit.runtime.folder import KIND as FROZEN
from fastbandit.storage.sealed import MANIFEST

CHECKS = ("coverage", "open-bandit", "speed")


@click.command("evaluate")
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    help="A service's data folder, a Parquet, CSV or DSJSON file, or an Open Bandit folder.",
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
@click.option("--seed", default=0, show_default=True, help="Of draws, folds and resamples.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--self-check",
    "check",
    type=click.Choice(CHECKS),
    help="Instead: made-up logs, Open Bandit, or a million rounds over a million arms (with "
    "--policy, the arms of that frozen bandit).",
)
@click.option("--logs", default=200, show_default=True, help="Made-up logs of --self-check.")
@click.option("--rounds", default=1_000_000, show_default=True, help="Of --self-check speed.")
@click.option("--arm-count", default=1_000_000, show_default=True, help="Of --self-check speed.")
@click.option("--data", type=click.Path(path_type=Path), help="The folder of the Open Bandit data.")
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path),
    help="A page to put what a check found into.",
)
def evaluate_command(
    log: Path | None,
    policy: str | None,
    context: tuple[str, ...],
    arm: str | None,
    reward: str | None,
    propensity: str | None,
    arms: Path | None,
    text_ids: bool,
    estimators: tuple[str, ...],
    model: str,
    draws: int | None,
    greedy: bool,
    floor: float,
    interval: str,
    confidence: float,
    clip: float | None,
    switch_at: float,
    clusters: int | None,
    seed: int,
    as_json: bool,
    check: str | None,
    logs: int,
    rounds: int,
    arm_count: int,
    data: Path | None,
    page: Path | None,
) -> None:
    """Estimate what a policy would have earned on a log that another policy made.

    Prints a table of estimators with intervals, and in words whether to trust them.
    """
    if check == "coverage":
        _check_coverage(logs, interval, seed, page=page, as_json=as_json)
        return
    if check == "open-bandit":
        _check_open_bandit(data, seed, page=page, as_json=as_json)
        return
    if check == "speed":
        _check_speed(
            rounds, arm_count, seed, policy=policy, draws=draws, page=page, as_json=as_json
        )
        return
    if log is None or policy is None:
        raise SettingError(
            f"An evaluation needs a log and a policy: got --log {log} and --policy {policy}. Name "
            f"both, for example --log events.parquet --policy uniform."
        )
    with progress_bar("Evaluating") as progress:
        read = read_rounds(
            log,
            context=context,
            arm=arm,
            reward=reward,
            propensity=propensity,
            arms=arms,
            is_text=text_ids,
            progress=progress,
        )
        found = evaluate(
            read,
            load_policy(policy, read),
            estimators=estimators or None,
            model=model,
            draws=draws,
            explore=not greedy,
            floor=floor,
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
        print_evaluation(found, title=f"{policy} on {log}")


def load_policy(named: str, rounds: LoggedRounds) -> Any:
    """Give what --policy names, for `evaluate`."""
    if named == "uniform":
        return named
    if named.startswith("arm:"):
        return SparsePolicy.fixed(rounds, _id_like(named.removeprefix("arm:"), rounds))
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"A policy needs to be 'uniform', 'arm:ID' or a folder: got {named!r}, and there is no "
            f"such folder. Save a bandit with save(), or name a service's data folder."
        )
    if (folder / SERVICE_LOG).exists() or (folder / "snapshots").is_dir():
        folder = _current_snapshot(folder)
    if _kind_of(folder) == FROZEN:
        from fastbandit.runtime.frozen import FrozenBandit

        return FrozenBandit.load(folder)
    from fastbandit.bandit import Bandit

    return Bandit.load(folder)


def _kind_of(folder: Path) -> str:
    """Tell what kind of bandit a folder holds; one that cannot be read is told by its loader."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(manifest.get("kind", "")) if isinstance(manifest, dict) else ""


def _id_like(text: str, rounds: LoggedRounds) -> Any:
    """Read an id as the log has them: a number where its first is one."""
    first = rounds.ids[0] if rounds.ids else 0
    return int(text) if isinstance(first, int) and text.lstrip("-").isdigit() else text


def _current_snapshot(folder: Path) -> Path:
    from fastbandit.storage.snapshot_store import SnapshotStore

    current = SnapshotStore(folder / "snapshots").current()
    if current is None:
        raise DataError(
            f"A policy needs a snapshot: {folder} has none yet. Let the service start, or name a "
            f"saved bandit."
        )
    return current.frozen


def print_evaluation(found: Evaluation, *, title: str) -> None:
    """Print the table, and what to make of it."""
    _print_table(HEADINGS, found.table(), title=title)
    width = f"{found.confidence:.0%} intervals ({found.interval})"
    click.echo(f"{found.rounds:,} rounds, {found.arms:,} arms, {width}")
    for sentence in found.words:
        click.echo(f"- {sentence}")


# -- checks


def _check_coverage(
    logs: int, interval: str, seed: int, *, page: Path | None, as_json: bool
) -> None:
    from fastbandit.evaluation.self_check import check_coverage, coverage_rows

    with progress_bar("Checking") as progress:
        found = check_coverage(logs=logs, interval=interval, seed=seed, progress=progress)
    told = [{**asdict(one), "is_met": one.is_met} for one in found]
    _tell_check("coverage", _table(coverage_rows(found)), told, page=page, as_json=as_json)


def _check_open_bandit(data: Path | None, seed: int, *, page: Path | None, as_json: bool) -> None:
    from fastbandit.evaluation.open_bandit_check import check_open_bandit, rows_of, words_of

    with progress_bar("Open Bandit") as progress:
        found = check_open_bandit(data, seed=seed, progress=progress)
    text = f"{_table(rows_of(found))}\n\n{words_of(found)}"
    told = [one.to_json() for one in found]
    _tell_check("open-bandit", text, told, page=page, as_json=as_json)


def _check_speed(
    rounds: int,
    arms: int,
    seed: int,
    *,
    policy: str | None,
    draws: int | None,
    page: Path | None,
    as_json: bool,
) -> None:
    from fastbandit.evaluation.speed_check import check_speed, speed_words
    from fastbandit.runtime.frozen import FrozenBandit

    frozen = None if policy is None else FrozenBandit.load(Path(policy).expanduser())
    with progress_bar("Evaluating") as progress:
        found = check_speed(
            rounds=rounds, arms=arms, frozen=frozen, draws=draws, seed=seed, progress=progress
        )
    check = "speed" if frozen is None else "frozen-speed"
    _tell_check(check, speed_words(found), found.to_json(), page=page, as_json=as_json)


def _tell_check(check: str, text: str, told: Any, *, page: Path | None, as_json: bool) -> None:
    if page is not None:
        write_into(page, check, text)
    if as_json:
        _print_json(told)
    else:
        click.echo(text)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD)
    for place, heading in enumerate(head):
        table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def _print_json(told: Any) -> None:
    click.echo(json.dumps(told, indent=1, allow_nan=False))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Word rows as Markdown, the first as the heading."""
    return markdown(rows[0], rows[1:], words=len(rows[0]))
