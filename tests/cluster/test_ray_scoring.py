"""Scoring and suites on Ray give what they give here."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import vectors_of
from little_files import bytes_of, frozen_folder, load, read_scores, score, write_files

from fastbandit import Bandit
from fastbandit.cluster.engine import Engine, make_engine
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.noise.philox import decision_seeds
from lab.experiments.results import Key, read_results
from lab.experiments.suite import run_suite

pytest.importorskip("ray")


@pytest.fixture(scope="session")  # a Ray that runs is used: there is one for all files
def engine() -> Iterator[Engine]:
    engine = make_engine("ray", workers=2)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def frozen(little_training: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frozen_folder(tmp_path_factory.mktemp("frozen"), arms=vectors_of(40, 3))


def test_ray_changes_no_byte(engine: Engine, frozen: Path, tmp_path: Path) -> None:
    files = write_files(tmp_path / "contexts")
    score(frozen, files, tmp_path / "here", rows=7)

    scored = score(frozen, files, tmp_path / "ray", rows=7, engine=engine)

    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "here")
    assert (scored.workers, scored.repeated) == (2, 0)


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_actors_read_contexts_by_name(
    name: str, little_training: None, engine: Engine, tmp_path: Path
) -> None:
    visits = pd.DataFrame({"age": range(30), "city": ["Oslo", "Rome", "Köln"] * 10})
    bandit = Bandit(arms=vectors_of(40, 3), context=visits, reward="real", seed=3)
    bandit.update(contexts=visits, arms=bandit.select(visits).arms, rewards=visits["age"])
    bandit.freeze().save(tmp_path / "frozen")
    turned = visits[["city", "age"]].assign(user="a")
    write = partial(turned.to_csv, index=False) if name.endswith("csv") else turned.to_parquet
    write(tmp_path / name)

    score(tmp_path / "frozen", tmp_path / name, tmp_path / "ray", rows=7, engine=engine)

    expected = load(tmp_path / "frozen").select(visits, seeds=decision_seeds(0, 0, 30))
    assert read_scores(tmp_path / "ray")["arm"] == expected.arms


def test_an_actor_killed_midway_changes_no_byte(
    engine: Engine, frozen: Path, tmp_path: Path
) -> None:
    files = write_files(tmp_path / "contexts")
    score(frozen, files, tmp_path / "here", rows=2)
    killed: list[int] = []

    def kill_one(done: int, steps: int, doing: str) -> None:
        if doing == "Scoring" and done >= 3 and not killed:
            killed.append(actors()[0])
            os.kill(killed[0], signal.SIGKILL)

    scored = score(frozen, files, tmp_path / "ray", rows=2, engine=engine, progress=kill_one)

    assert killed
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "here")
    assert scored.repeated <= 2


def actors() -> list[int]:
    """List the processes of our actors: children of the raylet that this process started."""
    raylets = [pid for pid, name in children_of(os.getpid()) if "raylet" in name]
    return [pid for raylet in raylets for pid, name in children_of(raylet) if "_Actor" in name]


def children_of(process: int) -> list[tuple[int, str]]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended just now
            if int(stat.read_text().rpartition(") ")[2].split()[1]) == process:
                name = (stat.parent / "cmdline").read_text(errors="replace")
                found.append((int(stat.parent.name), name))
    return found


def test_a_suite_on_ray_has_the_results_of_one_here(engine: Engine, tmp_path: Path) -> None:
    keys = [
        Key("h2", {"arms": 50}, "Random", "default", rounds=30, batch=20, seed=seed)
        for seed in (0, 1)
    ]

    run_suite(keys, tmp_path / "here", engine=LocalEngine(1))
    results, failed = run_suite(keys, tmp_path / "ray", engine=engine)

    def earned(folder: Path) -> list[Any]:
        return [result["earned"] for result in read_results(folder)]

    assert (len(results), failed) == (2, [])
    assert earned(tmp_path / "ray") == earned(tmp_path / "here")
