"""`python -m lab plan`: how many machines a load needs, and which search a catalogue does."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from pathlib import Path

import click

from fastbandit.cli.options import json_option, print_json
from fastbandit.progress import progress_bar
from lab.benchmarks.reporting import print_lines
from lab.planning.cluster_plan import ClusterAsk
from lab.planning.cluster_plan_page import print_plan
from lab.planning.searches import (
    SEARCHES,
    Measurements,
    PlanRequest,
    SearchPlan,
    Timing,
    format_bytes,
    free_memory,
    measure,
    parse_seconds,
    plan_search,
    sizes_for,
)
from lab.printing import format_seconds

_POSITIVE = click.FloatRange(0.0, min_open=True)
_FILE = click.Path(path_type=Path)
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


@click.command("cluster")
@click.option("--arms", required=True, type=number_of_arms, help="Arms to choose from.")
@click.option("--dim", default=8, show_default=True, type=click.IntRange(1), help="Features.")
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
def cluster_command(
    arms: int,
    dim: int,
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
    """Count the machines that a load needs, from what single things cost on this one."""
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
    print_plan(wanted, units_path=units, log_url=log_url, doc=doc, as_json=as_json)


@click.command("search")
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
@json_option
def search_command(
    arms: int, dim: int, bar: str, *, hidden: int | None, seconds: float, as_json: bool
) -> None:
    """Measure on this machine which search so many arms need, and what it will take.

    Nothing is trained: compiled searches run over random arms, at most two million of them.
    """
    request = PlanRequest(arms, dim, parse_seconds(bar), hidden)
    steps = len(sizes_for(request, free_memory())) * (1 + len(SEARCHES)) + 1
    done = count()
    with progress_bar("Plan") as progress:

        def tick(doing: str) -> None:
            progress(next(done), steps, doing)

        measured = measure(request, seconds=seconds, tick=tick)
    plan = plan_search(request, measured)
    if as_json:
        print_json({**asdict(request), **asdict(plan), "evidence": asdict(measured)})
    else:
        print_search_plan(request, plan, measured)


def print_search_plan(request: PlanRequest, plan: SearchPlan, measured: Measurements) -> None:
    """Print what to take, what it needs, and what was measured."""
    met = "meets" if plan.is_met else "comes nearest to"
    said = (
        f"{request.arms:,} arms of {request.dim} features, p99 of {format_seconds(request.bar_s)}: "
        f"{plan.settings} {met} it.",
        *plan.reasons,
        "",
        f"Memory {format_bytes(plan.memory_bytes)}, twice that while arms are indexed anew; "
        f"building takes about {format_seconds(plan.build_s)}.",
        "",
    )
    click.echo("\n".join(said))
    headings = ("search", "arms", "p50", "p99", "decisions/s, all cores", "")
    shown = [*measured.timings]
    if plan.expected.is_extrapolated:
        shown += [measured.at(name, request.arms) for name in SEARCHES]
    print_lines("Measured here:", headings, [_cells(timing) for timing in shown])


def _cells(timing: Timing) -> tuple[str, ...]:
    return (
        timing.search,
        f"{timing.arms:,}",
        format_seconds(timing.p50_s),
        format_seconds(timing.p99_s),
        f"{timing.per_s:,.0f}",
        "extrapolated" if timing.is_extrapolated else "",
    )
