"""The command `doctor`: what is wrong or slow with this installation, and what to do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fastbandit import __version__
from fastbandit.doctor import Finding, examine
from fastbandit.progress import progress_bar

_COLOURS = {"ok": "green", "slow": "yellow", "broken": "red", "missing": "bright_black"}


@click.command("doctor")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Look at this folder of a service too."
)
@click.option("--warm", is_flag=True, help="Compile decisions now, if they are not yet.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, data_dir: Path | None, warm: bool, as_json: bool) -> None:
    """Check this installation: what is broken, what is slow and why, what is missing.

    Takes some seconds. Exits with 1 where something is broken, else with 0.
    """
    with progress_bar("Checking") as progress:
        findings = examine(data_dir, is_warming=warm, progress=progress)
    is_healthy = all(one.state != "broken" for one in findings)
    if as_json:
        told = {"version": __version__, "healthy": is_healthy}
        listed = [asdict(one) for one in findings]
        click.echo(json.dumps({**told, "findings": listed}, indent=1))
    else:
        print_table(findings)
        click.echo(_worded(findings))
    context.exit(0 if is_healthy else 1)


def print_table(findings: list[Finding]) -> None:
    """Print what was found; below what is not fine, why it matters and what to do."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("found")
    for one in findings:
        lines = [line for line in (one.found, one.why, one.fix) if line]
        table.add_row(one.name, Text(one.state, _COLOURS[one.state]), Text("\n".join(lines)))
    Console(highlight=False, markup=False).print(table)


def _worded(findings: list[Finding]) -> str:
    counts = {state: sum(one.state == state for one in findings) for state in _COLOURS}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
