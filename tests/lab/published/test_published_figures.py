"""Published figures are found, traced to their command, and made again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.errors import DataError
from lab.equal_latency import sets as peer_sets
from lab.experiments.results import Key
from lab.published import command
from lab.published import sources as published
from lab.published.command import all_figures, check, listed, sampled, source_of
from lab.published.pages import Figure, figures_in, read_number
from lab.published.sources import Again, Source, sources

PAGE = """# Page

## Speed

**little, 10 rounds**

<!-- bench little -->
| what | seeds | share | paper |
| --- | --: | --: | --: |
| ours | 3 | 0.500 ± 0.020 | – |
| theirs | 3 | 0.4 | 12.5 µs |
<!-- end of bench little -->

| | typed |
| --- | --: |
| one | 1,234 |
"""


@pytest.fixture
def figures() -> list[Figure]:
    return figures_in(PAGE, page="page.md")


def little(figure: Figure) -> bool:
    return figure.place.mark == "bench little"


def always(now: float) -> Source:
    return Source("again", little, lambda figure: Again(figure.number.value, now, 0.03))


REST = Source("typed", lambda figure: True, why_not="typed")


@pytest.mark.parametrize(
    ("text", "value", "error", "rounding"),
    [
        ("0.500 ± 0.020", 0.5, 0.02, 0.0005),
        ("1,234", 1234.0, None, 0.5),
        ("-.3", -0.3, None, 0.05),
        ("12.5 µs", 12.5, None, 0.05),
        ("4.07e-06", 4.07e-06, None, 5e-9),
    ],
)
def test_a_number_is_read_with_its_error_and_rounding(
    text: str, value: float, error: float | None, rounding: float
) -> None:
    found = read_number(text)

    assert found is not None
    assert (found.value, found.error) == (value, error)
    assert found.rounding == pytest.approx(rounding)


@pytest.mark.parametrize(
    "text", ["–", "", "met: 0.5", "0.1 to 0.2", "<0.001", "0.351 (+0.1)", "ours"]
)
def test_a_cell_that_is_more_or_less_than_a_number_is_no_figure(text: str) -> None:
    assert read_number(text) is None


def test_a_figure_knows_its_row_its_column_and_its_place(figures: list[Figure]) -> None:
    share = next(figure for figure in figures if figure.heading == "share")

    assert (share.name, share.text, share.beside("seeds")) == ("ours", "0.500 ± 0.020", "3")
    assert (share.place.heading, share.place.title) == ("Speed", "little, 10 rounds")
    typed = [(figure.name, figure.heading, figure.text) for figure in figures if not little(figure)]
    assert typed == [("one", "typed", "1,234")]


def test_the_first_source_that_has_a_figure_is_its_own(figures: list[Figure]) -> None:
    known = [always(0.5), REST]

    assert [row["figures"] for row in listed(figures, known)] == [5, 1]
    assert source_of(figures[-1], known) is REST


def test_a_sample_is_of_cheap_figures_and_the_same_for_a_seed(figures: list[Figure]) -> None:
    known = [always(0.5), REST]
    some = sampled(figures, known, count=3, seed=1)

    assert some == sampled(figures, known, count=3, seed=1)
    assert len(some) == 3
    assert len(sampled(figures, known, count=99, seed=1)) == 5


@pytest.mark.parametrize(("now", "verdict"), [(0.52, "confirmed"), (0.54, "not confirmed")])
def test_a_figure_is_confirmed_within_its_error(
    now: float, verdict: str, figures: list[Figure]
) -> None:
    share = next(figure for figure in figures if figure.heading == "share")

    assert check(share, always(now)).verdict == verdict


def test_a_figure_may_come_out_to_the_last_digit() -> None:
    assert Again(0.5, 0.5004, error=0.03, rounding=0.0005).is_same
    assert not Again(0.5, 0.501, error=0.03, rounding=0.0005).is_same


def test_a_figure_that_cannot_be_made_says_why(figures: list[Figure]) -> None:
    def fail(figure: Figure) -> Again:
        raise DataError("No data.")

    found = check(figures[0], Source("fails", little, fail))

    assert (found.verdict, found.error) == ("failed", "DataError: No data.")


def test_the_command_counts_what_is_confirmed(
    monkeypatch: pytest.MonkeyPatch, figures: list[Figure]
) -> None:
    monkeypatch.setattr(command, "pages_of", lambda root: {"page.md": PAGE})
    monkeypatch.setattr(command, "sources", lambda folder, results=None: [always(0.5), REST])

    ran = CliRunner().invoke(command.figures_command, ["check", "--count", "5", "--json"])
    verdicts = [row["verdict"] for row in json.loads(ran.stdout)["figures"]]

    assert (ran.exit_code, sorted(set(verdicts))) == (1, ["confirmed", "not confirmed"])
    assert "1 of 5 figures" in CliRunner().invoke(command.figures_command, ["check"]).stdout


def test_the_pages_of_this_project_have_figures_of_every_cheap_source(tmp_path: Path) -> None:
    known = sources(tmp_path)
    rows = listed(all_figures(command.pages_of(command.ROOT)), known)

    assert all(row["figures"] for row in rows if not row["why_not"]), rows
    assert sum(row["figures"] for row in rows if not row["why_not"]) >= 20


def test_a_share_at_a_glance_is_made_again_over_the_seeds_that_its_column_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def run_job(key: Key, folder: Path, data: Path | None) -> dict[str, Any]:
        made.append(key.seed)
        found = {"played": 10, "earned": [5.0 + key.seed], "best": [10.0]}
        return {**asdict(key), "kind": "play", **found}

    monkeypatch.setattr("lab.published.sources.run_job", run_job)
    text = (
        "## At a glance\n\n| share | h1 | h2 |\n| --- | --: | --: |\n| Random | 0.550 | 0.500 |\n"
    )
    figures = figures_in(text + "| seeds | 2 | 1 |\n", page="docs/results.md")
    known = sources(tmp_path)

    found = [check(one, source_of(one, known)) for one in figures if one.name == "Random"]

    assert [one.verdict for one in found] == ["confirmed", "confirmed"]
    assert made == [0, 1, 0]


def test_figures_of_older_code_are_told_apart_and_not_sampled(tmp_path: Path) -> None:
    text = "## Sines\n\n| policy | regret |\n| --- | --: |\n| Random | 312 |\n| HOO | 3 |\n"
    (one, _) = figures_in(text, page="docs/results-older.md")

    source = source_of(one, sources(tmp_path))

    assert (source.command, source.again) == ("older code", None)


def test_a_share_of_a_quick_peer_is_made_again_over_the_seeds_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_sets, "ROUNDS", 20)
    monkeypatch.setattr(peer_sets, "BATCH", 10)
    published._peer_titles.cache_clear()
    text = (
        "<!-- equal latency -->\n**h1, 1,000 arms, 20 rounds, batches of 10**\n\n"
        "| system | seeds | share | µs a decision |\n| --- | --- | --- | --- |\n"
        "| LinUCB | 2 | 0.5 ± 0.1 | 200 |\n| fastbandit walk | 2 | 0.5 | 20 |\n"
        "<!-- end of equal latency -->\n"
    )
    known = sources(tmp_path)
    figures = figures_in(text, page="docs/peers.md")
    cheap = [(one, source_of(one, known)) for one in figures if source_of(one, known).again]

    ((figure, source),) = cheap
    assert source.again is not None
    again = source.again(figure)

    assert (figure.name, figure.heading) == ("LinUCB", "share")
    assert len(list((tmp_path / "peers").rglob("*.json"))) == 2
    assert (again.published, again.error) == (0.5, pytest.approx(0.25))
    assert -1.0 < again.now <= 1.0
    published._peer_titles.cache_clear()
