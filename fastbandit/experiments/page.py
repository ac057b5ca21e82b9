"""A demo's outcome as a table, a figure, and one HTML page that needs nothing from outside."""

from __future__ import annotations

import io
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbandit.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from fastbandit.experiments.demo import DemoResult, Outcome

HEADINGS = (
    "Policy",
    "Share of best reward",
    "q",
    "ms per decision",
    "Speed-up",
    "ms alone",
    "Speed-up alone",
)
PNG, SVG, PAGE = "cumulative-reward.png", "cumulative-reward.svg", "index.html"

_INK = "#1b1b1f"  # text, axes and the best possible curve; the page's own text colour there
_BEST = "Best possible"
# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell apart lines that
# lie on each other.
_STYLES = {
    _BEST: (_INK, (0, (1, 1.6))),
    "Exhaust TS": ("#56b4e9", "solid"),
    "FastBandit TS": ("#e69f00", (0, (7, 5))),
    "GANBandit TS": ("#009e73", (6, (4, 8))),
    "GANBandit UCB": ("#cc79a7", (0, (3, 2))),
    "LinearTS": ("#0072b2", "solid"),
    "Random": ("#8c8c8c", "solid"),
}


def write_report(result: DemoResult, folder: Path, *, command: str) -> list[Path]:
    """Write the figure (PNG and SVG) and the page into the folder, each whole or not at all."""
    png, svg = draw_figure(result)
    page = render_page(result, svg=svg, command=command)
    files = {PNG: png, SVG: svg.encode(), PAGE: page.encode()}
    return [write_whole(folder / name, content) for name, content in files.items()]


def make_folder(folder: Path) -> None:
    """Make sure that files can be written there, before the work rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingError(_unwritable(folder, error)) from error


def write_whole(path: Path, content: bytes) -> Path:
    """Write beside, then rename: whatever goes wrong, no half of a file is left."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        raise SettingError(_unwritable(path, error)) from error
    finally:
        beside.unlink(missing_ok=True)
    return path


def table_rows(result: DemoResult) -> list[tuple[str, ...]]:
    """Give the table as text, one row for each policy, under `HEADINGS`."""
    return [_table_row(outcome) for outcome in result.outcomes]


def summary(result: DemoResult) -> tuple[str, str]:
    """Say in two sentences what is seen."""
    by_name = {outcome.policy: outcome for outcome in result.outcomes}
    exhaust, fast = by_name["Exhaust TS"], by_name["GANBandit TS"]
    batch, single = fast.batch_speedup, fast.single_speedup
    return (
        f"Each policy chose one of {result.arms:,} arms in each of {result.rounds:,} rounds and "
        f"learned after every {result.batch:,}; scoring all arms (Exhaust TS) earned "
        f"{exhaust.share:.1%} of the best possible reward, GANBandit TS {fast.share:.1%}.",
        f"In batches, a decision of GANBandit TS took {_milliseconds(fast.batch_milliseconds)} "
        f"ms, {_compare(batch)} Exhaust TS; a request on its own took "
        f"{_milliseconds(fast.single_milliseconds)} ms, {_compare(single)} Exhaust TS.",
    )


def footnotes(result: DemoResult) -> tuple[str, ...]:
    """Explain the columns."""
    return (
        "Share of best reward: expected reward earned ÷ that of the best arm each time; the "
        "first batch, chosen at random, counts too.",
        "q: 1 where the search finds the arm that an exhaustive one would take under the same "
        "draw, 0 where it does no better than a random arm.",
        f"Times are medians for one decision, in batches of {result.batch:,}; alone: in requests "
        f"with a single context. Speed-ups are over Exhaust TS in the same run, those of UCB too.",
    )


def draw_figure(result: DemoResult) -> tuple[bytes, str]:
    """Draw the cumulative reward of all policies: PNG bytes and SVG text."""
    matplotlib = import_matplotlib()
    # Text as shapes looks the same everywhere; a fixed salt makes the file reproducible.
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "fastbandit"}):
        figure = _figure(result)
        png, svg = io.BytesIO(), io.StringIO()
        figure.savefig(png, format="png", dpi=200, facecolor="white")
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    return png.getvalue(), svg.getvalue()


def import_matplotlib() -> Any:
    """Give matplotlib, or say how to install it."""
    try:
        import matplotlib
        import matplotlib.figure
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "The figure needs matplotlib, which is not installed. Run: "
            "pip install 'fastbandit[report]'"
        ) from error
    return matplotlib


