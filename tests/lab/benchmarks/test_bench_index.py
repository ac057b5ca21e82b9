"""Ways from points to arms are compared; no test depends on how long they take."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.ranking import Tally
from lab.benchmarks import index as bench
from lab.benchmarks.index import (
    HEADINGS,
    Row,
    Way,
    index_command,
    index_of,
    land_by,
    measure_index,
    points_of,
    usual_of,
    ways_of,
)
from lab.benchmarks.reporting import Tick
from lab.benchmarks.setups import Contest, Setup, contest_of

ROW = Row(1000, "cells", 4, 3, 0.999, 200.0, 5.0, 8.0)


@pytest.fixture(scope="module")
def contest(little_training: None) -> Contest:
    return contest_of(Setup(arms=500, dim=3, rounds=60), contexts=20)


def test_the_usual_way_comes_first_then_that_without_hops_then_faiss() -> None:
    usual = GeneratorSearch(hops=5, beam=2)

    ways = ways_of(usual)

    assert ways[:2] == [Way(0, 5, 2), Way(0, 0, 1)]
    assert [way.name for way in ways[2:]] == ["faiss IVF, 16"] * 2 + ["faiss IVF, 32"] * 2
    assert ways[0].search(usual) == usual


def test_faiss_finds_the_nearest_arms(contest: Contest) -> None:
    vectors = contest.policy.arms.all().points[0]

    _, found = index_of(vectors).search(vectors[7:9].numpy(), 2)

    assert found[:, 0].tolist() == [7, 8]


def test_an_arm_found_by_faiss_is_the_best_of_those_near(contest: Contest) -> None:
    index = index_of(contest.policy.arms.all().points[0])
    search = replace(usual_of(contest), neighbours=500, hops=0)
    inputs, seeds = contest.inputs(10)

    scores, evaluations = land_by(index, contest, search, 10)

    best = contest.exhaustive.select(inputs, seeds=seeds).scores
    is_found = np.isclose(scores.numpy(), best.numpy(), atol=1e-5)
    assert is_found.mean() > 0.5
    assert (evaluations > 100).all()


def test_the_points_are_as_many_as_the_look_ups(contest: Contest) -> None:
    search = usual_of(contest)

    points = points_of(contest, search, 20, Tally(20))

    assert points.shape == (20, search.lookups, contest.policy.arms.dim)
    assert np.isfinite(points).all()


@pytest.mark.usefixtures("little_training")
def test_there_is_a_row_for_each_way() -> None:
    steps: list[str] = []

    rows = measure_index(Setup(arms=500, dim=3, rounds=60), seconds=0.0, tick=steps.append)

    assert [row.lookup for row in rows[:3]] == ["partitions", "partitions", "faiss IVF, 16"]
    assert all(row.quality <= 1.0001 and row.lookup_us > 0 for row in rows)
    assert rows[0].quality >= rows[1].quality
    assert rows[0].evaluations > rows[1].evaluations
    assert all(row.hops_us == 0 for row in rows if row.hops == 0)
    assert len(steps) == bench._STEPS


def test_a_row_has_a_cell_for_each_heading() -> None:
    assert len(ROW.cells()) == len(HEADINGS)
    assert ROW.cells()[2] == "4 × 3"
    assert ROW.cells()[-1] == "13"


def test_the_command_prints_the_rows_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(setup: Setup, *, seconds: float, tick: Tick) -> list[Row]:
        return [ROW, ROW]

    monkeypatch.setattr(bench, "measure_index", measure)

    done = CliRunner().invoke(index_command, ["--arms", "1,2", "--json"])
    shown = CliRunner().invoke(index_command, ["--arms", "1"])

    assert len(json.loads(done.stdout)) == 4
    assert "From 2 points to an arm" in shown.stdout
