"""The page of a demo: a table, a figure, and nothing that is loaded."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from quick_demo import POLICIES

from fastbandit.demo.comparison import DemoResult
from fastbandit.demo.page import (
    HEADINGS,
    draw_figure,
    inline_svg,
    make_folder,
    render_page,
    summary,
    table_rows,
    write_all,
    write_report,
)
from fastbandit.errors import MissingExtraError, SettingError


@pytest.fixture(scope="module")
def drawn(result: DemoResult) -> tuple[bytes, str]:
    return draw_figure(result)


@pytest.fixture(scope="module")
def page(result: DemoResult, drawn: tuple[bytes, str]) -> str:
    return render_page(result, svg=drawn[1], command="fastbandit demo --out 'a <b> & c'")


class Reader(HTMLParser):
    """Collects what a page would load, and the tags in it."""

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
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)


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

    path = write_all({tmp_path / "page.html": b"old"})[0]
    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises((KeyboardInterrupt, SettingError)):
        write_all({path: b"new"})

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_a_file_is_rejected_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(SettingError, match="Choose another with --out"):
        make_folder(tmp_path / "taken")


def test_drawings_on_one_page_share_no_names(drawn: tuple[bytes, str]) -> None:
    inlined = inline_svg(drawn[1], label="a & b", prefix="first-")

    assert 'aria-label="a &amp; b"' in inlined
    assert inlined.count(' id="') == inlined.count(' id="first-') > 0
    assert inlined.count("url(#") == inlined.count("url(#first-")