def render_page(result: DemoResult, *, svg: str, command: str) -> str:
    """Give the whole page as HTML, with the figure and the styles inside."""
    heads = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in HEADINGS)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table_rows(result)
    )
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in footnotes(result))
    first, second = summary(result)
    world = (
        f"Synthetic world {result.function}, {result.dim} features, noise N(0, 1), seed "
        f"{result.seed}; the whole run took {result.seconds:.0f} s."
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fastbandit demo</title>
<style>{_CSS}</style>
</head>
<body>
<main>
<h1>{result.arms:,} arms, without scoring them all</h1>
<p>{escape(first)}</p>
<p>{escape(second)}</p>
<figure>
{_inline(svg, label="Cumulative reward of each policy over the rounds")}
<figcaption>Cumulative expected reward; the numbers are what each earned by the end, as a share of
the best possible.</figcaption>
</figure>
<div class="wide">
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<ul>
{notes}
</ul>
<p>{escape(world)} Made by:</p>
<pre><code>{escape(command)}</code></pre>
</main>
</body>
</html>
"""


def _figure(result: DemoResult) -> Any:
    figure = import_matplotlib().figure.Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    curves = {_BEST: result.best} | {o.policy: o.earned for o in result.outcomes}
    points = np.unique(np.linspace(0, result.rounds, 241).astype(int))
    for name, curve in curves.items():
        colour, dashes = _STYLES[name]
        heights = np.concatenate([[0.0], curve])[points]
        width = 4.0 if name == "Exhaust TS" else 1.8
        axes.plot(points, heights, color=colour, linestyle=dashes, linewidth=width)
    axes.set_xlim(0, result.rounds)
    axes.set_ylim(bottom=min(0.0, *(float(curve.min()) for curve in curves.values())))
    axes.set_xlabel("Rounds", color=_INK)
    axes.set_ylabel("Cumulative expected reward", color=_INK)
    axes.locator_params(nbins=6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.tick_params(colors=_INK)
    axes.grid(axis="y", color="#8c8c8c", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    _label_ends(axes, {name: float(curve[-1]) for name, curve in curves.items()}, result.rounds)
    return figure


def _label_ends(axes: Any, ends: dict[str, float], rounds: int) -> None:
    """Name each curve beside its end, apart from its neighbours, with a line to where it ends."""
    low, high = axes.get_ylim()
    names = sorted(ends, key=lambda name: ends[name], reverse=True)
    heights = _spread([ends[name] for name in names], gap=0.072 * (high - low))
    for name, height in zip(names, heights, strict=True):
        colour = _STYLES[name][0]
        share = "" if name == _BEST else f"  {ends[name] / ends[_BEST]:.1%}"
        label = axes.text(1.09 * rounds, height, f"{name}{share}", color=_INK, fontsize=9.5)
        label.set_verticalalignment("center")
        leader = np.array([1.005, 1.035, 1.08]) * rounds
        path = [ends[name], height, height]
        axes.plot(leader[:2], path[:2], color=colour, linewidth=0.8, clip_on=False)
        swatch = ":" if name == _BEST else "-"
        axes.plot(leader[1:], path[1:], swatch, color=colour, linewidth=3.0, clip_on=False)
    axes.set_xlim(0, rounds)
    axes.set_ylim(low, high)


def _spread(heights: list[float], *, gap: float) -> list[float]:
    """Move falling heights apart to at least `gap`, each group about where it was."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-2], gap) - gap < _highest(groups[-1], gap):
            last = groups.pop()
            groups[-1] += last
    return [_highest(group, gap) - place * gap for group in groups for place in range(len(group))]


def _highest(group: list[float], gap: float) -> float:
    return sum(group) / len(group) + gap * (len(group) - 1) / 2


def _lowest(group: list[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _inline(svg: str, *, label: str) -> str:
    """Make a drawing part of a page: only its root element, in the page's text colour."""
    root = svg[svg.index("<svg") :]
    root = re.sub(r"<metadata>.*?</metadata>", "", root, flags=re.DOTALL)
    root = re.sub(r' xmlns(:\w+)?="[^"]*"', "", root).replace("xlink:href", "href")
    root = re.sub(r'^<svg ([^>]*?)width="[^"]*" ?', r"<svg \1", root)
    root = re.sub(r'^<svg ([^>]*?)height="[^"]*" ?', r"<svg \1", root)
    named = root.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    return named.replace(_INK, "currentColor")


def _table_row(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.policy,
        f"{outcome.share:.1%}",
        "–" if outcome.quality is None else f"{outcome.quality:.3f}",
        _milliseconds(outcome.batch_milliseconds),
        _times(outcome.batch_speedup),
        _milliseconds(outcome.single_milliseconds),
        _times(outcome.single_speedup),
    )


def _milliseconds(number: float) -> str:
    return f"{number:.3f}" if number < 1 else f"{number:.2f}"


def _times(ratio: float) -> str:
    if ratio >= 10:
        return f"{ratio:,.0f}×"
    return f"{ratio:.1f}×" if ratio >= 1 else f"{ratio:.2f}×"


def _compare(speedup: float) -> str:
    ratio = max(speedup, 1 / speedup)
    if round(ratio, 1) == 1.0:
        return "as fast as"
    return f"{_times(ratio)} as {'fast' if speedup > 1 else 'long'} as"


def _unwritable(path: Path, error: OSError) -> str:
    return (
        f"The report needs a folder that can be written to: got {str(path)!r} "
        f"({error.strerror or error}). Choose another with --out."
    )


_CSS = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fdfdfc; --line: #d9d9de;
  --soft: #f1f1f4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf1; --paper: #17171b; --line: #3a3a42; --soft: #222228; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 50rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: clamp(1.4rem, 5vw, 2rem); line-height: 1.2; margin: 0 0 1rem; }
figure { margin: 1.5rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figcaption, ul { font-size: .875rem; opacity: .85; }
ul { padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; white-space: nowrap; }
thead th { vertical-align: bottom; line-height: 1.25; }
tbody th { font-weight: 600; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; }
"""
