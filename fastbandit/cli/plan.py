"""The command `plan`: which search a catalogue needs on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import count

import click

from fastbandit.cli.tables import print_lines
from fastbandit.planning.searches import (
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
from fastbandit.progress import format_seconds, progress_bar

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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    arms: int, dim: int, bar: str, hidden: int | None, seconds: float, as_json: bool
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
        report = {**asdict(request), **asdict(plan), "evidence": asdict(measured)}
        click.echo(json.dumps(report, indent=1, allow_nan=False))
    else:
        print_plan(request, plan, measured)


def print_plan(request: PlanRequest, plan: SearchPlan, measured: Measurements) -> None:
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
