"""A frozen bandit on disk goes on where it stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse
from fakes import same_decision, vectors_of
from little_frozen import arrays_of

import fastbandit
from fastbandit import Bandit, FeaturesAndIds, FrozenBandit, Ids, Sparse
from fastbandit.errors import SettingError, SnapshotError, UnknownArmError
from fastbandit.features.kinds import Dense
from fastbandit.files import manifest as manifest_files
from fastbandit.files.mapped import map_arrays
from fastbandit.runtime.kernel import decide
from fastbandit.runtime.parts import STORED_AS, FrozenModel

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(60, 3, seed=1)
CONTEXTS = vectors_of(30, 4, seed=2)
BAGS = scipy.sparse.random(30, 200, density=0.05, format="csr", random_state=1)
NAMES = [f"arm {row}" for row in range(60)]

CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "generator": ({"arms": ARMS, "context": 4}, CONTEXTS),
    "ascent": ({"arms": ARMS, "context": 4, "search": "ascent"}, CONTEXTS),
    "exhaustive": (
        {"arms": ARMS, "context": 4, "search": "exhaustive", "exploration": "greedy"},
        CONTEXTS,
    ),
    "last layer": ({"arms": ARMS, "context": 4, "posterior": "last-layer"}, CONTEXTS),
    "ucb": ({"arms": ARMS, "context": 4, "exploration": "ucb"}, CONTEXTS),
    "named": ({"arms": ARMS, "ids": NAMES, "context": 4}, CONTEXTS),
    "tuples as ids": ({"ids": [(row, "x") for row in range(60)], "context": 4}, CONTEXTS),
    "features and ids": ({"arms": ARMS, "context": 4, "embed_ids": True}, CONTEXTS),
    "sparse": ({"arms": BAGS, "context": Sparse(200)}, BAGS),
    "users": (
        {"arms": ARMS, "context": FeaturesAndIds(Dense(4), Ids(5))},
        (CONTEXTS, np.arange(30) % 5),
    ),
}


def trained(settings: dict[str, Any], contexts: Any) -> Bandit:
    bandit = Bandit(**{"reward": "real", "seed": 5, **settings})
    decision = bandit.select(contexts)
    rewards = np.linspace(-1, 1, len(decision))
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


@pytest.fixture(scope="module")
def bandit(little_training: None) -> Bandit:
    return trained(*CASES["named"])


def parts_of(frozen: FrozenBandit) -> list[Any]:
    """List what compiled code is given."""
    model, catalogue, _ = frozen.parts
    return [*model.table.arrays, *catalogue.table.arrays, *catalogue.all_eligible]


# -- the round trip


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_bandit_decides_exactly_as_the_saved_one(case: str, tmp_path: Path) -> None:
    settings, contexts = CASES[case]
    frozen = trained(settings, contexts).freeze()
    frozen.save(tmp_path)

    loaded = FrozenBandit.load(tmp_path)

    assert len(loaded) == len(frozen)
    assert loaded.version == frozen.version == 1
    assert same_decision(loaded.select(contexts, k=3), frozen.select(contexts, k=3))
    assert same_decision(
        loaded.select(contexts, explore=False), frozen.select(contexts, explore=False)
    )


def test_its_seeds_go_on_where_it_stopped(frozen: FrozenBandit, tmp_path: Path) -> None:
    frozen.select(CONTEXTS)
    frozen.select_one(CONTEXTS[0])
    frozen.save(tmp_path)

    loaded = FrozenBandit.load(tmp_path)

    assert loaded.select_one(CONTEXTS[1]) == frozen.select_one(CONTEXTS[1])


def test_loaded_arrays_are_to_compiled_code_what_frozen_ones_are(
    frozen: FrozenBandit, saved: Path
) -> None:
    loaded = FrozenBandit.load(saved)

    assert list(map(numba.typeof, parts_of(loaded))) == list(map(numba.typeof, parts_of(frozen)))
    frozen.discard_arms(["arm 3"])
    loaded.discard_arms(["arm 3"])
    assert list(map(numba.typeof, parts_of(loaded))) == list(map(numba.typeof, parts_of(frozen)))


def test_nothing_is_compiled_anew_for_a_loaded_bandit(frozen: FrozenBandit, saved: Path) -> None:
    frozen.select_one(CONTEXTS[0])
    compiled = len(decide.signatures)

    FrozenBandit.load(saved).select_one(CONTEXTS[0])

    assert len(decide.signatures) == compiled


def test_every_array_is_saved_under_the_name_of_its_field(saved: Path) -> None:
    with arrays_of(saved).open("rb") as file:
        names = set(map_arrays(file))

    named = {STORED_AS.get(field.name, field.name) for field in fields(FrozenModel)}
    of_weights = {"own_shared", "own_prior", "own_means", "own_deviations"}
    of_lists = {"own_rows", "own_parts"}
    assert {f"model.{name}" for name in named - of_weights - of_lists} <= names
    assert not {f"model.{name}" for name in of_weights | of_lists} & names


def test_the_first_request_of_a_process_needs_no_torch(frozen: FrozenBandit, saved: Path) -> None:
    code = (
        "import sys\n"
        "from fastbandit import FrozenBandit\n"
        f"loaded = FrozenBandit.load({str(saved)!r})\n"
        f"print(loaded.select_one({CONTEXTS[0].tolist()}, seed=7).arm)\n"
        "print('torch' in sys.modules)\n"
    )
    root = Path(fastbandit.__file__).parents[1]

    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)

    expected = frozen.select_one(CONTEXTS[0].tolist(), seed=7).arm
    assert done.stdout.splitlines() == [expected, "False"], done.stderr


# -- arms


def test_arms_that_came_and_went_are_saved(frozen: FrozenBandit, tmp_path: Path) -> None:
    frozen.add_arms(ARMS[:3] + 1, ids=["x", "y", ("z", 1)])
    frozen.discard_arms(["arm 7", "y"])
    frozen.save(tmp_path)

    loaded = FrozenBandit.load(tmp_path)

    assert len(loaded) == 61
    assert loaded.waiting == 3
    assert same_decision(loaded.select(CONTEXTS, k=61), frozen.select(CONTEXTS, k=61))
    assert loaded.select_one(CONTEXTS[0], eligible=[("z", 1)]).row == 62


def test_columns_are_saved(frozen: FrozenBandit, tmp_path: Path) -> None:
    columns = {"price": np.linspace(0, 1, 60), "new": [True, False] * 30, "in": list("abc") * 20}
    frozen.set_columns(columns)
    frozen.save(tmp_path)

    loaded = FrozenBandit.load(tmp_path)

    for predicate in ({"price": {"<": 0.3}, "new": True}, {"in": {"not": "b"}}):
        assert same_decision(
            loaded.select(CONTEXTS, k=9, eligible=predicate),
            frozen.select(CONTEXTS, k=9, eligible=predicate),
        )


def test_arms_of_a_loaded_bandit_come_and_go(saved: Path) -> None:
    loaded = FrozenBandit.load(saved)

    loaded.add_arms(ARMS[:1], ids=["new"])
    loaded.discard_arms(["arm 0"])
    loaded.index()

    assert loaded.select_one(CONTEXTS[0], eligible=["new"]).arm == "new"
    assert "arm 0" not in loaded.select(CONTEXTS[:1], k=60).arms[0]
    with pytest.raises(UnknownArmError, match="'other'"):
        loaded.select_one(CONTEXTS[0], eligible=["other"])


def test_ids_are_all_read_only_when_one_is_looked_for(saved: Path) -> None:
    loaded = FrozenBandit.load(saved)

    loaded.select_one(CONTEXTS[0])
    loaded.select(CONTEXTS, k=2)
    assert "table" not in vars(loaded.parts[1].ids)

    loaded.select_one(CONTEXTS[0], eligible=["arm 1", "arm 2"])
    assert "table" in vars(loaded.parts[1].ids)


def test_numbered_arms_have_no_ids_on_disk(tmp_path: Path) -> None:
    frozen = trained(*CASES["exhaustive"]).freeze()
    frozen.save(tmp_path)

    with arrays_of(tmp_path).open("rb") as file:
        assert not [name for name in map_arrays(file) if name.startswith("ids.")]
    assert FrozenBandit.load(tmp_path).parts[1].ids.is_numbered


def test_a_loaded_bandit_can_be_saved_into_its_own_folder(saved: Path) -> None:
    loaded = FrozenBandit.load(saved)

    loaded.save(saved)
    loaded.discard_arms(["arm 5"])
    loaded.save(saved)

    assert len(FrozenBandit.load(saved)) == 59
    assert len(list(saved.iterdir())) == 2


# -- other kinds


def test_a_snapshot_of_a_bandit_says_how_it_is_read(bandit: Bandit, tmp_path: Path) -> None:
    bandit.save(tmp_path)

    with pytest.raises(SnapshotError, match=r"holds a bandit\. Read it with Bandit\.load"):
        FrozenBandit.load(tmp_path)


def test_a_frozen_bandit_is_no_snapshot_of_a_bandit(saved: Path) -> None:
    with pytest.raises(SnapshotError, match=r"holds a frozen bandit\. Read it with Frozen"):
        Bandit.load(saved)


# -- saving is all or nothing


@pytest.mark.parametrize("step", ["arrays", "manifest"])
def test_a_save_that_stops_half_way_leaves_the_old_folder(
    frozen: FrozenBandit, saved: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.replace
    frozen.discard_arms(["arm 1"])

    def stop_at(source: Path, target: Path) -> None:
        if Path(target).name.startswith(step):
            raise OSError("the disk is full")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop_at)
        with pytest.raises(SnapshotError, match=r"disk is full\)\. Make room"):
            frozen.save(saved)

    assert len(FrozenBandit.load(saved)) == 60
    frozen.save(saved)
    assert len(FrozenBandit.load(saved)) == 59
    assert len(list(saved.iterdir())) == 2


def test_a_full_disk_leaves_nothing_behind(
    frozen: FrozenBandit, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(SnapshotError, match="no space left"):
        frozen.save(saved)
    assert len(list(saved.iterdir())) == 2


def test_one_who_loaded_the_old_folder_goes_on(frozen: FrozenBandit, saved: Path) -> None:
    old = FrozenBandit.load(saved)
    expected = frozen.select(CONTEXTS)
    frozen.discard_arms(["arm 1"])
    frozen.save(saved)

    assert same_decision(old.select(CONTEXTS), expected)
    assert old.select_one(CONTEXTS[0], eligible=["arm 1"]).arm == "arm 1"


def test_one_who_loads_while_it_is_saved_gets_the_new_folder(
    frozen: FrozenBandit, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = manifest_files.read_manifest
    frozen.discard_arms(["arm 1"])

    def read_then_save(path: Path, **settings: Any) -> dict[str, Any]:
        manifest = read(path, **settings)
        frozen.save(path.parent)
        return manifest

    monkeypatch.setattr(manifest_files, "read_manifest", read_then_save)

    assert len(FrozenBandit.load(saved)) == 59


@pytest.mark.parametrize("kind", ["frozen", "saved"])
def test_a_folder_that_holds_another_kind_is_left_alone(
    bandit: Bandit, frozen: FrozenBandit, tmp_path: Path, kind: str
) -> None:
    first, second = (frozen, bandit) if kind == "frozen" else (bandit, frozen)
    first.save(tmp_path)
    before = sorted(tmp_path.iterdir())

    with pytest.raises(SnapshotError, match="needs a folder of its own"):
        second.save(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    type(first).load(tmp_path)


def test_a_file_in_the_way_is_named(frozen: FrozenBandit, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(SnapshotError, match=f"{tmp_path / 'taken'}.*name another"):
        frozen.save(tmp_path / "taken")


def test_an_id_that_cannot_be_saved_is_named_and_nothing_written(
    frozen: FrozenBandit, tmp_path: Path
) -> None:
    frozen.add_arms(ARMS[:1], ids=[frozenset("ab")])

    with pytest.raises(SettingError, match="frozenset"):
        frozen.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
