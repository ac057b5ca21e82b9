"""A saved bandit goes on exactly where it stopped, and a damaged file is never trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fakes import same_decision, same_weights, vectors_of

import fastbandit
from fastbandit import Bandit, Box, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.features.kinds import Dense
from fastbandit.files.manifest import digest_of

pytestmark = pytest.mark.usefixtures("little_training")

ARMS = vectors_of(50, 3, seed=1)
CONTEXTS = vectors_of(30, 4, seed=2)
BAGS = scipy.sparse.random(30, 200, density=0.05, format="csr", random_state=1)

CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "ts": ({"arms": ARMS, "context": 4}, CONTEXTS),
    "ucb": ({"arms": ARMS, "context": 4, "exploration": "ucb"}, CONTEXTS),
    "last layer": ({"arms": ARMS, "context": 4, "posterior": "last-layer"}, CONTEXTS),
    "greedy exhaustive": (
        {"arms": ARMS, "context": 4, "exploration": "greedy", "search": "exhaustive"},
        CONTEXTS,
    ),
    "ascent": ({"arms": ARMS, "context": 4, "search": "ascent"}, CONTEXTS),
    "box": ({"arms": Box((0.0, 0.0), (1.0, 9.0), cover=64), "context": 4}, CONTEXTS),
    "ids": ({"ids": [f"song {i}" for i in range(50)], "context": 4}, CONTEXTS),
    "tuples as ids": ({"ids": [(i, "x") for i in range(50)], "context": 4}, CONTEXTS),
    "features and ids": ({"arms": ARMS, "context": 4, "embed_ids": True}, CONTEXTS),
    "sparse": ({"arms": BAGS, "context": Sparse(200)}, BAGS),
    "image": (
        {"arms": ARMS, "context": Image(8, 9)},
        np.random.default_rng(0).random((30, 8, 9)),
    ),
    "users": (
        {"arms": ARMS, "context": FeaturesAndIds(Dense(4), Ids(5))},
        (CONTEXTS, np.arange(30) % 5),
    ),
}


def made(settings: dict[str, Any]) -> Bandit:
    return Bandit(**{"reward": "real", "seed": 5, **settings})


def teach(bandit: Bandit, contexts: Any) -> None:
    decision = bandit.select(contexts)
    rewards = np.linspace(-1, 1, len(decision))
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder that holds a bandit after one update."""
    bandit = made({"arms": ARMS, "context": 4, "search": "exhaustive"})
    teach(bandit, CONTEXTS)
    bandit.save(tmp_path / "bandit")
    return tmp_path / "bandit"


def arrays_of(folder: Path) -> Path:
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def edit(folder: Path, *, rehashed: bool = True, **changes: Any) -> None:
    """Change what a manifest says, and its hash, as a faithful writer would."""
    path = folder / "manifest.json"
    manifest = {**json.loads(path.read_text()), **changes}
    if rehashed:
        del manifest["sha256"]
        manifest["sha256"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))


# -- the round trip


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_bandit_decides_and_learns_exactly_as_the_saved_one(
    case: str, tmp_path: Path
) -> None:
    settings, contexts = CASES[case]
    bandit = made(settings)
    teach(bandit, contexts)
    bandit.save(tmp_path)

    loaded = Bandit.load(tmp_path)

    assert same_decision(loaded.select(contexts, k=2), bandit.select(contexts, k=2))
    for either in (loaded, bandit):
        teach(either, contexts)
    assert same_weights(loaded, bandit)
    assert same_decision(loaded.select(contexts), bandit.select(contexts))


@pytest.mark.parametrize("case", ["ts", "box", "ids"])
def test_a_bandit_that_has_learned_nothing_can_be_saved(case: str, tmp_path: Path) -> None:
    settings, contexts = CASES[case]
    bandit = made(settings)
    bandit.select(contexts)
    bandit.save(tmp_path)

    loaded = Bandit.load(tmp_path)

    decision = loaded.select(contexts)
    assert decision.uniform
    assert same_decision(decision, bandit.select(contexts))


@pytest.mark.parametrize(
    "case",
    [
        "ts",
        "ids",
        "features and ids",
    ],
)
def test_arms_that_came_and_went_are_saved(case: str, tmp_path: Path) -> None:
    settings, contexts = CASES[case]
    bandit = made(settings)
    teach(bandit, contexts)
    names = ["fresh", "fresher"]
    bandit.add_arms(None if case == "ids" else ARMS[:2], ids=names)
    bandit.discard_arms(["fresh"])
    bandit.save(tmp_path)

    loaded = Bandit.load(tmp_path)

    assert len(loaded) == len(bandit) == 51
    assert same_decision(loaded.select(contexts, k=4), bandit.select(contexts, k=4))
    for either in (loaded, bandit):
        teach(either, contexts)
    assert same_weights(loaded, bandit)


def test_an_id_that_was_removed_and_added_again_is_saved(tmp_path: Path) -> None:
    bandit = made({"arms": ARMS[:3], "ids": ["a", "b", "c"], "context": 4})
    bandit.discard_arms(["b"])
    bandit.add_arms(ARMS[:1], ids=["b"])
    bandit.save(tmp_path)

    assert Bandit.load(tmp_path).select(CONTEXTS[:1], eligible=["b"]).rows.tolist() == [[3]]


def test_a_bandit_can_be_saved_over_itself_again_and_again(tmp_path: Path) -> None:
    bandit = made({"arms": ARMS, "context": 4, "search": "exhaustive"})
    for _ in range(2):
        teach(bandit, CONTEXTS)
        bandit.save(tmp_path)

    assert len(list(tmp_path.iterdir())) == 2
    assert Bandit.load(tmp_path).version == 2


