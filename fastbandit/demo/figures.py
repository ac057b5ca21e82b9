"""Curves in one style: a policy has the same colour and dashes wherever it is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbandit.demo.synthetic import Floats
from fastbandit.packages import needed

INK = "#1b1b1f"  # text, axes and the best possible curve; on a page, its own text colour
BEST = "Best possible"
GREY = "#8c8c8c"
FONT = 9.5


@dataclass(frozen=True)
class Style:
    """How a policy is drawn: lines that lie on one another are told apart by their widths."""

    colour: str
    dashes: Any = "solid"
    width: float = 1.6
    marker: str = "o"


Styles = Mapping[str, Style]

UCB = (0, (3, 1.4))
# Okabe and Ito's colours, told apart by colour-blind readers: one for each family.
STYLES = {
    "Random": Style(GREY, (0, (1, 1.5))),
    "LinearTS": Style("#cc79a7", "solid"),
    "Exhaust TS": Style("#56b4e9", "solid", 4.4),
    "FastBandit TS": Style("#e69f00", "solid", 2.4),
    "GANBandit TS": Style("#009e73", "solid", 1.2),
    "GANBandit UCB": Style("#009e73", UCB, 1.2, "D"),
    BEST: Style(INK, (0, (1, 1.6)), 1.2),
}
PLAIN = Style(GREY, (0, (4, 1, 1, 1)), marker="x")


@dataclass(frozen=True, eq=False)
class Line:
    """One line with what to write at its end; `half` is half the width of its band."""

    policy: str
    x: Floats
    y: Floats
    label: str
    half: Floats | None = None


def draw_curves(lines: Sequence[Line], *, ylabel: str, styles: Styles = STYLES) -> Any:
    """Draw lines over rounds, each named at its end, with its band."""
    figure, axes = empty_axes(5.4, 3.9)
    for line in lines:
        style = styles.get(line.policy, PLAIN)
        axes.plot(line.x, line.y, color=style.colour, linestyle=style.dashes, lw=style.width)
        if line.half is not None:
            low, high = line.y - line.half, line.y + line.half
            axes.fill_between(line.x, low, high, color=style.colour, alpha=0.16, linewidth=0)
    axes.set_xlim(0, max(float(line.x[-1]) for line in lines))
    tops = (line.y if line.half is None else line.y + line.half for line in lines)
    highest = max(float(np.max(top)) for top in tops)
    lowest = min(0.0, *(float(line.y.min()) for line in lines))
    axes.set_ylim(lowest, 1.03 * highest if highest > 0 else 1.0)
    axes.set_xlabel("Rounds", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.locator_params(nbins=6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.10g}")
    label_ends(axes, lines, styles=styles)
    return figure


def svg_of(figure: Any) -> str:
    """Return a figure as SVG, the same text for the same figure.

    Text stays text: the file is small, and can be searched.
    """
    settings = {"svg.fonttype": "none", "svg.hashsalt": "fastbandit"}
    with import_matplotlib().rc_context(settings):
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()


def png_of(figure: Any) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=200, facecolor="white")
    return picture.getvalue()


def import_matplotlib() -> Any:
    """Return matplotlib; raise how to install it."""
    needed("matplotlib.figure", what="The figure")
    return needed("matplotlib", what="The figure")


def empty_axes(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure and its axes, in our style."""
    figure = import_matplotlib().figure.Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=FONT)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def label_ends(axes: Any, lines: Sequence[Line], *, styles: Styles = STYLES) -> None:
    """Name each line beside its end, apart from its neighbours, with a leader to where it ends."""
    to_axes = axes.transAxes.inverted()
    ends = {
        line.policy: to_axes.transform(axes.transData.transform((line.x[-1], line.y[-1])))
        for line in lines
    }
    falling = sorted(lines, key=lambda line: ends[line.policy][1], reverse=True)
    heights = spread([float(ends[line.policy][1]) for line in falling], gap=0.058)
    for line, height in zip(falling, heights, strict=True):
        style = styles.get(line.policy, PLAIN)
        end, within = ends[line.policy], {"transform": axes.transAxes, "clip_on": False}
        axes.plot([end[0], 1.035], [end[1], height], color=style.colour, lw=0.7, **within)
        width = min(max(style.width, 1.8), 3.4)
        dashes = {"color": style.colour, "linestyle": style.dashes, "lw": width}
        axes.plot([1.035, 1.115], [height, height], **dashes, **within)
        label = axes.text(1.13, height, line.label, color=INK, fontsize=FONT)
        label.set(transform=axes.transAxes, verticalalignment="center")


def spread(heights: list[float], *, gap: float) -> list[float]:
    """Move falling heights at least `gap` apart, near where they were, from 1 to 0 or below."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _highest(groups[-2], -gap) - gap < _highest(groups[-1], gap):
            last = groups.pop()
            groups[-1] += last
    free = [_highest(group, gap) - n * gap for group in groups for n in range(len(group))]
    tops = [1.0 - n * gap for n in range(len(free))]
    lows = [n * gap for n in reversed(range(len(free)))]
    return [
        max(min(height, top), min(bottom, top))
        for height, top, bottom in zip(free, tops, lows, strict=True)
    ]


def _highest(group: list[float], gap: float) -> float:
    """Return the highest of a group's labels, `gap` apart; with -gap, the lowest."""
    return sum(group) / len(group) + gap * (len(group) - 1) / 2
