"""The demo: six policies in one world, and the page that shows them."""

from __future__ import annotations

import builtins
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from fastbandit.demo.comparison import YARDSTICK, DemoResult, run_demo
from fastbandit.demo.page import (
    HEADINGS,
    draw_figure,
    make_folder,
    render_page,
    summary,
    table_rows,
    write_report,
    write_whole,
)
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import MissingExtraError, SettingError
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import blueprint
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

POLICIES = (
    "Random",
    "LinearTS",
    "Exhaust TS",
    "FastBandit TS",
    "GANBandit TS",
    "GANBandit UCB",
)
SHORT = Training(
    reward=RewardFit(iterations=20), generator=GeneratorFit(iterations=20, targets=64, sample=32)
)


def short_blueprint(**settings: Any) -> Blueprint:
    """Give a blueprint that trains for moments only."""
    return replace(blueprint(**settings), training=SHORT)


def quick_demo(**settings: Any) -> DemoResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbandit.bandit.blueprint", short_blueprint)
        return run_demo(**{"arms": 300, "rounds": 150, "batch": 60, **settings})


@pytest.fixture(scope="module")
def steps() -> list[tuple[int, int, str]]:
    return []


@pytest.fixture(scope="module")
def result(steps: list[tuple[int, int, str]]) -> DemoResult:
    return quick_demo(progress=lambda *step: steps.append(step))


def test_all_six_policies_take_part(result: DemoResult) -> None:
    assert tuple(outcome.policy for outcome in result.outcomes) == POLICIES


def test_every_curve_has_one_point_for_each_round(result: DemoResult) -> None:
    curves = [result.best, *(outcome.earned for outcome in result.outcomes)]

    assert {curve.shape for curve in curves} == {(150,)}


def test_the_best_curve_is_that_of_the_best_arms(result: DemoResult) -> None:
    world = Synthetic(result.function, result.dim, result.arms, seed=result.seed)

    best = world.best(world.contexts(0, result.rounds))[1]

    assert result.best == pytest.approx(np.cumsum(best))


def test_no_policy_earns_more_than_the_best_possible_in_any_round(result: DemoResult) -> None:
    best = np.diff(result.best)

    assert all((np.diff(outcome.earned) <= best + 1e-9).all() for outcome in result.outcomes)


def test_the_first_batch_is_the_same_random_one_for_all(result: DemoResult) -> None:
    random, *others = result.outcomes

    for outcome in others:
        assert outcome.earned[:60] == pytest.approx(random.earned[:60])


def test_the_share_is_the_reward_earned_over_the_best_possible(result: DemoResult) -> None:
    for outcome in result.outcomes:
        assert outcome.share == pytest.approx(outcome.earned[-1] / result.best[-1])


def test_quality_is_given_where_a_network_is_searched(result: DemoResult) -> None:
    has_quality = {outcome.policy for outcome in result.outcomes if outcome.quality is not None}

    assert has_quality == set(POLICIES) - {"Random", "LinearTS"}


def test_the_exhaustive_search_has_quality_one(result: DemoResult) -> None:
    quality = {outcome.policy: outcome.quality for outcome in result.outcomes}

    assert quality["Exhaust TS"] == pytest.approx(1.0)


def test_speedups_are_over_the_yardstick_of_the_same_run(result: DemoResult) -> None:
    by_name = {outcome.policy: outcome for outcome in result.outcomes}
    yardstick, ucb = by_name[YARDSTICK], by_name["GANBandit UCB"]

    assert yardstick.batch_speedup == yardstick.single_speedup == 1.0
    ratio = yardstick.batch_milliseconds / ucb.batch_milliseconds
    assert ucb.batch_speedup == pytest.approx(ratio)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rewards(result: DemoResult) -> None:
    again = quick_demo()

    for one, two in zip(result.outcomes, again.outcomes, strict=True):
        assert one.earned == pytest.approx(two.earned)


def test_progress_counts_every_step_up_to_the_last(
    result: DemoResult, steps: list[tuple[int, int, str]]
) -> None:
    done = [step[0] for step in steps]

    assert done == list(range(len(steps)))
    assert {step[1] for step in steps} == {done[-1]}


