"""The command `promote`: let a bandit in shadow mode decide, or its baseline again."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.shadow_mode import (
    find_evidence,
    let_decide,
    print_comparison,
    read_service,
    service_options,
    tell_evidence,
)


@click.command("promote")
@click.option("--back", is_flag=True, help="Let the baseline decide again.")
@service_options
def command(
    back: bool, path: Path | None, data_dir: str | None, minutes: int | None, as_json: bool
) -> None:
    """Let the bandit decide in place of the baseline, and say what speaks for it.

    Services that run follow within two seconds, and keep to it when they start again.
    """
    config = read_service(path, data_dir)
    # back comes first: it may be urgent, and to read a long log takes a while
    decides = let_decide(config, "baseline", is_told=not as_json) if back else None
    evidence = find_evidence(config, minutes)
    if not as_json:
        tell_evidence(evidence)
    decides = decides or let_decide(config, "bandit", is_told=not as_json)
    if as_json:
        print_comparison(decides, evidence)
