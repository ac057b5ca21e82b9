"""The command `plan`: which search a catalogue needs on this machine."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count

import click

from fastbandit.cli.options import json_option, print_json
from fastbandit.cli.tables import print_lines
from fastbandit.planning.searches import (
    SEARCHES,
    Answer,
    Ask,
    Evidence,
    Timing,
    answer,
    in_bytes,
    measure,
    memory_left,
    seconds_of,
    sizes_for,
)
from fastbandit.progress import progress_bar, seconds_in_words

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
@json_option
def command(
    arms: int, dim: int, bar: str, *, hidden: int | None, seconds: float, as_json: bool
) -> None:
    """Measure on this machine which search so many arms need, and what it will take.

    Nothing is trained: compiled searches run over random arms, at most two million of them.
    """
    ask = Ask(arms, dim, seconds_of(bar), hidden)
    steps = len(sizes_for(ask, memory_left())) * (1 + len(SEARCHES)) + 1
    done = count()
    with progress_bar("Plan") as progress:

        def tick(doing: str) -> None:
            progress(next(done), steps, doing)

        evidence = measure(ask, seconds=seconds, tick=tick)
    found = answer(ask, evidence)
    if as_json:
        print_json({**asdict(ask), **asdict(found), "evidence": asdict(evidence)})
    else:
        print_answer(ask, found, evidence)


def print_answer(ask: Ask, found: Answer, evidence: Evidence) -> None:
    """Print what to take, what it needs, and what was measured."""
    met = "meets" if found.is_met else "comes nearest to"
    said = (
        f"{ask.arms:,} arms of {ask.dim} features, p99 of {seconds_in_words(ask.bar_s)}: "
        f"{found.settings} {met} it.",
        *found.reasons,
        "",
        f"Memory {in_bytes(found.memory_bytes)}, twice that while arms are indexed anew; "
        f"building takes about {seconds_in_words(found.build_s)}.",
        "",
    )
    click.echo("\n".join(said))
    headings = ("search", "arms", "p50", "p99", "decisions/s, all cores", "")
    shown = [*evidence.timings]
    if found.expected.is_extrapolated:
        shown += [evidence.at(name, ask.arms) for name in SEARCHES]
    print_lines("Measured here:", headings, [_cells(timing) for timing in shown])


def _cells(timing: Timing) -> tuple[str, ...]:
    return (
        timing.search,
        f"{timing.arms:,}",
        seconds_in_words(timing.p50_s),
        seconds_in_words(timing.p99_s),
        f"{timing.per_s:,.0f}",
        "extrapolated" if timing.is_extrapolated else "",
    )
