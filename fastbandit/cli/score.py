"""The command `score`: arms for files of contexts, by a frozen bandit on many workers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import click

from fastbandit.cli.options import json_option, print_either, split_names, taking
from fastbandit.cluster.engine import ENGINES, engine_for
from fastbandit.cluster.scoring import ScoringSettings, score_contexts
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar


@dataclass(frozen=True)
class Options:
    """What to score, how, and where; see the help of each option."""

    frozen: str
    contexts: str
    out: str
    k: int
    explore: bool
    seed: int
    columns: str
    ids: str | None
    keep: str
    eligible: str | None
    rows: int | None
    workers: int | None
    engine: str
    address: str | None
    as_json: bool


@click.command("score", cls=taking(Options))
@click.option("--frozen", required=True, help="A frozen bandit's folder, or a service's snapshot.")
@click.option("--contexts", required=True, help="Parquet or CSV: a file, a folder or a pattern.")
@click.option("--out", required=True, help="Folder for the parts; one that was begun goes on.")
@click.option("--k", default=1, show_default=True, type=click.IntRange(1), help="Arms for each.")
@click.option("--explore/--greedy", default=True, help="Draw as the bandit does, or take the best.")
@click.option("--seed", default=0, show_default=True, help="Another seed, other draws.")
@click.option(
    "--columns", default="", help="Of the context, comma-separated: x_*; by a schema none."
)
@click.option("--ids", help="The column of ids, for contexts that are (also) ids.")
@click.option("--keep", default="", help="Columns to copy beside the arms, comma-separated.")
@click.option("--eligible", help='JSON: ids, or a predicate such as {"price": {"<=": 10}}.')
@click.option("--rows", type=click.IntRange(1), help="Rows of a part.  [default: 8192 to 65536]")
@click.option("--workers", type=click.IntRange(1), help="[default: one for each core]")
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--address", help="Of a Ray cluster; without, one is started here.")
@json_option
def command(options: Options) -> None:
    """Choose arms for each row of Parquet or CSV files, and write them as Parquet.

    A bandit with a schema finds the columns of contexts by their names, in any order. Files and
    folders are paths or URLs (s3://bucket/folder). What is asked for a second time goes on with
    the parts that are missing; neither workers nor engine change an arm.
    """
    settings = ScoringSettings(
        k=options.k,
        explore=options.explore,
        seed=options.seed,
        columns=split_names(options.columns),
        ids=options.ids,
        keep=split_names(options.keep),
        eligible=_read_eligible(options.eligible),
        rows=options.rows,
    )
    pool = engine_for(options.engine, workers=options.workers, address=options.address)
    with progress_bar("Scoring") as progress, pool as engine:
        scored = score_contexts(
            options.frozen,
            options.contexts,
            options.out,
            settings=settings,
            engine=engine,
            progress=progress,
        )
    rate = scored.scored / scored.seconds
    print_either(
        options.as_json,
        asdict(scored),
        f"{scored.rows:,} rows of {scored.inputs} files, among {scored.arms:,} arms of version "
        f"{scored.version}: {scored.parts} parts.",
        f"{scored.scored:,} rows scored in {scored.seconds:.1f} s ({rate:,.0f}/s) by "
        f"{scored.workers} workers; {scored.skipped:,} were there, {scored.repeated} parts were "
        f"begun before.",
        scored.out,
    )


def _read_eligible(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingError(
            f"--eligible needs JSON, a list of ids or a predicate: got {text!r} ({error}). Write "
            f"""'{{"price": {{"<=": 10}}}}' for example."""
        ) from error
