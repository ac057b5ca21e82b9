"""Peers at equal latency in tables and a picture: reward over the time of one decision."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastbandit.demo.figures import FONT, GREY, INK, Style
from lab.bakeoff.page import worded
from lab.bakeoff.sets import Set
from lab.bakeoff.systems import System
from lab.equal_latency.rows import Row
from lab.equal_latency.sets import FUNCTIONS, function_of
from lab.experiments.figures import import_matplotlib
from lab.experiments.tables import markdown
from lab.printing import format_seconds

MARKS = ("<!-- equal latency -->", "<!-- end of equal latency -->")
NOT_RUN = "not run"
_HEAD = ("system", "seeds", "share", "last quarter", "µs a decision", "bytes an arm", "s an update")

_TOWERS, _WABBIT, _PLAIN = "#0072b2", "#d55e00", "#cc79a7"
STYLES: Mapping[str, Style] = {
    "fastbandit walk": Style("#009e73", "solid", 2.6, "o"),
    "fastbandit scan": Style("#000000", "solid", 1.2, "s"),
    "towers HNSW greedy": Style(_TOWERS, "solid", 1.2, "o"),
    "towers HNSW epsilon": Style(_TOWERS, (0, (3, 1.4)), 1.2, "D"),
    "towers HNSW draws": Style(_TOWERS, (0, (1, 1.2)), 1.8, "v"),
    "towers IVF greedy": Style("#56b4e9", "solid", 1.2, "o"),
    "towers IVF epsilon": Style("#56b4e9", (0, (3, 1.4)), 1.2, "D"),
    "towers IVF draws": Style("#56b4e9", (0, (1, 1.2)), 1.8, "v"),
    "VW SquareCB": Style(_WABBIT, "solid", 1.2, "o"),
    "VW SquareCB crosses": Style(_WABBIT, (0, (3, 1.4)), 1.2, "D"),
    "VW epsilon crosses": Style(_WABBIT, (0, (6, 1.5, 1, 1.5)), 1.2, "s"),
    "VW large crosses": Style(_WABBIT, (0, (1, 1.2)), 1.8, "v"),
    "LinUCB": Style(_PLAIN, "solid", 1.2, "o"),
    "disjoint LinUCB": Style(_PLAIN, (0, (3, 1.4)), 1.2, "D"),
    "contextualbandits": Style("#e69f00", "solid", 1.2, "o"),
}
"""Okabe and Ito's colours, one for each family."""


def text_of(rows: Sequence[Row], sets: Sequence[Set], systems: Sequence[System]) -> str:
    """Format a table for each set, systems in the order of families, and name what was not run."""
    parts = []
    for entry in sets:
        here = {row.system: row for row in rows if row.set == entry.name}
        title = f"**{entry.title}, {entry.rounds:,} rounds, batches of {entry.batch}**"
        if not here:
            parts.append(f"{title}: {NOT_RUN}.")
            continue
        lines = [_cells(one.name, here[one.name]) for one in systems if one.name in here]
        parts.append(f"{title}\n\n{markdown(_HEAD, lines, words=1)}")
        if missing := [one.name for one in systems if one.name not in here]:
            parts.append(f"{NOT_RUN.capitalize()}: {', '.join(missing)}.")
        parts += [f"{row.system}: {row.error}" for row in here.values() if row.error is not None]
    parts.append(_commits(rows))
    return "\n\n".join(parts)


def _cells(system: str, row: Row) -> list[str]:
    numbers = (row.last_quarter, row.p50_us, row.bytes_per_arm, row.update_cpu_seconds)
    share = worded(row.share) if row.seeds else "below"
    return [system, str(len(row.seeds)), share, *map(worded, numbers)]


def _commits(rows: Sequence[Row]) -> str:
    whole = {commit for row in rows for commit in row.commits}
    known = sorted({commit[:10] + "-dirty" * commit.endswith("-dirty") for commit in whole})
    seeds = sorted({seed for row in rows for seed in row.seeds})
    return f"Seeds: {', '.join(map(str, seeds))}. Commits: {', '.join(known)}."


# -- the picture


def figure_of(rows: Sequence[Row], systems: Sequence[System]) -> Any:
    """Draw the share over the time of a decision: a panel a function, a line a system."""
    functions = [name for name in FUNCTIONS if any(_is_of(row, name) for row in rows)]
    whole = import_matplotlib().figure.Figure(
        figsize=(3.1 * max(1, len(functions)) + 0.4, 4.6), layout="constrained"
    )
    panels = whole.subplots(1, max(1, len(functions)), sharex=True, sharey=True, squeeze=False)[0]
    for axes, function in zip(panels, functions, strict=False):
        _draw_panel(axes, [row for row in rows if _is_of(row, function)], systems)
        axes.set_title(function, color=INK, fontsize=FONT + 1)
    panels[0].set_ylabel("Share of the best possible reward", color=INK)
    marks: dict[str, Any] = {}
    for axes in panels:
        marks |= {line.get_label(): line for line in axes.get_lines()}
    names = [system.name for system in systems if system.name in marks]
    if names:
        whole.legend(
            [marks[name] for name in names],
            names,
            loc="outside lower center",
            ncols=max(1, len(functions)) + 1,
            frameon=False,
            fontsize=FONT - 1,
        )
    return whole


def _is_of(row: Row, function: str) -> bool:
    found = function_of(row.set)
    has_numbers = row.share is not None and row.p50_us is not None
    return found is not None and found[0] == function and has_numbers


def _draw_panel(axes: Any, rows: Sequence[Row], systems: Sequence[System]) -> None:
    axes.set_xscale("log")
    for system in systems:
        mine = sorted((row for row in rows if row.system == system.name), key=lambda r: r.arms or 0)
        if not mine:
            continue
        style = STYLES.get(system.name, Style(GREY))
        known = [(row.p50_us, row.share) for row in mine]
        x = [1e-6 * time.value for time, _ in known if time is not None]
        y = [share.value for _, share in known if share is not None]
        mark = {"color": style.colour, "linestyle": style.dashes, "lw": style.width}
        axes.plot(x, y, marker=style.marker, markersize=4.5, label=system.name, **mark)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("Time of one decision", color=INK)
    axes.xaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=FONT - 1)
    axes.grid(color=GREY, alpha=0.25, linewidth=0.6)


def shown_in(doc: Path, picture: Path) -> str:
    """Return the line of a page that shows a picture."""
    path = Path(os.path.relpath(picture, doc.parent)).as_posix()
    return (
        f"![The share of the best reward over the time of one decision, a line a system.]({path})"
    )
