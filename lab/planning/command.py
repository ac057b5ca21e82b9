"""`python -m lab plan`: how many machines a load needs."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.plan import number_of_arms
from lab.planning.cluster_plan import ClusterAsk
from lab.planning.cluster_plan_page import print_plan

_POSITIVE = click.FloatRange(0.0, min_open=True)
_FILE = click.Path(path_type=Path)


@click.command("plan")
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
def plan_command(
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
