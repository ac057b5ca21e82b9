"""One decision is timed, audited and printed; nothing here depends on how long anything takes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.errors import SettingError
from lab.benchmarks import select as bench
from lab.benchmarks.figure import figure_of
from lab.benchmarks.peer_libraries import Sweep
from lab.benchmarks.reporting import Tick
from lab.benchmarks.select import Row, best_of, measure_select, select_command, sweeps_for
from lab.benchmarks.setups import Contest, Setup, contest_of

SMALL = Setup(arms=500, dim=3, rounds=60)
ROW = Row(
    arms=10_000,
    dim=8,
    hidden=32,
    exploration="ts",
    p50_us=20.0,
    p99_us=50.0,
    exhaustive_ratio=15.0,
    folded_ratio=5.0,
    scan_ratio=2.5,
    quality=0.999,
    evaluations=200.0,
    lookups=2.0,
    bytes_per_arm=105.0,
    build_s=0.1,
    load_s=0.01,
    allocations=60.0,
)
COLUMNS = {
    *(
        "arms",
        "p50_us",
        "p99_us",
        "exhaustive_ratio",
        "folded_ratio",
        "scan_ratio",
        "quality",
        "evaluations",
        "lookups",
    ),
    *("bytes_per_arm", "build_s", "load_s", "dim", "hidden", "exploration", "allocations"),
}


@pytest.fixture(scope="module")
def contest(little_training: None) -> Contest:
    return contest_of(SMALL, contexts=20)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command measure nothing."""

    def measure(setup: Setup, *, seconds: float, tick: Tick) -> Row:
        tick("nothing")
        return replace(ROW, arms=setup.arms, exploration=setup.exploration)

    monkeypatch.setattr(bench, "measure_select", measure)


@pytest.mark.usefixtures("little_training")
def test_a_row_holds_what_was_found() -> None:
    steps: list[str] = []

    row = measure_select(SMALL, seconds=0.0, audited=20, tick=steps.append)

    assert set(asdict(row)) == COLUMNS
    assert (row.arms, row.dim, row.hidden, row.exploration) == (500, 3, 32, "ts")
    assert 0 < row.p50_us <= row.p99_us
    assert row.exhaustive_ratio is not None
    assert row.folded_ratio is not None
    assert row.scan_ratio is not None
    assert 0.5 < row.quality <= 1.0001
    assert 0 < row.evaluations <= 1000
    assert min(row.build_s, row.load_s, row.allocations, row.lookups) > 0
    assert len(steps) == bench._STEPS


@pytest.mark.parametrize("name", ["network", "folded", "scan"])
def test_a_sweep_finds_the_arm_that_the_exhaustive_policy_finds(
    contest: Contest, name: str
) -> None:
    sweep = sweeps_for(contest)[name]
    inputs, _ = contest.inputs(16)

    best = contest.exhaustive.select(inputs, seeds=np.arange(16, dtype=np.uint64))

    assert [sweep(number) for number in range(16)] == best.rows[:, 0].tolist()


def test_a_sweep_is_the_network_of_one_hidden_layer() -> None:
    first = np.array([[1.0], [-1.0]], np.float32)
    last, wide = np.array([1.0, 2.0], np.float32), np.array([0.5], np.float32)
    sweep = Sweep(first, np.zeros(2, np.float32), last, wide, np.float32(0.1))

    # The arm x scores 1.3 x where it is positive, and 1.4 |x| where it is not.
    assert best_of(sweep, np.array([[1.0], [-1.0]], np.float32)) == 1
    assert best_of(sweep, np.array([[2.0], [-1.0]], np.float32)) == 0


def test_there_is_no_sweep_over_more_than_a_million_arms(contest: Contest) -> None:
    assert not sweeps_for(replace(contest, setup=replace(SMALL, arms=1_000_001)))
    assert not sweeps_for(replace(contest, setup=replace(SMALL, exploration="ucb")))


def test_a_row_without_a_ratio_says_so() -> None:
    assert replace(ROW, exhaustive_ratio=None).cells()[3] == "–"
    assert len(ROW.cells()) == len(bench.HEADINGS)


def test_the_figure_draws_the_sweep_where_it_was_timed() -> None:
    pytest.importorskip("matplotlib")
    rows = [ROW, replace(ROW, arms=10**7, exhaustive_ratio=None)]

    (axes,) = figure_of(rows).axes

    words = {text.get_text() for text in axes.texts}
    assert words == {"frozen, p50", "frozen, p99", "NumPy, all arms"}
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_without_sweeps_the_figure_draws_ours_alone() -> None:
    pytest.importorskip("matplotlib")

    (axes,) = figure_of([replace(ROW, exhaustive_ratio=None)]).axes

    assert {text.get_text() for text in axes.texts} == {"frozen, p50", "frozen, p99"}


# -- the command


@pytest.mark.usefixtures("measured")
def test_the_command_prints_rows_as_json() -> None:
    done = CliRunner().invoke(select_command, ["--arms", "20,10", "--json"])

    rows = json.loads(done.stdout)
    assert [row["arms"] for row in rows] == [10, 20]
    assert all(set(row) == COLUMNS for row in rows)


@pytest.mark.usefixtures("measured")
def test_the_command_prints_a_table() -> None:
    done = CliRunner().invoke(select_command, ["--arms", "10000", "--exploration", "ucb"])

    assert "One decision, ucb, 8 features, 32 hidden units" in done.stdout
    assert "10,000" in done.stdout


@pytest.mark.usefixtures("measured")
def test_the_command_writes_rows_and_a_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    done = CliRunner().invoke(select_command, ["--arms", "10", "--out", str(tmp_path / "out")])

    assert done.exit_code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"select.json", "select.svg", "select.png"}
    assert json.loads((tmp_path / "out" / "select.json").read_text())[0]["arms"] == 10


@pytest.mark.usefixtures("measured")
def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")

    done = CliRunner().invoke(select_command, ["--arms", "10", "--doc", str(page)])

    assert isinstance(done.exception, SettingError)
    assert page.read_text() == "nothing\n"