def test_the_json_form_survives_the_round_trip(result: DemoResult) -> None:
    told = result.to_json()

    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_the_json_curves_end_where_the_batches_end(result: DemoResult) -> None:
    told = result.to_json()

    assert told["ends"] == [60, 120, 150]
    assert told["policies"][0]["earned"][-1] == result.outcomes[0].earned[-1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": 0}, "at least one round: got 0"),
        ({"rounds": 100, "batch": 60}, "at least two batches"),
        ({"arms": 0}, "arms=0"),
        ({"dim": 0}, "dim=0"),
        ({"function": "h9"}, "got 'h9'"),
    ],
)
def test_settings_that_make_no_demo_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=re.escape(words)):
        quick_demo(**settings)


@pytest.mark.slow
def test_a_world_with_one_arm_leaves_nothing_to_lose() -> None:
    alone = quick_demo(arms=1, rounds=4, batch=2)

    assert [outcome.share for outcome in alone.outcomes] == pytest.approx([1.0] * 6)


# -- the table, the figure and the page


@pytest.fixture(scope="module")
def drawn(result: DemoResult) -> tuple[bytes, str]:
    return draw_figure(result)


@pytest.fixture(scope="module")
def page(result: DemoResult, drawn: tuple[bytes, str]) -> str:
    return render_page(result, svg=drawn[1], command="fastbandit demo --out 'a <b> & c'")


class Reader(HTMLParser):
    """Collects what a page would load, and the words of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        for name in ("src", "href", "xlink:href", "data", "srcset", "poster"):
            target = named.get(name)
            if target is not None and not target.startswith("#"):
                self.loads.append(target)


def test_the_table_has_one_cell_for_each_heading(result: DemoResult) -> None:
    rows = table_rows(result)

    assert [row[0] for row in rows] == list(POLICIES)
    assert {len(row) for row in rows} == {len(HEADINGS)}


def test_a_missing_quality_is_a_dash(result: DemoResult) -> None:
    assert table_rows(result)[0][2] == "–"


def test_the_summary_says_when_a_single_request_is_slower(result: DemoResult) -> None:
    outcomes = tuple(replace(o, batch_speedup=20.0, single_speedup=0.5) for o in result.outcomes)

    sentence = summary(replace(result, outcomes=outcomes))[1]

    assert "20× as fast as" in sentence
    assert "2.0× as long as" in sentence


def test_the_figure_is_a_png_and_a_well_formed_svg(drawn: tuple[bytes, str]) -> None:
    png, svg = drawn

    assert png.startswith(b"\x89PNG")
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_the_figure_is_the_same_when_drawn_again(
    result: DemoResult, drawn: tuple[bytes, str]
) -> None:
    assert draw_figure(result)[1] == drawn[1]


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    reader = Reader()
    reader.feed(page)

    assert reader.loads == []
    assert "http://" not in page
    assert "https://" not in page
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert "@import" not in page


def test_the_page_holds_the_figure_and_every_policy(page: str) -> None:
    assert "<svg " in page
    assert all(f'<th scope="row">{policy}</th>' in page for policy in POLICIES)


def test_the_page_escapes_the_command_that_made_it(page: str) -> None:
    assert "fastbandit demo --out &#x27;a &lt;b&gt; &amp; c&#x27;" in page
    assert "<b>" not in page


def test_the_figure_on_the_page_takes_the_colour_of_its_text(page: str) -> None:
    figure = page[page.index("<figure>") : page.index("</figure>")]

    assert "currentColor" in figure
    assert "#1b1b1f" not in figure


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **settings: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **settings)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("without_matplotlib")
def test_a_figure_without_matplotlib_says_what_to_install(result: DemoResult) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'fastbandit\[train\]'"):
        draw_figure(result)


# -- files


def test_a_report_is_a_picture_a_drawing_and_a_page(result: DemoResult, tmp_path: Path) -> None:
    paths = write_report(result, tmp_path, command="fastbandit demo")

    assert sorted(path.suffix for path in paths) == [".html", ".png", ".svg"]
    assert set(tmp_path.iterdir()) == set(paths)


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), OSError(28, "No space left")])
def test_interrupted_writing_leaves_the_old_file_and_no_part(
    trouble: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise trouble

    path = write_whole(tmp_path / "page.html", b"old")
    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises((KeyboardInterrupt, SettingError)):
        write_whole(path, b"new")

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(SettingError, match="Choose another with --out"):
        make_folder(tmp_path / "taken")
