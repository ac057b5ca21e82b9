"""The command `shadow`: how a bandit in shadow mode compares with its baseline."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.options import read_service
from fastbandit.cli.shadow_mode import (
    find_evidence,
    print_comparison,
    print_evidence,
    shadow_options,
    who_decides,
)


@click.command("shadow")
@shadow_options
def command(
    path: Path | None, data_dir: Path | None, *, minutes: int | None, as_json: bool
) -> None:
    """Compare the bandit with the baseline beside it; nothing is changed."""
    config = read_service(path, data_dir)
    promotion, evidence = who_decides(config), find_evidence(config, minutes)
    if as_json:
        print_comparison(promotion, evidence)
        return
    click.echo(f"The {promotion.decides if promotion else 'baseline'} decides.")
    print_evidence(evidence)
