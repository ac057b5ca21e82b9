"""A damaged folder of a frozen bandit, or one of another version, is never trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import same_decision, vectors_of
from little_frozen import arrays_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.arms.arrays import read_only
from fastbandit.errors import SnapshotError
from fastbandit.files import manifest as files

pytestmark = pytest.mark.usefixtures("little_training")

CONTEXTS = vectors_of(30, 4, seed=2)


@pytest.fixture(scope="module")
def bandit(little_training: None) -> Bandit:
    names = [f"arm {row}" for row in range(60)]
    bandit = Bandit(
        arms=vectors_of(60, 3), ids=names, context=4, reward="real", search="exhaustive", seed=5
    )
    bandit.update(contexts=CONTEXTS, arms=bandit.select(CONTEXTS).arms, rewards=CONTEXTS[:, 0])
    return bandit


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, and its hash, as a faithful writer would."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    change(manifest)
    path.write_text(json.dumps({**manifest, "sha256": files.digest_of(manifest)}))


# -- the arrays


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_a_flipped_byte_is_noticed(saved: Path, share: float) -> None:
    path = arrays_of(saved)
    payload = bytearray(path.read_bytes())
    payload[int(share * len(payload))] ^= 1
    path.write_bytes(payload)

    with pytest.raises(SnapshotError, match=f"{path}.*older copy"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_arrays_are_noticed(saved: Path, kept: float, verify: bool) -> None:
    path = arrays_of(saved)
    payload = path.read_bytes()
    path.write_bytes(payload[: int(kept * len(payload))])

    with pytest.raises(SnapshotError, match=f"has {int(kept * len(payload))} bytes"):
        FrozenBandit.load(saved, verify=verify)


@pytest.mark.parametrize("place", [0, 1, 7, 8, 9, 30])
def test_a_damaged_header_is_noticed_without_verifying(saved: Path, place: int) -> None:
    path = arrays_of(saved)
    payload = bytearray(path.read_bytes())
    payload[place] ^= 255
    path.write_bytes(payload)

    with pytest.raises(SnapshotError, match="cannot be read"):
        FrozenBandit.load(saved, verify=False)


def test_verifying_can_be_left_out(frozen: FrozenBandit, saved: Path) -> None:
    loaded = FrozenBandit.load(saved, verify=False)

    assert same_decision(loaded.select(CONTEXTS), frozen.select(CONTEXTS))


def test_missing_arrays_are_noticed(saved: Path) -> None:
    arrays_of(saved).unlink()

    with pytest.raises(SnapshotError, match=f"{saved}.*cannot be read"):
        FrozenBandit.load(saved)


# -- the manifest


@pytest.mark.parametrize("kept", [0, 1, 300])
def test_a_truncated_manifest_is_noticed(saved: Path, kept: int) -> None:
    path = saved / "manifest.json"
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(SnapshotError, match=f"manifest {path} cannot be read"):
        FrozenBandit.load(saved)


def test_an_edited_manifest_is_noticed(saved: Path) -> None:
    path = saved / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 5', '"seed": 6'))

    with pytest.raises(SnapshotError, match="not the one that was saved"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_folder_without_a_manifest_is_none(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(SnapshotError, match=f"found none in {tmp_path / folder}"):
        FrozenBandit.load(tmp_path / folder)


def test_a_newer_format_is_rejected_by_its_number(saved: Path) -> None:
    edit(saved, lambda manifest: manifest.update(format=99))

    with pytest.raises(SnapshotError, match=r"manifest\.json has format 99.*[Ii]nstall"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("kind", ["something else", 3, None, ["bandit"]])
def test_a_folder_of_another_kind_is_rejected(saved: Path, kind: Any) -> None:
    edit(saved, lambda manifest: manifest.update(kind=kind))

    with pytest.raises(SnapshotError, match="holds a "):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("missing", ["words", "rows", "first_more", "decisions", "arrays"])
def test_a_manifest_that_lacks_something_is_rejected(saved: Path, missing: str) -> None:
    edit(saved, lambda manifest: manifest.pop(missing))

    with pytest.raises(SnapshotError, match=f"{saved}.*'{missing}'"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("name", ["context", "reward", "seed", "reward_scale"])
def test_words_that_lack_something_are_rejected(saved: Path, name: str) -> None:
    edit(saved, lambda manifest: manifest["words"].pop(name))

    with pytest.raises(SnapshotError, match=f"does not fit together.*'{name}'"):
        FrozenBandit.load(saved)


def test_contexts_of_a_kind_that_is_not_known_are_named(saved: Path) -> None:
    edit(saved, lambda manifest: manifest["words"]["context"].update(kind="Sound"))

    with pytest.raises(SnapshotError, match="'Sound'"):
        FrozenBandit.load(saved)


# -- what does not fit


@pytest.mark.parametrize("name", ["model.spread", "arms.graph", "ids.starts", "more"])
def test_arrays_that_lack_one_are_rejected(
    frozen: FrozenBandit, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.pieces_of
    monkeypatch.setattr(
        files, "pieces_of", lambda arrays: write({k: arrays[k] for k in arrays if k != name})
    )
    frozen.save(tmp_path)

    with pytest.raises(SnapshotError, match=rf"{name.split('.')[-1]}.*Freeze the bandit again"):
        FrozenBandit.load(tmp_path)


def test_arrays_of_another_version_are_rejected(
    frozen: FrozenBandit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.pieces_of
    monkeypatch.setattr(
        files, "pieces_of", lambda arrays: write({**arrays, "model.waves": np.zeros(3)})
    )
    frozen.save(tmp_path)

    with pytest.raises(SnapshotError, match=r"'waves'.*Freeze the bandit again"):
        FrozenBandit.load(tmp_path)


@pytest.mark.parametrize("change", ["vectors", "order", "graph"])
def test_arrays_that_do_not_fit_one_another_are_rejected(
    frozen: FrozenBandit, tmp_path: Path, change: str
) -> None:
    model, catalogue, codec = frozen.parts
    cut = read_only(getattr(catalogue.arms, change)[:-1])
    shorter = replace(catalogue, arms=replace(catalogue.arms, **{change: cut}))
    FrozenBandit(model, shorter, codec).save(tmp_path)

    with pytest.raises(SnapshotError, match="fits the others"):
        FrozenBandit.load(tmp_path)
