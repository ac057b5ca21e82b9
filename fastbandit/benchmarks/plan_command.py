"""The command `plan`: which search a machine needs, or how many machines a load needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import count
from pathlib import Path

import click
from click.core import ParameterSource

from fastbandit.benchmarks.plan import (
    SEARCHES,
    Ask,
    answer,
    measure,
    memory_left,
    print_answer,
    seconds_of,
    sizes_for,
)
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar

_OF_BOTH = {"arms", "dim", "cluster", "as_json"}
_OF_SEARCHES = {"bar", "hidden", "seconds"}
_MOST_ARMS = 2**53


def number_of_arms(text: str) -> int:
    """Read a whole number of 1 or more, which may be written as 1e8."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number < _MOST_ARMS or number != int(number):
        raise click.BadParameter(f"{text!r} is not a whole number from 1 on, such as 1000 or 1e8.")
    return int(number)


_POSITIVE = click.FloatRange(0.0, min_open=True)
_FILE = click.Path(path_type=Path)


@click.command("plan")
@click.option("--arms", required=True, type=number_of_arms, help="Arms to choose from.")
@click.option("--dim", default=8, show_default=True, type=click.IntRange(1), help="Features.")
@click.option("--p99", "bar", default="1ms", show_default=True, help="The time of one decision.")
@click.option("--hidden", type=click.IntRange(1), help="Hidden units.  [default: 32]")
@click.option(
    "--seconds",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Time each search for so long.",
)
@click.option("--cluster", is_flag=True, help="Plan many machines; the options below are for it.")
@click.option("--selects", default=1e5, show_default=True, type=_POSITIVE, help="A second.")
@click.option(
    "--rewards-share",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Rewards for each select.",
)
@click.option("--retrain-minutes", default=60.0, show_default=True, type=_POSITIVE)
@click.option("--replicas", type=click.IntRange(1), help="Deciders.  [default: as many as needed]")
@click.option(
    "--utilisation",
    default=0.6,
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="How busy a process may be.",
)
@click.option("--machine-cores", default=16, show_default=True, type=click.IntRange(1))
@click.option("--machine-gib", default=256.0, show_default=True, type=_POSITIVE, help="Memory.")
@click.option("--gbit", default=10.0, show_default=True, type=_POSITIVE, help="Network, a second.")
@click.option("--log-rate", type=_POSITIVE, help="Events a second that one PostgreSQL takes.")
@click.option(
    "--log-url",
    help="Measure that in this PostgreSQL, and leave events there.  [default: one of its own]",
)
@click.option("--units", type=_FILE, help="Read what was measured; where it is not, write it.")
@click.option("--doc", type=_FILE, help="Also put the plan between the marks of this page.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
@click.pass_context
def plan_command(
    called: click.Context,
    arms: int,
    dim: int,
    bar: str,
    hidden: int | None,
    seconds: float,
    cluster: bool,
    selects: float,
    rewards_share: float,
    retrain_minutes: float,
    replicas: int | None,
    utilisation: float,
    machine_cores: int,
    machine_gib: float,
    gbit: float,
    log_rate: float | None,
    log_url: str | None,
    units: Path | None,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Measure on this machine which search so many arms need, and what it will take.

    Nothing is trained: compiled searches run over random arms, at most two million of them.
    With --cluster, count the machines that a load needs from what single things cost here.
    """
    _check_options(called, is_cluster=cluster)
    if cluster:
        from fastbandit.benchmarks.cluster_plan import ClusterAsk
        from fastbandit.benchmarks.cluster_plan_page import tell_cluster

        wanted = ClusterAsk(
            arms=arms,
            dim=dim,
            selects=selects,
            rewards_share=rewards_share,
            retrain_minutes=retrain_minutes,
            replicas=replicas,
            utilisation=utilisation,
            machine_cores=machine_cores,
            machine_gib=machine_gib,
            gbit=gbit,
            log_per_second=log_rate,
        )
        tell_cluster(wanted, kept=units, log_url=log_url, doc=doc, as_json=as_json)
    else:
        tell_search(Ask(arms, dim, seconds_of(bar), hidden), seconds=seconds, as_json=as_json)


def _check_options(called: click.Context, *, is_cluster: bool) -> None:
    """Refuse an option that the other kind of plan has, rather than ignore it."""
    for option in called.command.params:
        name = option.name or ""
        is_told = called.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_told and name not in _OF_BOTH and (name in _OF_SEARCHES) == is_cluster:
            kind = "of one machine" if is_cluster else "of a cluster"
            raise SettingError(
                f"The option {option.opts[0]} needs a plan {kind}: it was given "
                f"{'with' if is_cluster else 'without'} --cluster, and would change nothing. "
                f"{'Leave out' if is_cluster else 'Add'} --cluster, or leave out {option.opts[0]}."
            )


def tell_search(ask: Ask, *, seconds: float, as_json: bool) -> None:
    """Measure the searches, and say which to take."""
    steps = len(sizes_for(ask, memory_left())) * (1 + len(SEARCHES)) + 1
    done = count()
    with progress_bar("Plan") as progress:

        def tick(doing: str) -> None:
            progress(next(done), steps, doing)

        evidence = measure(ask, seconds=seconds, tick=tick)
    found = answer(ask, evidence)
    if as_json:
        told = {**asdict(ask), **asdict(found), "evidence": asdict(evidence)}
        click.echo(json.dumps(told, indent=1, allow_nan=False))
    else:
        print_answer(ask, found, evidence)
