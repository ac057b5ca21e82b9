"""Figures in one style: a policy has the same colour and dashes wherever it is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbandit.errors import MissingExtraError
from fastbandit.experiments.environment import Floats

INK = "#1b1b1f"  # text, axes and the best possible curve; on a page, its own text colour
BEST = "Best possible"
_GREY = "#8c8c8c"
_FONT = 9.5


@dataclass(frozen=True)
class Style:
    """How a policy is drawn: lines that lie on one another are told apart by their widths."""

    colour: str
    dashes: Any = "solid"
    width: float = 1.6
    marker: str = "o"


_UCB = (0, (3, 1.4))
# Okabe and Ito's colours, told apart by colour-blind readers: one for each family.
STYLES = {
    "Random": Style(_GREY, (0, (1, 1.5))),
    "Overall best arm": Style(_GREY, "solid"),
    "Learned best arm": Style(_GREY, (0, (5, 2)), marker="s"),
    "LinearTS": Style("#cc79a7", "solid"),
    "LinUCB": Style("#cc79a7", _UCB, marker="D"),
    "LinearTS fading": Style("#cc79a7", (0, (3, 1)), 2.4, "^"),
    "LinUCB fading": Style("#cc79a7", (0, (3, 1, 1, 1)), 2.4, "^"),
    "GLM-UCB": Style("#cc79a7", (0, (2, 2)), 1.2, "<"),
    "KernelUCB": Style("#cc79a7", (0, (4, 2, 1, 2)), 1.2, ">"),
    "GLOC": Style("#cc79a7", (0, (6, 1.5, 1, 1.5)), 1.2, "s"),
    "GLOC-TS": Style("#cc79a7", (0, (1, 1)), 1.2, "v"),
    "QGLOC": Style("#cc79a7", (0, (8, 3)), 1.2, "P"),
    "NeuralLinear": Style("#0072b2", (0, (6, 1.5, 1, 1.5)), marker="s"),
    "Bootstrapped heads": Style("#0072b2", (0, (2, 1)), marker="^"),
    "Variational layer": Style("#0072b2", "solid", marker="v"),
    "Exhaust TS": Style("#56b4e9", "solid", 4.4),
    "Exhaust UCB": Style("#56b4e9", (0, (2.2, 0.9)), 3.4, "D"),
    "FastBandit TS": Style("#e69f00", "solid", 2.4),
    "FastBandit UCB": Style("#e69f00", _UCB, 2.2, "D"),
    "GANBandit TS": Style("#009e73", "solid", 1.2),
    "GANBandit UCB": Style("#009e73", _UCB, 1.2, "D"),
    "GANBandit window": Style("#009e73", (0, (6, 1.5, 1, 1.5)), 2.4, "s"),
    "GANBandit fading": Style("#009e73", (0, (3, 1)), 2.4, "^"),
    "GP-UCB": Style("#d55e00", _UCB, marker="D"),
    "GP-TS": Style("#d55e00", "solid"),
    "HOO": Style("#d55e00", (0, (1, 1.2)), marker="s"),
    BEST: Style(INK, (0, (1, 1.6)), 1.2),
}


def style_of(policy: str) -> Style:
    """Give the style of a policy, a plain one where it is unknown."""
    return STYLES.get(policy, Style(_GREY, (0, (4, 1, 1, 1)), marker="x"))


@dataclass(frozen=True, eq=False)
class Line:
    """One line with what to write at its end; `half` is half the width of its band."""

    policy: str
    x: Floats
    y: Floats
    label: str
    half: Floats | None = None


@dataclass(frozen=True)
class Dot:
    """A number of one policy in one row, and the interval about it."""

    row: str
    policy: str
    value: float
    low: float | None = None
    high: float | None = None
    is_hollow: bool = False


def draw_curves(lines: Sequence[Line], *, ylabel: str) -> Any:
    """Draw lines over rounds, each named at its end, with its band."""
    figure, axes = _empty(5.4, 3.9)
    for line in lines:
        style = style_of(line.policy)
        axes.plot(line.x, line.y, color=style.colour, linestyle=style.dashes, lw=style.width)
        if line.half is not None:
            low, high = line.y - line.half, line.y + line.half
            axes.fill_between(line.x, low, high, color=style.colour, alpha=0.16, linewidth=0)
    axes.set_xlim(0, max(float(line.x[-1]) for line in lines))
    axes.set_ylim(min(0.0, *(float(line.y.min()) for line in lines)), _top(lines))
    axes.set_xlabel("Rounds", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.locator_params(nbins=6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.10g}")
    _label_ends(axes, lines)
    return figure


def draw_scaling(lines: Sequence[Line], *, ylabel: str) -> Any:
    """Draw seconds over the number of arms, both logarithmic, each line named at its end."""
    figure, axes = _empty(5.4, 3.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for line in lines:
        style = style_of(line.policy)
        width, mark = min(style.width, 2.4), style.marker
        axes.plot(line.x, line.y, color=style.colour, linestyle=style.dashes, lw=width)
        axes.plot(line.x, line.y, mark, color=style.colour, markersize=4.5)
    axes.set_xlabel("Arms", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(lambda seconds, _: seconds_in_words(seconds))
    axes.minorticks_off()
    axes.autoscale_view()
    _label_ends(axes, lines)
    return figure


def draw_dots(
    dots: Sequence[Dot], *, xlabel: str, is_log: bool = False, near: float | None = None
) -> Any:
    """Draw a row of dots for each name, with intervals where they are known."""
    rows = list(dict.fromkeys(dot.row for dot in dots))
    policies = list(dict.fromkeys(dot.policy for dot in dots))
    is_named = rows == policies  # each row holds one policy, and bears its name
    lanes = 1 if is_named else len(policies)
    figure, axes = _empty(5.4, 0.8 + (0.1 + 0.12 * max(lanes, 1.6)) * len(rows))
    for dot in dots:
        lane = 0.0 if is_named else policies.index(dot.policy) - (lanes - 1) / 2
        _put_dot(axes, dot, rows.index(dot.row) + 0.8 * lane / lanes)
    if is_log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda seconds, _: seconds_in_words(seconds))
        axes.minorticks_off()
    if near is not None:
        axes.axvline(near, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(axis="y", length=0)
    for edge in () if is_named else range(1, len(rows)):
        axes.axhline(edge - 0.5, color=_GREY, alpha=0.35, linewidth=0.6)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=_GREY, alpha=0.25, linewidth=0.6)
    axes.set_xlabel(xlabel, color=INK)
    if not is_named:
        _legend(figure, policies)
    return figure


def svg_of(figure: Any) -> str:
    """Give a figure as SVG, the same text for the same figure.

    Text stays text: the file is small, and its words can be found.
    """
    settings = {"svg.fonttype": "none", "svg.hashsalt": "fastbandit"}
    with import_matplotlib().rc_context(settings):
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()


def png_of(figure: Any) -> bytes:
    """Give a figure as PNG on white."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=200, facecolor="white")
    return picture.getvalue()


