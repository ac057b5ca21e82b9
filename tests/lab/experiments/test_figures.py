"""Figures: one style, nothing on top of anything, the same file each time."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from lab.experiments.figures import (
    STYLES,
    Dot,
    Line,
    draw_curves,
    draw_dots,
    draw_scaling,
    png_of,
    style_of,
    svg_of,
)
from lab.experiments.policies import NAMES


def line(policy: str, height: float = 1.0, half: float | None = None) -> Line:
    x = np.array([0.0, 10.0, 20.0])
    band = None if half is None else np.full(3, half)
    return Line(policy, x, height * x, f"{policy} ends", band)


def test_every_policy_has_a_style_of_its_own() -> None:
    assert set(NAMES) <= set(STYLES)
    looks = {(style.colour, str(style.dashes), style.width) for style in STYLES.values()}
    assert len(looks) == len(STYLES)


def test_a_family_has_one_colour() -> None:
    for family in ("Exhaust", "FastBandit", "GANBandit"):
        assert style_of(f"{family} TS").colour == style_of(f"{family} UCB").colour


def test_an_unknown_policy_can_be_drawn() -> None:
    assert "Newcomer ends" in svg_of(draw_curves([line("Newcomer")], ylabel="Reward"))


def test_each_curve_is_named_at_its_end() -> None:
    svg = svg_of(draw_curves([line("Random"), line("Exhaust TS", 2.0)], ylabel="Reward"))

    assert "Random ends" in svg
    assert "Exhaust TS ends" in svg


def test_a_band_is_drawn_only_where_there_is_one() -> None:
    with_band = draw_curves([line("Random", half=1.0)], ylabel="Reward")
    without = draw_curves([line("Random")], ylabel="Reward")

    assert len(with_band.axes[0].collections) == 1
    assert len(without.axes[0].collections) == 0


def test_negative_rewards_stay_inside_the_axes() -> None:
    low, high = draw_curves([line("Random", -3.0)], ylabel="Reward").axes[0].get_ylim()

    assert low <= -60.0
    assert high >= 0.0


def test_figures_are_png_and_svg_and_the_same_again() -> None:
    figures = [
        lambda: draw_curves([line("Random", half=1.0)], ylabel="Reward"),
        lambda: draw_dots([Dot("h1", "Random", 1.0, 0.5, 2.0)], xlabel="Reward", near=0.98),
        lambda: draw_dots([Dot("Random", "Random", 1e-3)], xlabel="Time", is_log=True),
    ]
    for draw in figures:
        assert png_of(draw()).startswith(b"\x89PNG")
        assert ElementTree.fromstring(svg_of(draw())).tag.endswith("svg")
        assert svg_of(draw()) == svg_of(draw())


def test_scaling_is_logarithmic_both_ways() -> None:
    rising = Line("Exhaust TS", np.array([1e2, 1e6]), np.array([1e-5, 1e-1]), "Exhaust TS")

    axes = draw_scaling([rising], ylabel="Time").axes[0]

    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
