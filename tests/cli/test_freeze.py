"""The command `freeze`: a folder that decides as the saved bandit does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, FeaturesAndIds, FrozenBandit, Ids, Sparse
from fastbandit.cli import main as cli
from fastbandit.cli.freeze import check_alike, draw_contexts, freeze_folder
from fastbandit.cluster.engine import SerialEngine
from fastbandit.errors import SnapshotError
from fastbandit.features.kinds import Dense


def run(*args: str) -> int:
    """Run a command in this process and give its exit status."""
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def learned(little_training: None) -> Bandit:
    bandit = Bandit(arms=vectors_of(80, 3), context=4, reward="real")
    contexts = vectors_of(30, 4, seed=1)
    decision = bandit.select(contexts)
    bandit.update(contexts=contexts, arms=decision.arms, rewards=contexts[:, 0])
    return bandit


@pytest.fixture
def snapshot(learned: Bandit, tmp_path: Path) -> Path:
    learned.save(tmp_path / "mine")
    return tmp_path / "mine"


def test_freeze_writes_a_folder_beside_the_snapshot_and_says_its_size(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("freeze", str(snapshot))

    printed = capsys.readouterr()
    folder = snapshot.with_name("mine-frozen")
    assert (status, printed.err) == (0, "")
    assert all(words in printed.out for words in ("80 arms", "bytes an arm", str(folder)))
    assert len(FrozenBandit.load(folder)) == 80
    assert len(Bandit.load(snapshot)) == 80


def test_workers_index_arms_to_the_last_bit(snapshot: Path, tmp_path: Path) -> None:
    freeze_folder(snapshot, tmp_path / "here")
    freeze_folder(snapshot, tmp_path / "there", engine=SerialEngine(3))

    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    here, there = (
        [(tmp_path / one / name).read_bytes() for name in names] for one in ("here", "there")
    )
    assert here == there


def test_workers_need_an_engine(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("freeze", str(snapshot), "--workers", "2") == 2

    assert "need an engine" in capsys.readouterr().err


def test_freeze_prints_json_and_takes_another_folder(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("freeze", str(snapshot), "--out", str(tmp_path / "there"), "--json")

    told = json.loads(capsys.readouterr().out)
    assert status == 0
    assert told["folder"] == str(tmp_path / "there")
    assert (told["arms"], told["version"]) == (80, 1)
    assert told["same"] == told["checked"] > 0
    assert all(told[name] > 0 for name in ("bytes_per_arm", "freeze_s", "save_s", "load_s"))
    assert FrozenBandit.load(tmp_path / "there").version == 1


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("missing", "found none in"),
        ("itself", "needs a folder of its own"),
        ("a file", "name another"),
    ],
)
def test_what_cannot_be_frozen_is_one_line(
    case: str, words: str, snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    args = {
        "missing": (str(tmp_path / "nowhere"),),
        "itself": (str(snapshot), "--out", str(snapshot)),
        "a file": (str(snapshot), "--out", str(tmp_path / "taken")),
    }

    status = run("freeze", *args[case])

    said = capsys.readouterr().err
    assert status == 2
    assert words in said
    assert said.count("\n") == 1
    assert Bandit.load(snapshot).version == 1


def test_a_frozen_bandit_that_decides_differently_is_rejected(
    learned: Bandit, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = learned.freeze()
    other.discard_arms(range(1, 80))
    monkeypatch.setattr(Bandit, "freeze", lambda self, **settings: other)

    assert run("freeze", str(snapshot), "--out", str(tmp_path / "there")) == 2
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    "kind", [Dense(3), Sparse(20), Ids(4), FeaturesAndIds(Dense(2), Ids(4))], ids=repr
)
def test_contexts_of_any_kind_can_be_drawn(kind: Any) -> None:
    contexts = draw_contexts(kind, 5, np.random.default_rng(0))

    assert len(kind.read(contexts, what="contexts")) == 5


@pytest.mark.parametrize("name", ["snapshot.json", "current.json", "snapshots"])
def test_a_folder_of_a_service_is_frozen_already(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(SnapshotError, match="frozen already"):
        freeze_folder(tmp_path, tmp_path / "out")


def test_another_arm_that_scores_the_same_is_no_difference(learned: Bandit) -> None:
    decision = learned.select(vectors_of(3, 4))

    check_alike(decision, replace(decision, rows=decision.rows + 1))