def import_matplotlib() -> Any:
    """Give matplotlib, or say how to install it."""
    try:
        import matplotlib
        import matplotlib.figure
        import matplotlib.lines
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "The figure needs matplotlib, which is not installed. Run: "
            "pip install 'fastbandit[report]'"
        ) from error
    return matplotlib


def seconds_in_words(seconds: float) -> str:
    """Word a time with three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size:
            number = f"{seconds / size:.3g}"
            return f"{seconds:,.0f} s" if "e" in number else f"{number} {unit}"
    return f"{seconds:.3g} s"


def _empty(width: float, height: float) -> tuple[Any, Any]:
    figure = import_matplotlib().figure.Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=_FONT)
    axes.grid(axis="y", color=_GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _top(lines: Sequence[Line]) -> float:
    highest = max(
        float(np.max(line.y if line.half is None else line.y + line.half)) for line in lines
    )
    return 1.03 * highest if highest > 0 else 1.0


def _label_ends(axes: Any, lines: Sequence[Line]) -> None:
    """Name each line beside its end, apart from its neighbours, with a leader to where it ends."""
    to_axes = axes.transAxes.inverted()
    ends = {
        line.policy: to_axes.transform(axes.transData.transform((line.x[-1], line.y[-1])))
        for line in lines
    }
    falling = sorted(lines, key=lambda line: ends[line.policy][1], reverse=True)
    heights = spread([float(ends[line.policy][1]) for line in falling], gap=0.058)
    for line, height in zip(falling, heights, strict=True):
        style = style_of(line.policy)
        end, place = ends[line.policy], {"transform": axes.transAxes, "clip_on": False}
        axes.plot([end[0], 1.035], [end[1], height], color=style.colour, lw=0.7, **place)
        width = min(max(style.width, 1.8), 3.4)
        dashes = {"color": style.colour, "linestyle": style.dashes, "lw": width}
        axes.plot([1.035, 1.115], [height, height], **dashes, **place)
        label = axes.text(1.13, height, line.label, color=INK, fontsize=_FONT)
        label.set(transform=axes.transAxes, verticalalignment="center")


def spread(heights: list[float], *, gap: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    """Move falling heights at least `gap` apart, near where they were, from `high` to `low`.

    Where they do not fit, they go on below `low`.
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-2], gap) - gap < _highest(groups[-1], gap):
            last = groups.pop()
            groups[-1] += last
    free = [_highest(group, gap) - n * gap for group in groups for n in range(len(group))]
    for place in range(len(free)):
        free[place] = min(free[place], high - place * gap)
    for place in range(len(free)):
        above = len(free) - 1 - place
        free[place] = max(free[place], min(low + above * gap, high - place * gap))
    return free


def _highest(group: list[float], gap: float) -> float:
    return sum(group) / len(group) + gap * (len(group) - 1) / 2


def _lowest(group: list[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _put_dot(axes: Any, dot: Dot, height: float) -> None:
    style = style_of(dot.policy)
    if dot.low is not None and dot.high is not None:
        axes.plot([dot.low, dot.high], [height, height], color=style.colour, lw=1.6)
    fill = "none" if dot.is_hollow else style.colour
    mark = {"marker": style.marker, "markersize": 5.5, "markerfacecolor": fill}
    axes.plot([dot.value], [height], color=style.colour, linestyle="none", **mark)


def _legend(figure: Any, policies: Sequence[str]) -> None:
    """Name the policies above the axes, where nothing is covered."""
    line = import_matplotlib().lines.Line2D
    marks, columns = [], 2 if len(policies) in (2, 4) else 3
    by_column = [policy for first in range(columns) for policy in policies[first::columns]]
    for policy in by_column:
        style = style_of(policy)
        marks.append(line([], [], color=style.colour, marker=style.marker, ls="none", ms=5.5))
    figure.legend(
        marks,
        by_column,
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=_FONT,
        labelcolor=INK,
        handletextpad=0.2,
        columnspacing=1.2,
    )
