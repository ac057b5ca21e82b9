"""The command `promote`: let a bandit in shadow mode decide, or its baseline again."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.options import read_service
from fastbandit.cli.shadow_mode import (
    find_evidence,
    let_decide,
    print_comparison,
    print_evidence,
    shadow_options,
)


@click.command("promote")
@click.option("--back", is_flag=True, help="Let the baseline decide again.")
@shadow_options
def command(
    path: Path | None, data_dir: Path | None, *, back: bool, minutes: int | None, as_json: bool
) -> None:
    """Let the bandit decide in place of the baseline, and say what speaks for it.

    Services that run follow within two seconds, and keep to it when they start again.
    """
    config = read_service(path, data_dir)
    # back comes first: it may be urgent, and to read a long log takes a while
    promotion = let_decide(config, "baseline", is_silent=as_json) if back else None
    evidence = find_evidence(config, minutes)
    if not as_json:
        print_evidence(evidence)
    promotion = promotion or let_decide(config, "bandit", is_silent=as_json)
    if as_json:
        print_comparison(promotion, evidence)
