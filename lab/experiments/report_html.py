"""The report as one HTML page that needs nothing from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fastbandit.demo.page import html_page, html_table, inline_svg
from lab.experiments.comparison import Result
from lab.experiments.figures import STYLES, style_of
from lab.experiments.report_tables import Table
from lab.experiments.sections import Block, Notes, Section, Sketch
from lab.stamps import short


def report_page(
    results: Sequence[Result], drawings: dict[str, str], *, sections: Sequence[Section]
) -> str:
    """Return the whole page; `drawings` are the figures as SVG by name."""
    anchors = {id(section): f"part-{number}" for number, section in enumerate(_all(sections))}
    listed = "\n".join(_contents(section, anchors) for section in sections)
    body = "\n".join(_html_section(section, anchors, drawings, 2) for section in sections)
    head = "".join(f"<p>{escape(line)}</p>" for line in _headline(results))
    return html_page(
        f"""<div class="frame">
<nav aria-label="Contents"><details open><summary>Contents</summary><ul>
{listed}
</ul></details></nav>
<main>
<h1>What was measured</h1>
{head}
{body}
</main>
</div>""",
        title="fastbandit results",
        style=_CSS,
    )


def _headline(results: Sequence[Result]) -> list[str]:
    plays = [r for r in results if r["kind"] == "play"]
    datasets = len({r["dataset"] for r in results if "dataset" in r})
    seeds = len({r["seed"] for r in plays})
    lines = [f"{len(results):,} result files; {datasets} datasets; up to {seeds} seeds."]
    versions = sorted({str(r["version"]) for r in results if r.get("version")})
    commits = sorted({short(str(r["commit"])) for r in results if r.get("commit")})
    if versions:
        lines.append(
            f"fastbandit {', '.join(versions)}; commits: {', '.join(commits) or 'unknown'}."
        )
    return lines


def _all(sections: Iterable[Section]) -> Iterable[Section]:
    for section in sections:
        yield section
        yield from _all(section.parts)


def _contents(section: Section, anchors: dict[int, str]) -> str:
    shown = [part for part in section.parts if not part.is_folded]
    inner = "".join(_contents(part, anchors) for part in shown)
    below = f"<ul>{inner}</ul>" if inner else ""
    return f'<li><a href="#{anchors[id(section)]}">{escape(section.title)}</a>{below}</li>'


def _html_section(
    section: Section, anchors: dict[int, str], drawings: dict[str, str], level: int
) -> str:
    anchor, title = anchors[id(section)], escape(section.title)
    blocks = "\n".join(_html_block(block, drawings) for block in _side_by_side(section.blocks))
    parts = "\n".join(_html_section(p, anchors, drawings, level + 1) for p in section.parts)
    if section.is_folded:
        opened = f'<details id="{anchor}" class="preset"><summary>{title}</summary>'
        return f"{opened}\n{blocks}\n{parts}\n</details>"
    heading = f"<h{level}>{title}</h{level}>"
    box = ' class="bars"' if section.title == "Bars" else ""
    return f'<section id="{anchor}"{box}>\n{heading}\n{blocks}\n{parts}\n</section>'


def _side_by_side(blocks: Sequence[Block]) -> list[Block | list[Sketch]]:
    """Put figures that follow one another into one row."""
    rows: list[Block | list[Sketch]] = []
    for block in blocks:
        if not isinstance(block, Sketch):
            rows.append(block)
        elif rows and isinstance(rows[-1], list):
            rows[-1].append(block)
        else:
            rows.append([block])
    return rows


def _html_block(block: Block | list[Sketch], drawings: dict[str, str]) -> str:
    if isinstance(block, Table):
        return html_table(block.headings, block.rows, names=block.names, cell=_cell)
    if isinstance(block, Notes):
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in block.lines) + "</ul>"
    if isinstance(block, list):
        shown = "\n".join(_html_figure(sketch, drawings[sketch.name]) for sketch in block)
        return f'<div class="figures">{shown}</div>'
    return f"<p>{escape(str(block))}</p>"


def _html_figure(sketch: Sketch, svg: str) -> str:
    drawing = inline_svg(svg, label=sketch.alt, prefix=f"{sketch.name}-")
    return f"<figure>\n{drawing}\n<figcaption>{escape(sketch.caption)}</figcaption>\n</figure>"


def _cell(text: str) -> str:
    """Return a policy its colour, and a verdict its sign."""
    if text in STYLES:
        colour = style_of(text).colour
        return f'<i class="swatch" style="background:{colour}"></i>{escape(text)}'
    for verdict, sign in (("met", "✓"), ("missed", "✗"), ("undecided", "?")):
        if text.startswith(f"{verdict}: "):
            return f'<span class="{verdict}">{sign} {escape(text)}</span>'
    return escape(text)


_CSS = """
.frame { display: grid; grid-template-columns: minmax(0, 1fr); max-width: 88rem; margin: 0 auto; }
.frame main { max-width: none; width: 100%; min-width: 0; }
nav { padding: 1rem 1rem 0; font-size: .875rem; }
nav ul { list-style: none; margin: .2rem 0; padding-left: .8rem; opacity: 1; }
nav > details > ul { padding-left: 0; }
nav li { margin: .15rem 0; }
nav li li { display: inline-block; margin-right: .8rem; }
nav a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em; }
nav a:hover { text-decoration-color: currentColor; }
summary { cursor: pointer; font-weight: 600; }
main p { max-width: 50rem; }
main ul { max-width: 50rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .5rem; padding-top: .8rem;
  border-top: 2px solid var(--line); line-height: 1.25; }
h3 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
section, details { scroll-margin-top: .5rem; }
.figures { display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
.figures figure { margin: .8rem 0; max-width: 40rem; }
.wide { margin: .8rem 0; }
.wide th:first-child { position: sticky; left: 0; background: var(--paper); }
tbody tr:hover > * { background: var(--soft); }
table { width: auto; min-width: min(100%, 40rem); }
td { white-space: nowrap; }
.swatch { display: inline-block; width: .7em; height: .7em; margin-right: .45em;
  border-radius: .15em; }
.bars { border: 2px solid var(--line); border-radius: .6rem; padding: .2rem 1rem .6rem;
  margin-top: 1.5rem; }
.bars h2 { border: 0; margin: .4rem 0; padding: 0; }
.met { color: var(--good); }
.missed { color: var(--bad); font-weight: 700; }
:root { --good: #00664b; --bad: #a33a00; }
@media (prefers-color-scheme: dark) { :root { --good: #4fd1a8; --bad: #ff9b5e; } }
details.preset { margin: .8rem 0; border-left: 3px solid var(--line); padding-left: .9rem; }
@media (min-width: 72rem) {
  .frame { grid-template-columns: 14rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto;
    padding-top: 1.6rem; }
  nav li li { display: list-item; margin-right: 0; } }
@media print { nav { display: none; } }
"""
