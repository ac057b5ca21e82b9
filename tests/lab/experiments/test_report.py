"""`python -m lab report`: one page, one Markdown file, one block of the README."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from made_results import of_every_kind, play, write

from fastbandit.errors import DataError, FastbanditError, MissingExtraError, SettingError
from lab.experiments.outline import outline
from lab.experiments.report import (
    MARKS,
    load_results,
    report_command,
    results_page,
)
from lab.experiments.sections import sketches
from lab.published.command import check, source_of
from lab.published.pages import figures_in
from lab.published.sources import sources
from lab.stamps import stamps_in

ROOT = Path(__file__).parents[3]
VOID = {"meta", "br", "hr", "img", "input", "link"}


def invoke(*words: object) -> Result:
    arguments = [str(word) for word in words]
    return CliRunner().invoke(report_command, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(of_every_kind(), tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert invoke(results, "-o", out).exit_code == 0
    return out.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Collects ids, links, tags and what would be loaded; checks that tags close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.loads: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name == "href" and str(value).startswith("#"):
                self.links.append(str(value)[1:])
            elif name in ("src", "href", "xlink:href", "srcset", "data", "poster"):
                self.loads.append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


# -- the page


def test_the_page_loads_nothing_and_runs_nothing(page: str) -> None:
    reader = Reader(page)

    assert reader.loads == []
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page


def test_every_name_on_the_page_is_used_once_and_every_link_leads_somewhere(page: str) -> None:
    reader = Reader(page)

    assert len(reader.ids) == len(set(reader.ids))
    assert set(reader.links) <= set(reader.ids)


def test_every_figure_says_in_words_what_it_shows(page: str) -> None:
    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)

    assert len(labels) == page.count("<svg ") == page.count("<figcaption>")
    assert any("GANBandit TS 75.0%" in label for label in labels)


def test_the_page_is_light_or_dark_and_fits_a_phone(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "currentColor" in page
    assert "#1b1b1f" not in page[page.index("<body>") :]


def test_other_presets_are_folded(page: str) -> None:
    folded = page[page.index('class="preset"') :]

    assert folded.index("h1 with the preset paper") < folded.index("</details>")


def test_a_bar_has_a_sign_and_a_word(page: str) -> None:
    assert '<span class="undecided">? undecided: 0.938 ± 0.794 (2 seeds)</span>' in page
    assert '<span class="met">✓ met: 0.800, 0.300, +0.500 ± 0.000 (2 seeds)</span>' in page


def test_notes_of_a_dataset_are_shown_escaped(page: str) -> None:
    assert "Rows &lt;without&gt; a label &amp; more are left out." in page


def test_one_seed_without_a_band_is_said(page: str) -> None:
    assert "One seed, so no band: LinearTS." in page
    assert "One seed each, so there are no bands." in page


@pytest.mark.parametrize(
    "title",
    ["Bars", "At a glance", "Datasets", "Continuum", "Replayed logs", "Run time", "Training time"],
)
def test_each_kind_of_result_has_its_section(page: str, title: str) -> None:
    assert f"<h2>{title}</h2>" in page
    assert f">{title}</a>" in page


def test_what_was_not_measured_has_no_section() -> None:
    titles = [section.title for section in outline([play("Random")])]

    assert titles == ["At a glance", "Datasets", "How to read this"]


def test_names_of_files_are_safe_whatever_the_preset_is_called() -> None:
    runs = [
        play("Exhaust TS", preset=name) for name in ("../my settings.toml", "../My settings.toml")
    ]

    names = [sketch.name for sketch in sketches(outline(runs))]

    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in names)


# -- the command


def test_the_command_writes_all_that_is_asked_for(results: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"above\n{MARKS[0]}\nold\n{MARKS[1]}\nbelow\n")
    figures, doc, out = (tmp_path / name for name in ("figures", "docs/results.md", "report.html"))

    ran = invoke(results, "-o", out, "--figures", figures, "--doc", doc, "--readme", readme)

    assert ran.exit_code == 0
    assert "1 of 3 bars are met, 0 missed and 2 undecided" in ran.stdout
    assert out.exists()
    assert doc.read_text().startswith("# Results\n\nWritten by `python -m lab report")
    (stamp,) = stamps_in(doc.read_text())
    assert stamp.versions == ("0.1.0", "not recorded")
    assert stamp.commits == ("0123456789", "not recorded")
    assert {p.stem for p in figures.glob("*.svg")} == {p.stem for p in figures.glob("*.png")}
    assert (figures / "h1-default-regret.svg").exists()
    text = readme.read_text()
    assert text.startswith(f"above\n{MARKS[0]}\n| share of the best possible reward | h1 |")
    assert text.endswith(f"\n{MARKS[1]}\nbelow\n")


def test_figures_are_written_only_where_asked_for(results: Path, tmp_path: Path) -> None:
    invoke(results, "-o", tmp_path / "report.html")

    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_json_has_the_bars_and_the_standings(results: Path, tmp_path: Path) -> None:
    output = json.loads(invoke(results, "-o", tmp_path / "r.html", "--json").stdout)

    found = {bar["bar"]: bar["verdict"] for bar in output["bars"] if bar["dataset"] == "h1"}
    assert found["GANBandit TS ≥ 0.98 × Exhaust TS"] == "undecided"
    assert found["GANBandit UCB ≥ 0.98 × Exhaust UCB"] is None
    assert output["standings"][0]["policy"] == "Learned best arm"
    assert output["written"] == [str(tmp_path / "r.html")]


def test_the_same_results_give_the_same_files(results: Path, tmp_path: Path, page: str) -> None:
    invoke(results, "-o", tmp_path / "again.html")

    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_the_order_of_the_files_does_not_matter(results: Path) -> None:
    found = load_results(results)

    assert results_page(found) == results_page(found[::-1])


def test_the_markdown_has_the_tables_and_no_figures(results: Path) -> None:
    text = results_page(load_results(results))

    assert "| GANBandit TS | 0.750 ± 0.635 | 0.938 ± 0.794 |" in text
    assert "#### h1 with the preset paper" in text
    assert "<svg" not in text


def test_the_readme_of_this_project_has_the_marks() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert 0 < text.find(MARKS[0]) < text.find(MARKS[1])


def test_cells_of_the_results_are_made_of_result_files(tmp_path: Path) -> None:
    runs = [play("Exhaust TS", 0.8, seed=seed) for seed in (0, 1)]
    known = sources(tmp_path, write(runs, tmp_path / "results"))
    text = results_page(runs).replace("0.800", "0.900")

    found = figures_in(text, page="docs/results.md")
    pairs = {(one.heading, check(one, source_of(one, known)).verdict) for one in found}

    assert ("share of best", "not confirmed") in pairs
    assert ("T", "confirmed") in pairs


# -- what goes wrong


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FastbanditError, match="nowhere"):
        invoke(tmp_path / "nowhere", "-o", tmp_path / "report.html")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds none\. Make some with"):
        invoke(tmp_path, "-o", tmp_path / "report.html")


@pytest.mark.parametrize(
    "damage",
    [
        {"earned": None},
        {"earned": [1.0, 2.0]},
        {"earned": [1.0, 2.0, float("nan")]},
        {"rounds": 300},
        {"seed": "one"},
        {"options": [1]},
        {"kind": "song"},
        {"kind": "runtime"},
    ],
)
def test_a_damaged_file_is_named_and_nothing_is_written(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    write([play("Random"), play("LinearTS") | damage], tmp_path / "results")

    with pytest.raises(DataError, match=r"1\.json") as caught:
        invoke(tmp_path / "results", "-o", tmp_path / "report.html")

    assert "\n" not in str(caught.value)
    assert not (tmp_path / "report.html").exists()


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    folder = write([play("Random")], tmp_path / "results")
    (folder / "half.json").write_text('{"format": 1, "ki')

    with pytest.raises(FastbanditError, match=r"half\.json"):
        invoke(folder, "-o", tmp_path / "report.html")


@pytest.mark.parametrize("option", ["-o", "--doc", "--figures"])
def test_an_output_below_a_file_is_refused_before_the_work(
    option: str, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    options = ["-o", tmp_path / "report.html", option, tmp_path / "taken" / "there"]

    with pytest.raises(SettingError, match="taken") as caught:
        invoke(results, *options)

    assert option in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_page_where_a_folder_is_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs the name of a file"):
        invoke(results, "-o", tmp_path)


def test_two_files_of_one_name_are_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="file of its own"):
        invoke(results, "-o", tmp_path / "x", "--doc", tmp_path / "x")


@pytest.mark.parametrize("text", [None, "no marks here\n"])
def test_a_readme_without_marks_is_named_and_left_alone(
    text: str | None, results: Path, tmp_path: Path
) -> None:
    readme = tmp_path / "README.md"
    if text is not None:
        readme.write_text(text)

    with pytest.raises(SettingError, match=r"README\.md"):
        invoke(results, "-o", tmp_path / "report.html", "--readme", readme)

    assert not (tmp_path / "report.html").exists()
    assert text is None or readme.read_text() == text


def test_without_matplotlib_it_says_what_to_install(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(MissingExtraError, match="pip install"):
        invoke(results, "-o", tmp_path / "report.html")
