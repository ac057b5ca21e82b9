"""Figures of reports: curves, scaling and dots, each policy in the same style everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastbandit.demo import figures
from fastbandit.demo.figures import BEST as BEST
from fastbandit.demo.figures import (
    FONT,
    GREY,
    INK,
    PLAIN,
    UCB,
    Style,
    empty_axes,
    label_ends,
)
from fastbandit.demo.figures import Line as Line
from fastbandit.demo.figures import import_matplotlib as import_matplotlib
from fastbandit.demo.figures import png_of as png_of
from fastbandit.demo.figures import svg_of as svg_of
from lab.printing import format_seconds

STYLES = {
    "Random": figures.STYLES["Random"],
    "Overall best arm": Style(GREY, "solid"),
    "Learned best arm": Style(GREY, (0, (5, 2)), marker="s"),
    "LinearTS": figures.STYLES["LinearTS"],
    "LinUCB": Style("#cc79a7", UCB, marker="D"),
    "LinearTS fading": Style("#cc79a7", (0, (3, 1)), 2.4, "^"),
    "LinUCB fading": Style("#cc79a7", (0, (3, 1, 1, 1)), 2.4, "^"),
    "GLM-UCB": Style("#cc79a7", (0, (2, 2)), 1.2, "<"),
    "KernelUCB": Style("#cc79a7", (0, (4, 2, 1, 2)), 1.2, ">"),
    "GLOC": Style("#cc79a7", (0, (6, 1.5, 1, 1.5)), 1.2, "s"),
    "GLOC-TS": Style("#cc79a7", (0, (1, 1)), 1.2, "v"),
    "QGLOC": Style("#cc79a7", (0, (8, 3)), 1.2, "P"),
    "Default TS": Style("#000000", "solid", 2.0, "*"),
    "Default UCB": Style("#000000", UCB, 2.0, "*"),
    "Default TS by scan": Style("#000000", "solid", 1.0, "s"),
    "Default UCB by scan": Style("#000000", UCB, 1.0, "s"),
    "Default TS by ascent": Style("#000000", "solid", 1.4, "^"),
    "Default UCB by ascent": Style("#000000", UCB, 1.4, "^"),
    "Default TS by generator": Style("#000000", "solid", 2.6, "v"),
    "Default TS by spanner": Style("#000000", "solid", 1.2, "v"),
    "Default UCB by generator": Style("#000000", UCB, 2.6, "v"),
    "NeuralLinear": Style("#0072b2", (0, (6, 1.5, 1, 1.5)), marker="s"),
    "Bootstrapped heads": Style("#0072b2", (0, (2, 1)), marker="^"),
    "Variational layer": Style("#0072b2", "solid", marker="v"),
    "Exhaust TS": figures.STYLES["Exhaust TS"],
    "Exhaust UCB": Style("#56b4e9", (0, (2.2, 0.9)), 3.4, "D"),
    "FastBandit TS": figures.STYLES["FastBandit TS"],
    "FastBandit UCB": Style("#e69f00", UCB, 2.2, "D"),
    "GANBandit TS": figures.STYLES["GANBandit TS"],
    "GANBandit UCB": figures.STYLES["GANBandit UCB"],
    "GANBandit window": Style("#009e73", (0, (6, 1.5, 1, 1.5)), 2.4, "s"),
    "GANBandit fading": Style("#009e73", (0, (3, 1)), 2.4, "^"),
    "GP-UCB": Style("#d55e00", UCB, marker="D"),
    "GP-TS": Style("#d55e00", "solid"),
    "HOO": Style("#d55e00", (0, (1, 1.2)), marker="s"),
    BEST: figures.STYLES[BEST],
}
"""All policies, in the order of the report."""


def style_of(policy: str) -> Style:
    """Return the style of a policy, a plain one where it is unknown."""
    return STYLES.get(policy, PLAIN)


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
    return figures.draw_curves(lines, ylabel=ylabel, styles=STYLES)


def draw_scaling(lines: Sequence[Line], *, ylabel: str) -> Any:
    """Draw seconds over the number of arms, both logarithmic, each line named at its end."""
    figure, axes = empty_axes(5.4, 3.9)
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
    axes.yaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
    axes.minorticks_off()
    axes.autoscale_view()
    label_ends(axes, lines, styles=STYLES)
    return figure


def draw_dots(
    dots: Sequence[Dot], *, xlabel: str, is_log: bool = False, near: float | None = None
) -> Any:
    """Draw a row of dots for each name, with intervals where they are known."""
    rows = list(dict.fromkeys(dot.row for dot in dots))
    policies = list(dict.fromkeys(dot.policy for dot in dots))
    is_named = rows == policies  # each row holds one policy, and bears its name
    lanes = 1 if is_named else len(policies)
    figure, axes = empty_axes(5.4, 0.8 + (0.1 + 0.12 * max(lanes, 1.6)) * len(rows))
    for dot in dots:
        lane = 0.0 if is_named else policies.index(dot.policy) - (lanes - 1) / 2
        _put_dot(axes, dot, rows.index(dot.row) + 0.8 * lane / lanes)
    if is_log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
        axes.minorticks_off()
    if near is not None:
        axes.axvline(near, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(axis="y", length=0)
    for edge in () if is_named else range(1, len(rows)):
        axes.axhline(edge - 0.5, color=GREY, alpha=0.35, linewidth=0.6)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_xlabel(xlabel, color=INK)
    if not is_named:
        _legend(figure, policies)
    return figure


def _put_dot(axes: Any, dot: Dot, height: float) -> None:
    style = style_of(dot.policy)
    if dot.low is not None and dot.high is not None:
        axes.plot([dot.low, dot.high], [height, height], color=style.colour, lw=1.6)
    fill = "none" if dot.is_hollow else style.colour
    mark = {"marker": style.marker, "markersize": 5.5, "markerfacecolor": fill}
    axes.plot([dot.value], [height], color=style.colour, linestyle="none", **mark)


def _legend(figure: Any, policies: Sequence[str]) -> None:
    """Name the policies above the axes, where nothing is covered."""
    from matplotlib.lines import Line2D as line  # noqa: N813

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
        fontsize=FONT,
        labelcolor=INK,
        handletextpad=0.2,
        columnspacing=1.2,
    )
