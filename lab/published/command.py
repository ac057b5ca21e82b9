"""`python -m lab figures`: sample published figures, make them again, and say which come out."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fastbandit.cores import one_thread
from fastbandit.errors import FastbanditError
from fastbandit.progress import progress_bar
from lab.printing import print_lines
from lab.published.pages import Figure, figures_in, pages_of
from lab.published.sources import Again, Source, sources
from lab.stamps import commits_since, stamps_in

ROOT = Path(__file__).parents[2]
CONFIRMED, REFUTED, FAILED = "confirmed", "not confirmed", "failed"


@dataclass(frozen=True)
class Checked:
    """A figure that was sampled, and what came of making it again."""

    page: str
    where: str
    name: str
    column: str
    text: str
    command: str
    again: Again | None
    error: str | None = None

    @property
    def verdict(self) -> str:
        if self.again is None:
            return FAILED
        return CONFIRMED if self.again.is_confirmed else REFUTED


def all_figures(pages: dict[str, str]) -> list[Figure]:
    """Return the figures of all pages."""
    return [figure for page, text in pages.items() for figure in figures_in(text, page=page)]


def source_of(figure: Figure, known: Sequence[Source]) -> Source:
    """Return where a figure comes from; the last source has all that no other has."""
    return next(source for source in known if source.has(figure))


def sampled(
    figures: Sequence[Figure], known: Sequence[Source], *, count: int, seed: int
) -> list[tuple[Figure, Source]]:
    """Draw so many of the figures that can be made again, without replacement."""
    both = [(figure, source_of(figure, known)) for figure in figures]
    cheap = [pair for pair in both if pair[1].again is not None]
    return random.Random(seed).sample(cheap, min(count, len(cheap)))


def check(figure: Figure, source: Source) -> Checked:
    """Make a figure again; what cannot be made says why."""
    assert source.again is not None
    again, error = None, None
    try:
        again = source.again(figure)
    except (FastbanditError, KeyError, ModuleNotFoundError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    where = figure.place.title or figure.place.heading
    return Checked(
        page=figure.place.page,
        where=where,
        name=figure.name,
        column=figure.heading,
        text=figure.text,
        command=source.command,
        again=again,
        error=error,
    )


def _print_checked(found: Sequence[Checked]) -> None:
    head = ("page", "table", "row", "column", "shown", "compared", "now", "may differ", "")
    lines = []
    for one in found:
        again = one.again
        numbers = [] if again is None else [again.published, again.now, again.error]
        cells = [f"{number:.4g}" for number in numbers] or ["–"] * 3
        lines.append((one.page, one.where, one.name, one.column, one.text, *cells, one.verdict))
    print_lines("Figures made again", head, lines)
    for one in found:
        if one.error is not None:
            click.echo(f"{one.page}, {one.name}, {one.column}: {one.error}", err=True)
    confirmed = sum(one.verdict == CONFIRMED for one in found)
    same = sum(one.again is not None and one.again.is_same for one in found)
    click.echo(
        f"{confirmed} of {len(found)} figures are confirmed within their error, {same} of them to "
        f"the last digit."
    )


@click.group("figures")
def figures_command() -> None:
    """Check the figures that README and docs show."""


@figures_command.command("check")
@click.option(
    "--count", default=20, show_default=True, type=click.IntRange(1), help="Figures to sample."
)
@click.option("--seed", default=0, show_default=True, help="Of the sample.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Result files or kept rows to make docs/results.md of.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
def check_command(count: int, seed: int, results: Path | None, as_json: bool) -> None:
    """Sample figures of README and docs, make them again, and exit with 1 where one is refuted.

    Rewards need to come out within the interval that is shown, counts exactly, and times as
    ratios of two rows within half. `python -m lab figures list` says what cannot be sampled.
    """
    one_thread()
    found = []
    with tempfile.TemporaryDirectory() as folder, progress_bar("Figures") as progress:
        known = sources(Path(folder), results)
        chosen = sampled(all_figures(pages_of(ROOT)), known, count=count, seed=seed)
        for number, (figure, source) in enumerate(chosen):
            progress(number, len(chosen), f"{figure.name}, {figure.heading}")
            found.append(check(figure, source))
    if as_json:
        rows = [{**asdict(one), "verdict": one.verdict} for one in found]
        click.echo(json.dumps({"seed": seed, "figures": rows}, indent=1))
    else:
        _print_checked(found)
    if any(one.verdict != CONFIRMED for one in found):
        click.get_current_context().exit(1)


@figures_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
def list_command(as_json: bool) -> None:
    """Count the figures of README and docs by their command, and say which can be sampled.

    Below stands with which code each generated table was measured, and by how many commits the
    package changed since.
    """
    pages = pages_of(ROOT)
    rows, ages = listed(all_figures(pages), sources(Path())), ages_of(pages)
    if as_json:
        click.echo(json.dumps({"figures": rows, "tables": ages}, indent=1))
        return
    head = ("command", "figures", "sampled")
    lines = [(row["command"], f"{row['figures']:,}", row["why_not"] or "yes") for row in rows]
    print_lines("Figures by their command", head, lines)
    cells = [tuple("–" if value is None else str(value) for value in age.values()) for age in ages]
    print_lines("Tables by their code", ("page", "command", "version", "commits since"), cells)


def ages_of(pages: dict[str, str]) -> list[dict[str, Any]]:
    """Return the stamps of pages, with how many commits changed the package since."""
    return [
        {
            "page": page,
            "command": stamp.command,
            "version": ", ".join(stamp.versions),
            "commits_since": commits_since(stamp, ROOT),
        }
        for page, text in pages.items()
        for stamp in stamps_in(text)
    ]


def listed(figures: Sequence[Figure], known: Sequence[Source]) -> list[dict[str, Any]]:
    """Return how many figures each source has, and why it is not sampled."""
    counts = [0] * len(known)
    for figure in figures:
        counts[known.index(source_of(figure, known))] += 1
    return [
        {"command": source.command, "figures": count, "why_not": source.why_not}
        for source, count in zip(known, counts, strict=True)
    ]
