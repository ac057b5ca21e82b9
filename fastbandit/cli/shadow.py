"""The command `shadow`: how a bandit in shadow mode compares with its baseline."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.shadow_mode import (
    find_evidence,
    print_comparison,
    read_service,
    service_options,
    tell_evidence,
    who_decides,
)


@click.command("shadow")
@service_options
def command(path: Path | None, data_dir: str | None, minutes: int | None, as_json: bool) -> None:
    """Say how the bandit compares with the baseline beside it; nothing is changed."""
    config = read_service(path, data_dir)
    decides, evidence = who_decides(config), find_evidence(config, minutes)
    if as_json:
        print_comparison(decides, evidence)
        return
    click.echo(f"The {decides.decides if decides else 'baseline'} decides.")
    tell_evidence(evidence)
