"""A demo's result as a table, a figure, and one HTML page that loads nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fastbandit.demo.figures import BEST, INK, Line, draw_curves, png_of, svg_of
from fastbandit.demo.figures import import_matplotlib as import_matplotlib
from fastbandit.demo.synthetic import Floats
from fastbandit.errors import SettingError
from fastbandit.files.atomic import raising, replacing

if TYPE_CHECKING:
    from fastbandit.demo.comparison import DemoResult

HEADINGS = (
    "Policy",
    "Share of best reward",
    "q",
    "ms per decision",
    "Speed-up",
    "ms alone",
    "Speed-up alone",
)
_STYLE = Path(__file__).with_name("page.css")
PNG, SVG, PAGE = "cumulative-reward.png", "cumulative-reward.svg", "index.html"


def write_report(result: DemoResult, folder: Path, *, command: str) -> list[Path]:
    """Write the figure (PNG and SVG) and the page into the folder, all whole or none."""
    png, svg = draw_figure(result)
    page = render_page(result, svg=svg, command=command)
    files = {PNG: png, SVG: svg.encode(), PAGE: page.encode()}
    return write_all({folder / name: content for name, content in files.items()})


def make_folder(folder: Path, *, option: str = "--out") -> None:
    """Make sure that files can be written there, before the work rather than after it."""
    with _reporting(folder, option):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_all(files: Mapping[Path, bytes], *, option: str = "--out") -> list[Path]:
    """Write all files beside their paths, then rename them: none before all are whole."""
    with _reporting(next(iter(files)).parent, option), ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(replacing(path, sync=False)).write_bytes(content)
    return list(files)


def table_rows(result: DemoResult) -> list[tuple[str, ...]]:
    """Return the table as text, one row for each policy, under `HEADINGS`."""
    return [
        (
            one.policy,
            f"{one.share:.1%}",
            "–" if one.quality is None else f"{one.quality:.3f}",
            _milliseconds(one.batch_milliseconds),
            _times(one.batch_speedup),
            _milliseconds(one.single_milliseconds),
            _times(one.single_speedup),
        )
        for one in result.outcomes
    ]


def summary(result: DemoResult) -> tuple[str, str]:
    """Return two sentences on what is seen."""
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
    """Return what the columns mean."""
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
    points = np.unique(np.linspace(0, result.rounds, 241).astype(int))
    best = float(result.best[-1])

    def line(name: str, curve: Floats, label: str) -> Line:
        heights = np.concatenate([[0.0], curve])[points]
        return Line(name, points.astype(float), heights, label)

    lines = [line(BEST, result.best, BEST)]
    for outcome in result.outcomes:
        label = f"{outcome.policy}  {outcome.earned[-1] / best:.1%}"
        lines.append(line(outcome.policy, outcome.earned, label))
    figure = draw_curves(lines, ylabel="Cumulative expected reward")
    return png_of(figure), svg_of(figure)


def render_page(result: DemoResult, *, svg: str, command: str) -> str:
    """Return the whole page as HTML, with the figure and the styles inside."""
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in footnotes(result))
    first, second = summary(result)
    settings = (
        f"Synthetic environment {result.function}, {result.dim} features, noise N(0, 1), seed "
        f"{result.seed}; the whole run took {result.seconds:.0f} s."
    )
    body = f"""<main>
<h1>{result.arms:,} arms, without scoring them all</h1>
<p>{escape(first)}</p>
<p>{escape(second)}</p>
<figure>
{inline_svg(svg, label="Cumulative reward of each policy over the rounds")}
<figcaption>Cumulative expected reward; the numbers are what each earned by the end, as a share of
the best possible.</figcaption>
</figure>
{html_table(HEADINGS, table_rows(result))}
<ul>
{notes}
</ul>
<p>{escape(settings)} Made by:</p>
<pre><code>{escape(command)}</code></pre>
</main>"""
    return html_page(body, title="fastbandit demo")


def html_page(body: str, *, title: str, style: str = "") -> str:
    """Return a whole page that loads nothing: light or dark as the reader's screen is."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_STYLE.read_text(encoding="utf-8")}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: int = 1,
    cell: Callable[[str], str] = escape,
) -> str:
    """Return a table that scrolls sideways on its own; `cell` makes HTML of a cell's text."""
    heads = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    lines = []
    for row in rows:
        others = [f'<td class="name">{cell(text)}</td>' for text in row[1:names]]
        others += [f"<td>{cell(text)}</td>" for text in row[names:]]
        lines.append(f'<tr><th scope="row">{cell(row[0])}</th>{"".join(others)}</tr>')
    body = "\n".join(lines)
    return f"""<div class="wide">
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""


def inline_svg(svg: str, *, label: str, prefix: str = "") -> str:
    """Make a drawing part of a page: only its root element, in the page's font and text colour.

    Names inside it begin with `prefix`, so that several drawings share a page.
    """
    root = svg[svg.index("<svg") :]
    root = re.sub(r"<metadata>.*?</metadata>", "", root, flags=re.DOTALL)
    root = re.sub(r' xmlns(:\w+)?="[^"]*"', "", root).replace("xlink:href", "href")
    root = re.sub(r'^<svg ([^>]*?)width="[^"]*" ?', r"<svg \1", root)
    root = re.sub(r'^<svg ([^>]*?)height="[^"]*" ?', r"<svg \1", root)
    root = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", root)
    root = re.sub(r'<g id="[\w.]+">', "<g>", root)
    root = re.sub(r"<!--.*?-->\n?", "", root, flags=re.DOTALL)
    for mark in (' id="', 'href="#', "url(#"):
        root = root.replace(mark, f"{mark}{prefix}")
    named = root.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    return named.replace(INK, "currentColor")


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


def _reporting(folder: Path, option: str) -> AbstractContextManager[None]:
    needs = f"The report needs a folder that can be written to: got {str(folder)!r}"
    return raising(SettingError, needs, fix=f"Choose another with {option}.")
