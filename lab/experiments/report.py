"""`python -m lab report`: result files as one HTML page, as docs/results.md, and in the README."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fastbandit.demo.page import make_folder, write_all
from fastbandit.errors import DataError, SettingError
from fastbandit.progress import Progress, progress_bar, silent
from lab.experiments.comparison import (
    Result,
    Standing,
    bars_of,
    longest,
    of_exhaust,
    played,
    standings_of,
)
from lab.experiments.empty_cells import empty_cells
from lab.experiments.figures import import_matplotlib, png_of, svg_of
from lab.experiments.kept import newest, read_rows
from lab.experiments.outline import outline
from lab.experiments.report_html import report_page
from lab.experiments.report_tables import Table, shares_table
from lab.experiments.results import read_results
from lab.experiments.sections import Notes, Section, sketches
from lab.experiments.tables import between_marks
from lab.stamps import stamp_of

MARKS = ("<!-- results: written by python -m lab report -->", "<!-- end of results -->")
_OPENING = (
    "Written by `python -m lab report --doc` from result files and kept rows; not typed. The rows "
    "of docs/results.md are in the folder docs/results, one a run, each with its commit."
)
_PLAYED = "python -m lab experiment run"


# -- reading

_MAYBE = (int, float, type(None))
_NAMES = {"dataset": str, "policy": str, "preset": str}
_NEEDED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "play": {**_NAMES, "rounds": int, "batch": int, "seed": int, "earned": list, "best": list},
    "replay": {**_NAMES, "seed": int, **dict.fromkeys(("matches", "mean", "low", "high"), _MAYBE)},
    "training": {"dataset": str, "preset": str, "ratios": dict},
    "runtime": {**_NAMES, **dict.fromkeys(("single", "batch", "train"), _MAYBE)},
    "scaling": {"policy": str, "preset": str, "arms": list, "seconds": list},
}
_PAIRED = {"play": ("earned", "best"), "scaling": ("arms", "seconds")}


def load_results(*folders: Path) -> list[Result]:
    """Read all results and kept rows below folders; of one play made twice, the newer code's.

    Rows of sets that systems played are of other pages, and left out. A result that lacks what its
    kind needs is refused.
    """
    found = [pair for folder in folders for pair in _below(folder)]
    if not found:
        raise DataError(
            f"A report needs result files: {', '.join(map(str, folders))} holds none. Make some "
            f"with `{_PLAYED}`, or name another folder."
        )
    for path, result in found:
        trouble = _trouble(result)
        if trouble:
            raise DataError(
                f"The result file {path} is damaged: {trouble}. Remove it and run that again."
            )
    results = [result for _, result in found]
    others = [result for result in results if result["kind"] != "play"]
    return [*newest(result for result in results if result["kind"] == "play"), *others]


def _below(folder: Path) -> Iterator[tuple[Path, Result]]:
    yield from zip(sorted(folder.rglob("*.json")), read_results(folder), strict=True)
    for path in sorted(folder.rglob("*.jsonl")):
        yield from ((path, row) for row in read_rows(path) if row.get("kind") != "bakeoff")


def _trouble(result: Result) -> str | None:
    kind = result.get("kind")
    if kind not in _NEEDED:
        return f"its kind is {kind!r}, not one of {', '.join(_NEEDED)}"
    for name, form in _NEEDED[kind].items():
        if not isinstance(result.get(name), form) or name not in result:
            return f"its {name} is {result.get(name)!r}"
    if not isinstance(result.get("options") or {}, dict):
        return f"its options are {result['options']!r}"
    if kind in _PAIRED:
        one, two = (result[name] for name in _PAIRED[kind])
        if not (_are_numbers(one) and _are_numbers(two) and len(one) == len(two) > 0):
            return f"its {' and '.join(_PAIRED[kind])} are not lists of as many finite numbers"
    if kind == "play" and len(result["best"]) != math.ceil(played(result) / result["batch"]):
        return f"{len(result['best'])} batches of {result['batch']} are not {played(result)} rounds"
    return None


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and math.isfinite(value) for value in values
    )


# -- Markdown


def results_page(results: Sequence[Result]) -> str:
    """Format everything as docs/results.md: the tables of the page, without its figures."""
    lines = ["# Results", "", _OPENING, str(stamp_of(_PLAYED, results)), ""]
    *sections, reading = outline(results)
    for section in (*sections, *empty_cells(standings_of(results)), reading):
        lines += _markdown_section(section, 2)
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_section(section: Section, level: int) -> list[str]:
    lines = [f"{'#' * level} {section.title}", ""]
    for block in section.blocks:
        if isinstance(block, Table):
            lines += [block.to_markdown(), ""]
        elif isinstance(block, Notes):
            lines += [*(f"- {line}" for line in block.lines), ""]
        elif isinstance(block, str):
            lines += [block, ""]
    for part in section.parts:
        lines += _markdown_section(part, level + 1)
    return lines


def readme_table(results: Sequence[Result]) -> str:
    """Format the share of each policy in each dataset, for the README, and how it came about."""
    table = shares_table(standings_of(results)).to_markdown()
    plays = [result for result in results if result["kind"] == "play"]
    return f"{table}\n\n{stamp_of(_PLAYED, plays)}"


# -- the command


def draw_all(
    sections: Sequence[Section], *, with_pictures: bool, progress: Progress = silent
) -> tuple[dict[str, str], dict[str, bytes]]:
    """Draw each figure once: SVG by name, and PNG by name where pictures are wanted."""
    found = list(sketches(sections))
    drawings: dict[str, str] = {}
    pictures: dict[str, bytes] = {}
    for number, sketch in enumerate(found):
        progress(number, len(found), sketch.name)
        figure = sketch.draw()
        drawings[sketch.name] = svg_of(figure)
        if with_pictures:
            pictures[sketch.name] = png_of(figure)
    return drawings, pictures


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Return the bars and how each policy did as JSON values."""
    standings = standings_of(results)
    rows = [_standing_json(standing, longest(standings)) for standing in standings]
    bars = [
        {
            "dataset": bar.setting.dataset,
            "options": dict(bar.setting.options),
            "bar": bar.name,
            "shares": bar.shares,
            "verdict": bar.verdict,
            "seeds": bar.seeds,
            "gap": None if bar.gap is None else asdict(bar.gap),
            "is_scan": bar.is_scan,
        }
        for bar in bars_of(standings)
    ]
    return {"files_read": len(results), "bars": bars, "standings": rows}