# -- files that cannot be trusted


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_a_flipped_byte_in_the_arrays_is_noticed(saved: Path, share: float) -> None:
    path = arrays_of(saved)
    payload = bytearray(path.read_bytes())
    payload[int(share * len(payload))] ^= 1
    path.write_bytes(payload)

    with pytest.raises(SnapshotError, match=f"{path}.*older copy"):
        Bandit.load(saved)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_arrays_are_noticed(saved: Path, kept: float) -> None:
    path = arrays_of(saved)
    payload = path.read_bytes()
    path.write_bytes(payload[: int(kept * len(payload))])

    with pytest.raises(SnapshotError, match=f"has {int(kept * len(payload))} bytes"):
        Bandit.load(saved)


def test_missing_arrays_are_noticed(saved: Path) -> None:
    arrays_of(saved).unlink()

    with pytest.raises(SnapshotError, match=f"{saved}.*cannot be read"):
        Bandit.load(saved)


@pytest.mark.parametrize("kept", [0, 1, 300])
def test_a_truncated_manifest_is_noticed(saved: Path, kept: int) -> None:
    path = saved / "manifest.json"
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(SnapshotError, match=f"manifest {path} cannot be read"):
        Bandit.load(saved)


def test_a_manifest_that_is_not_text_is_noticed(saved: Path) -> None:
    (saved / "manifest.json").write_bytes(b"\xff\xfe\x00\x80")

    with pytest.raises(SnapshotError, match="cannot be read"):
        Bandit.load(saved)


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}"])
def test_a_manifest_of_another_shape_is_refused(saved: Path, text: str) -> None:
    (saved / "manifest.json").write_text(text)

    with pytest.raises(SnapshotError, match="format None"):
        Bandit.load(saved)


def test_a_folder_without_a_manifest_is_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=f"found none in {tmp_path}"):
        Bandit.load(tmp_path)


def test_a_newer_format_is_refused_by_its_number(saved: Path) -> None:
    edit(saved, format=99)

    with pytest.raises(SnapshotError, match=r"manifest\.json has format 99.*[Ii]nstall"):
        Bandit.load(saved)


def test_a_part_of_another_version_is_named(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["blueprint"]["search"] = {"part": "QuantumSearch", "qubits": 3}
    edit(saved, blueprint=manifest["blueprint"])

    with pytest.raises(SnapshotError, match="'QuantumSearch'"):
        Bandit.load(saved)


@pytest.mark.parametrize("missing", ["blueprint", "version", "decisions", "arrays", "ids"])
def test_a_manifest_that_lacks_something_is_refused(saved: Path, missing: str) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    del manifest[missing]
    (saved / "manifest.json").write_text(json.dumps(manifest))

    with pytest.raises(SnapshotError, match=str(saved)):
        Bandit.load(saved)


def test_arrays_of_another_bandit_are_refused(saved: Path, tmp_path: Path) -> None:
    other = made({"arms": ARMS[:, :2], "context": 4, "search": "exhaustive"})
    teach(other, CONTEXTS)
    other.save(tmp_path / "other")
    foreign = json.loads((tmp_path / "other" / "manifest.json").read_text())["arrays"]
    path = arrays_of(tmp_path / "other")
    path.rename(saved / path.name)
    edit(saved, arrays=foreign)

    with pytest.raises(SnapshotError, match="does not fit together"):
        Bandit.load(saved)


@pytest.mark.parametrize("sizes", [{"hidden": [60_000, 7_500]}, {"embedding": 20_000}])
def test_a_model_that_is_far_larger_than_its_arrays_is_refused_before_it_is_built(
    saved: Path, sizes: dict[str, Any]
) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["blueprint"]["network"] |= sizes
    edit(saved, blueprint=manifest["blueprint"])

    with pytest.raises(SnapshotError, match=r"a model of [\d,]{11,} numbers, and 65,536 in all"):
        Bandit.load(saved)


def test_a_changed_number_in_the_manifest_is_noticed(saved: Path) -> None:
    edit(saved, rehashed=False, version=7)

    with pytest.raises(SnapshotError):
        Bandit.load(saved)


# -- saving is all or nothing


@pytest.mark.parametrize("step", ["arrays", "manifest"])
def test_a_save_that_stops_half_way_leaves_the_old_snapshot(
    saved: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, expected = Bandit.load(saved), Bandit.load(saved)
    teach(bandit, CONTEXTS)
    replace = os.replace

    def stop_at(source: Path, target: Path) -> None:
        if Path(target).name.startswith(step):
            raise OSError("the disk is full")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop_at)
        with pytest.raises(OSError, match="disk is full"):
            bandit.save(saved)

    assert same_decision(Bandit.load(saved).select(CONTEXTS), expected.select(CONTEXTS))
    bandit.save(saved)
    assert Bandit.load(saved).version == 2


def test_a_part_of_your_own_cannot_be_saved_and_is_named(tmp_path: Path) -> None:
    class Mine:
        def best(self, *args: Any, **settings: Any) -> None: ...

    bandit = made({"arms": ARMS, "context": 4, "search": Mine()})

    with pytest.raises(SettingError, match="got a Mine"):
        bandit.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_id_that_json_cannot_hold_is_named(tmp_path: Path) -> None:
    bandit = made({"ids": [frozenset("ab"), "c"], "context": 4})

    with pytest.raises(SettingError, match="frozenset"):
        bandit.save(tmp_path / "new")


def test_nothing_in_the_package_pickles() -> None:
    sources = Path(fastbandit.__file__).parent.rglob("*.py")

    for source in sources:
        text = source.read_text(encoding="utf-8")
        for word in ("import pickle", "pickle.", "torch.load", "torch.save", "joblib"):
            assert word not in text.replace("no pickle.", ""), f"{source} uses {word}"
