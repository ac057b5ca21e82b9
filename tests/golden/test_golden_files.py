"""Files written before are read as they were, and what is read from them goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_compare import as_json, first_difference
from golden_files import (
    CONTEXTS,
    DIM,
    EXPECTED,
    FILES,
    SEEDS,
    Reading,
    features_of,
    reading_of_bandit,
    reading_of_frozen,
    reading_of_log,
    reading_of_service_log,
    reading_of_store,
    service_config,
)

from fastbandit import Bandit, FrozenBandit
from fastbandit.learning.learner import Learner
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Outcome, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog

WANTED = json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of all files."""
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def assert_read(wanted: Reading, got: Reading) -> None:
    different = first_difference(wanted, as_json(got))
    assert not different, different


def content_of(folder: Path) -> tuple[dict[str, bytes], Reading]:
    """Give the arrays of a folder, and its manifest but for the version of the package."""
    arrays = {path.name: path.read_bytes() for path in folder.glob("arrays*")}
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    told = {key: value for key, value in manifest.items() if key not in ("fastbandit", "sha256")}
    return arrays, told


# -- reading

READERS: dict[str, tuple[Callable[[Path], Reading], str]] = {
    "bandit": (reading_of_bandit, "bandit"),
    "frozen": (reading_of_frozen, "frozen"),
    "frozen-int8": (reading_of_frozen, "frozen-int8"),
    "log": (reading_of_log, "log/events.db"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_as_it_was(files: Path, name: str) -> None:
    read, place = READERS[name]
    assert_read(WANTED[name], read(files / place))


def test_the_versions_of_a_service_are_read_as_they_were(files: Path) -> None:
    wanted = {key: value for key, value in WANTED["service"].items() if key != "log"}
    assert_read(wanted, reading_of_store(files / "service" / "snapshots"))


def test_the_log_of_a_service_is_read_as_it_was(files: Path) -> None:
    got = reading_of_service_log(files / "service" / "events.db")
    assert_read(WANTED["service"]["log"], got)


# -- writing again


def test_a_bandit_of_before_is_written_with_the_same_arrays_and_parts(
    files: Path, tmp_path: Path
) -> None:
    before = Bandit.load(files / "bandit")
    before.save(tmp_path / "again")
    assert content_of(tmp_path / "again")[0] == content_of(FILES / "bandit")[0]
    assert Bandit.load(tmp_path / "again").blueprint == before.blueprint


@pytest.mark.parametrize("name", ["frozen", "frozen-int8"])
def test_a_frozen_bandit_is_written_as_it_was(files: Path, tmp_path: Path, name: str) -> None:
    FrozenBandit.load(files / name).save(tmp_path / "again")
    assert content_of(tmp_path / "again") == content_of(FILES / name)


# -- going on


def test_a_bandit_goes_on(files: Path) -> None:
    bandit = Bandit.load(files / "bandit", progress=False)
    taken = bandit.select(CONTEXTS)
    bandit.update(contexts=CONTEXTS, arms=taken.arms, rewards=CONTEXTS[:, 0])
    bandit.save(files / "bandit")
    again = Bandit.load(files / "bandit", progress=False)
    chosen = again.select(CONTEXTS, seeds=SEEDS)
    assert again.version == WANTED["bandit"]["version"] + 1
    assert np.isfinite(chosen.scores).all()
    assert chosen.arms == bandit.select(CONTEXTS, seeds=SEEDS).arms
    assert chosen.arms == again.freeze().select(CONTEXTS, seeds=SEEDS).arms


def test_what_a_bandit_freezes_to_decides_as_the_frozen_one(files: Path) -> None:
    frozen = Bandit.load(files / "bandit").freeze()
    chosen = frozen.select(CONTEXTS, seeds=SEEDS)
    assert as_json(chosen.arms) == WANTED["frozen"]["one arm"]["arms"]


@pytest.mark.parametrize("name", ["frozen", "frozen-int8"])
def test_a_frozen_bandit_goes_on(files: Path, name: str) -> None:
    frozen = FrozenBandit.load(files / name)
    frozen.add_arms(features_of(1, seed=5), ids=["late"], columns={"price": [1], "colour": ["red"]})
    frozen.discard_arms(["arm-1"])
    frozen.save(files / name)
    again = FrozenBandit.load(files / name)
    assert len(again) == WANTED[name]["arms"]
    assert again.select(CONTEXTS, eligible=["late"], seeds=SEEDS).arms == ["late"] * len(CONTEXTS)
    decided = frozen.select(CONTEXTS, seeds=SEEDS)
    assert again.select(CONTEXTS, seeds=SEEDS).arms == decided.arms


def test_a_store_takes_a_next_version_and_goes_back(files: Path) -> None:
    store = SnapshotStore(files / "service" / "snapshots")
    store.recover()
    parent = store.current()
    assert parent is not None
    bandit = Bandit.load(parent.bandit, progress=False)
    with store.drafting() as draft:
        bandit.save(draft / "bandit")
        bandit.freeze().save(draft / "frozen")
        cut = replace(parent.cut, seq=parent.cut.seq + 1)
        store.publish(draft, {"arms": len(bandit)}, version=4, parent=parent, cut=cut)
    assert [one.version for one in store.list()] == [0, 1, 2, 4]
    assert store.rollback() == parent
    assert [report["version"] for report in store.refused()] == [3, 4]
    assert store.next_version() == 5


def test_a_learner_goes_on_where_it_stopped(files: Path) -> None:
    config = service_config(files / "service")
    log = SqliteLog(files / "service" / "events.db")
    for number in range(40):
        made = DecisionMade(f"n{number}", [0.5] * DIM, ["new"], [0.0], number, 2, 0, 10**7)
        log.append([made, RewardCame(made.id, 0.25)])
    log.close()
    learner = Learner(config)
    learner.start()
    step = learner.step()
    assert (step.did, step.version) == ("published", 4), step
    current = SnapshotStore(files / "service" / "snapshots").current()
    assert current is not None
    assert current.parent == 2
    assert current.cut.interactions > WANTED["service"]["whole"][2]["cut"]["pairs"]


def test_a_log_goes_on(files: Path) -> None:
    log = SqliteLog(files / "log" / "events.db")
    last, known = log.last, log.decision("d5")
    assert known is not None
    outcomes = log.append([known, RewardCame("d5", 1.0), RewardCame("d1", 1.0, 7)])
    assert outcomes == [
        Outcome(known.seq, "repeated"),
        Outcome(last + 2, "late"),
        Outcome(last + 3, "duplicate"),
    ]
    log.append([ArmsChanged([Arm("z", [1.0, 1.0, 1.0])])])
    log.close()
    again = SqliteLog(files / "log" / "events.db", is_reader=True)
    assert again.last_change() == again.last == last + 4
    again.close()
