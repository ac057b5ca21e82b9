"""The command and its page: a table a set, what was not run, and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastbandit.cli.main import run as run_cli
from fastbandit.cluster.engine import SerialEngine
from lab.__main__ import cli
from lab.bakeoff.bake import kept_results
from lab.bakeoff.results import Mean
from lab.equal_latency.page import MARKS, figure_of, text_of
from lab.equal_latency.rows import Row, rows_of
from lab.equal_latency.sets import BATCH, NAMES, ROUNDS, asked
from lab.equal_latency.systems import SYSTEMS
from lab.experiments.figures import svg_of

ROOT = Path(__file__).parents[3]
KEPT = "docs/results/peers.jsonl"


def row(arms: int, share: float | None, *, error: str | None = None) -> Row:
    mean = None if share is None else Mean(share, None)
    time = None if share is None else Mean(17.5, None)
    seeds = () if share is None else (0,)
    name = f"h2-{arms}"
    return Row(name, 60, 30, "LinUCB", arms, seeds, mean, mean, time, time, time, ("abc",), error)


def test_a_table_says_what_was_not_run_and_why_a_run_failed() -> None:
    sets = asked(["h2"], [50, 500, 5000], rounds=60, batch=30)
    rows = [row(50, 0.5), row(500, None, error="Takes too long: 9 ms a decision.")]

    text = text_of(rows, sets, SYSTEMS)

    assert "**h2, 50 arms, 60 rounds, batches of 30**" in text
    assert "| LinUCB | 1 | 0.500 | 0.500 | 17.5 | 17.5 | 17.5 |" in text
    assert "Not run: fastbandit walk, fastbandit scan," in text
    assert "**h2, 5,000 arms, 60 rounds, batches of 30**: not run." in text
    assert "LinUCB: Takes too long: 9 ms a decision." in text
    assert "Seeds: 0. Commits: abc." in text


def test_the_figure_has_a_line_for_each_system_that_was_run() -> None:
    drawn = svg_of(figure_of([row(50, 0.5), row(500, 0.4)], SYSTEMS))

    assert "LinUCB" in drawn
    assert "fastbandit" not in drawn


def test_rows_average_the_seeds_that_went_well() -> None:
    common = {"set": "h2-50", "rounds": 60, "batch": 30, "system": "LinUCB", "arms": 50}
    runs = [
        {**common, "seed": seed, "share": share, "commit": "abc", "error": error}
        for seed, share, error in ((0, 0.4, None), (1, 0.6, None), (2, None, "It fell."))
    ]

    (found,) = rows_of(runs)

    assert found.seeds == (0, 1)
    assert found.share is not None
    assert found.share.value == pytest.approx(0.5)
    assert found.error == "It fell."


@contextmanager
def here(name: str, *, workers: int) -> Iterator[SerialEngine]:
    yield SerialEngine()


def command(*args: object) -> int:
    """Run `python -m lab experiment equal-latency` in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", "equal-latency", *map(str, args)], prog_name="lab")
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command_writes_page_and_figure_and_makes_no_run_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.equal_latency.command.engine_for", here)
    monkeypatch.setattr("lab.equal_latency.measure._SECONDS", 0.01)
    page, picture = tmp_path / "page.md", tmp_path / "peers.svg"
    page.write_text("<!-- equal latency -->\nold\n<!-- end of equal latency -->\n")
    asks = ["--sets", "h2", "--arms", 50, "--rounds", 60, "--batch", 30, "--seeds", 1]
    asks += ["--systems", "LinUCB", "--out", tmp_path / "out"]

    assert command(*asks, "--doc", page, "--figure", picture) == 0
    capsys.readouterr()
    assert command(*asks, "--made-only", "--json") == 0

    (found,) = json.loads(capsys.readouterr().out)["rows"]
    assert found["seeds"] == [0]
    assert found["p50_us"]["value"] > 0.0
    assert "(peers.svg)" in page.read_text()
    assert "old" not in page.read_text()
    assert picture.read_text().startswith("<?xml")


def test_a_page_is_written_from_kept_rows_of_all_seeds_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.equal_latency.command.engine_for", here)
    monkeypatch.setattr("lab.equal_latency.measure._SECONDS", 0.01)
    for module in ("lab.experiments.kept", "lab.bakeoff.bake"):
        monkeypatch.setattr(f"{module}.code_commit", lambda: "0123456789abcdef")
    page, rows = tmp_path / "page.md", tmp_path / "peers.jsonl"
    page.write_text("<!-- equal latency -->\n<!-- end of equal latency -->\n")
    asks = ["--sets", "h2", "--arms", 50, "--rounds", 60, "--batch", 30]
    asks += ["--systems", "LinUCB", "--keep", rows]
    assert command(*asks, "--seeds", 2, "--out", tmp_path / "one") == 0
    made = rows.read_text()

    asks += ["--out", tmp_path / "two", "--made-only", "--doc", page]
    assert command(*asks, "--seeds", 1, "--figure", tmp_path / "peers.svg") == 0

    assert rows.read_text() == made
    assert not list((tmp_path / "two").rglob("*.json"))
    (line,) = [line for line in page.read_text().splitlines() if line.startswith("| LinUCB | 2 |")]
    shares = [json.loads(row)["share"] for row in made.splitlines()]
    assert f"{sum(shares) / 2:.3f} ±" in line
    assert "commit: 0123456789." in page.read_text()


# -- the rows of this project


def test_the_page_is_what_the_kept_rows_say() -> None:
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    if f"--keep {KEPT}" not in page.partition(MARKS[0])[2]:
        pytest.skip("the page is older than its rows: write it with --made-only --doc")
    sets = asked(NAMES, [1_000, 10_000, 100_000, 1_000_000], rounds=ROUNDS, batch=BATCH)

    assert text_of(rows_of(kept_results(ROOT / KEPT, sets, SYSTEMS)), sets, SYSTEMS) in page
