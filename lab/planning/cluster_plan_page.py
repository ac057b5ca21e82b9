"""Words the plan of a cluster: as tables to print, for a page, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from lab.benchmarks.reporting import print_lines, read_doc
from lab.experiments.results import write_beside
from lab.experiments.tables import between_marks, markdown
from lab.planning.cluster_plan import (
    ClusterAsk,
    ClusterPlan,
    assumptions,
    figures,
    plan_cluster,
    verdict,
)
from lab.planning.cluster_plan_scenes import Checked, Played, check, play
from lab.planning.cluster_plan_units import Units, measure_units, read_units, write_units
from lab.printing import format_seconds
from lab.stamps import command_line, stamp_now

_STEPS = 9
_MARKS = ("<!-- plan: written by python -m lab plan cluster -->", "<!-- end of plan -->")


@dataclass(frozen=True)
class ClusterReport:
    """A plan, the scenes that were played, and the check of the simulator."""

    ask: ClusterAsk
    units: Units
    plan: ClusterPlan
    played: Sequence[Played]
    checked: Sequence[Checked]


@dataclass(frozen=True)
class Table:
    """A titled table of words."""

    title: str
    head: tuple[str, ...]
    lines: list[tuple[str, ...]]


def print_plan(
    ask: ClusterAsk,
    *,
    units_path: Path | None,
    log_url: str | None,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Measure or read the units, plan, simulate, and say it all."""
    report = made_plan(ask, units_for(ask.dim, units_path, log_url))
    if doc is not None:
        fresh = f"{page_of(report)}\n{stamp_now(command_line('plan cluster'))}\n"
        write_beside(doc, between_marks(read_doc(doc), fresh, marks=_MARKS))
    if as_json:
        click.echo(json.dumps(asdict(report), indent=1, allow_nan=False))
    else:
        for table in tables_of(report):
            print_lines(table.title, table.head, table.lines)
        click.echo("\n".join(verdict(report.plan, ask)))


def units_for(dim: int, units_path: Path | None, log_url: str | None) -> Units:
    """Read the units from the file that stores them, else measure them and write it."""
    if units_path is not None and units_path.exists():
        units = read_units(units_path)
        if units.dim != dim:
            raise SettingError(
                f"The units need to be of --dim {dim}: {units_path} has those of --dim "
                f"{units.dim}. Give that, or another file to measure into."
            )
        return units
    done = iter(range(_STEPS + 1))
    with progress_bar("Plan") as progress:
        units = measure_units(
            dim, log_url=log_url, tick=lambda doing: progress(next(done), _STEPS, doing)
        )
    if units_path is not None:
        write_units(units_path, units)
    return units


def made_plan(ask: ClusterAsk, units: Units) -> ClusterReport:
    """Plan, and let the plan run in the simulator."""
    plan = plan_cluster(ask, units)
    return ClusterReport(ask, units, plan, play(ask, plan, units), check(units))


def tables_of(report: ClusterReport) -> list[Table]:
    """Return all tables in their order."""
    ask, plan = report.ask, report.plan
    return [
        Table(
            "What it rests on",
            ("what", "figure", "source"),
            [(row.what, row.figure, row.source) for row in assumptions(ask, plan, report.units)],
        ),
        Table(
            "What it needs",
            ("what", "figure"),
            [(row.what, row.figure) for row in figures(plan, ask)],
        ),
        Table(
            "How full each part is, the fullest first",
            ("part", "asked of it", "it"),
            [(one.what, f"{one.load:.1%}", one.detail) for one in plan.limits],
        ),
        Table(
            "One shard, simulated",
            ("scene", "deciders", "busy", "answers/s", "p50", "p99", "without a decision"),
            [_scene_line(one) for one in report.played],
        ),
        Table(
            "The simulator beside a real service on this machine",
            ("load", "real/s", "simulated/s", "ratio", "real p99", "simulated p99"),
            [_check_line(one) for one in report.checked],
        ),
    ]


def page_of(report: ClusterReport) -> str:
    """Format the plan as Markdown."""
    parts = []
    for table in tables_of(report):
        parts += [f"## {table.title}", markdown(table.head, table.lines, words=1)]
    said = "\n".join(f"- {line}" for line in verdict(report.plan, report.ask))
    return "\n" + "\n\n".join([*parts, "## What breaks first", said]) + "\n"


def _scene_line(one: Played) -> tuple[str, ...]:
    became = one.became
    return (
        one.name,
        str(one.scene.deciders),
        f"{became.busy:.0%}",
        f"{became.per_second:,.0f}",
        format_seconds(became.p50_s),
        format_seconds(became.p99_s),
        f"{became.failed_share:.3%}",
    )


def _check_line(one: Checked) -> tuple[str, ...]:
    return (
        one.ran.name,
        f"{one.ran.per_second:,.0f}",
        f"{one.simulated.per_second:,.0f}",
        f"{one.ratio:.2f}",
        format_seconds(one.ran.p99_s),
        format_seconds(one.simulated.p99_s),
    )