def _standing_json(standing: Standing, others: Sequence[Standing]) -> dict[str, Any]:
    ratio = of_exhaust(standing, others)
    return {
        "dataset": standing.setting.dataset,
        "options": dict(standing.setting.options),
        "preset": standing.preset,
        "policy": standing.policy,
        "seeds": len(standing.by_seed),
        "rounds": standing.rounds,
        "share": None if standing.share is None else asdict(standing.share),
        "of_exhaust": None if ratio is None else ratio.mean,
        "regret": asdict(standing.regret),
        "is_scan": standing.is_scan,
        "quality": standing.mean("quality"),
        "lowest_quality": standing.lowest_quality,
        "evaluations": standing.mean("evaluations"),
        "lookups": standing.mean("lookups"),
        "select_seconds": standing.by_device("select_seconds"),
        "update_seconds": standing.by_device("update_seconds"),
    }


def _readme(path: Path, results: Sequence[Result]) -> str:
    try:
        return between_marks(path.read_text(encoding="utf-8"), readme_table(results), marks=MARKS)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"The README {path} cannot be read: {error}.") from error
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from error


def _check_outputs(outputs: Sequence[tuple[str, Path | None]]) -> None:
    """Reject an output that cannot be written to before the work rather than after it."""
    named = [path.resolve() for _, path in outputs if path is not None]
    if len(set(named)) < len(named):
        raise SettingError("Each of -o, --doc and --readme needs a file of its own: got one twice.")
    for option, path in outputs:
        if path is not None and path.is_dir():
            raise SettingError(f"{option} needs the name of a file: got the folder {path}.")
        if path is not None:
            make_folder(path.parent, option=option)


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    help="Also write each figure as SVG and PNG into this folder.",
)
@click.option("--doc", type=click.Path(path_type=Path), help="Also write the tables as Markdown.")
@click.option(
    "--readme",
    type=click.Path(path_type=Path),
    help="Also put the share of each policy between this file's marks.",
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON instead of words.")
def report_command(
    results: tuple[Path, ...],
    out: Path,
    figures: Path | None,
    doc: Path | None,
    readme: Path | None,
    is_json: bool,
) -> None:
    """Write all result files and kept rows below RESULTS as one HTML page that stands alone."""
    import_matplotlib()
    found = load_results(*results)
    _check_outputs((("-o", out), ("--doc", doc), ("--readme", readme)))
    if figures is not None:
        make_folder(figures, option="--figures")
    files: dict[Path, bytes] = {}
    if doc is not None:
        files[doc] = results_page(found).encode()
    if readme is not None:
        files[readme] = _readme(readme, found).encode()
    sections = outline(found)
    with progress_bar("Drawing") as progress:
        drawings, pictures = draw_all(
            sections, with_pictures=figures is not None, progress=progress
        )
    files[out] = report_page(found, drawings, sections=sections).encode()
    if figures is not None:
        files |= {figures / f"{name}.svg": svg.encode() for name, svg in drawings.items()}
        files |= {figures / f"{name}.png": png for name, png in pictures.items()}
    paths = write_all(files, option="-o")
    if is_json:
        output = {**as_json(found), "written": [str(path) for path in paths]}
        click.echo(json.dumps(output, indent=1, allow_nan=False))
        return
    if sections[0].title == "Bars":
        click.echo(str(sections[0].blocks[0]))
    click.echo("\n".join(f"Written: {path}" for path in (doc, readme, out) if path is not None))
    if figures is not None:
        click.echo(f"Written: {len(drawings)} figures, each as SVG and PNG, in {figures}")
