"""Arrays that compiled code would follow out of bounds are refused as a folder is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of
from hardly_trained import CONTEXT_KINDS
from little_frozen import CONTEXTS, arrays_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import read_arrays, write_arrays

pytestmark = pytest.mark.usefixtures("hardly_any_training")
NOTES = ("fastbandit", "kind", "format", "arrays")


@pytest.fixture(scope="module")
def bandit(hardly_any_training: None) -> Bandit:
    names = [f"arm {row}" for row in range(60)]
    columns = {"colour": ["red", "blue"] * 30}
    parts = {"posterior": "last-layer", "search": "generator"}
    arms: dict[str, Any] = {"arms": vectors_of(60, 3), "ids": names, "columns": columns}
    bandit = Bandit(**arms, context=4, reward="real", **parts)
    bandit.update(contexts=CONTEXTS, arms=bandit.select(CONTEXTS).arms, rewards=CONTEXTS[:, 0])
    return bandit


def rewrite(folder: Path, array: str = "", change: Any = None, **notes: Any) -> None:
    """Change an array or notes of a folder, with hashes made anew."""
    manifest, arrays = read_arrays(folder, kind="frozen bandit", format=1)
    arrays = {name: one.copy() for name, one in arrays.items()}
    if array:
        arrays[array] = change(arrays[array])
    held = {name: value for name, value in manifest.items() if name not in NOTES}
    write_arrays(folder, arrays, {**held, **notes}, kind="frozen bandit", format=1)


def with_first(value: Any) -> Any:
    def change(array: Any) -> Any:
        array.flat[0] = value
        return array

    return change


CHANGES: dict[str, tuple[str, Any]] = {
    "an arm without a row": ("arms.order", with_first(60)),
    "a row twice": ("arms.order", with_first(1)),
    "a neighbour that is none": ("arms.graph", with_first(60)),
    "a neighbour before the first": ("arms.graph", with_first(-2)),
    "an outermost arm that is none": ("arms.far", with_first(10**6)),
    "centres of other columns": ("arms.centres", lambda array: array[:, :4]),
    "centres of more partitions": ("arms.centres", lambda array: np.concatenate([array, array])),
    "vectors that are not numbers": ("arms.vectors", with_first(np.nan)),
    "vectors of another kind": ("arms.vectors", lambda array: array.astype(np.float64)),
    "ids that begin anywhere": ("ids.starts", with_first(2)),
    "ids that end before they begin": ("ids.starts", lambda array: array[::-1].copy()),
    "ids beyond the text": ("ids.starts", lambda array: array * 2),
    "a text that is none": ("columns.colour", with_first(2)),
    "a column of other rows": ("columns.colour", lambda array: array[:-1]),
    "steps without an end": ("model.counts", lambda array: array * 0 + 2**40),
    "a posterior that is none": (
        "model.counts",
        lambda array: array + np.eye(12, dtype=int)[1] * 9,
    ),
    "fewer settings": ("model.counts", lambda array: array[:-1]),
    "a hidden layer of other units": ("model.hidden", lambda array: array + 1),
    "first weights of other inputs": ("model.first_weights", lambda array: array[:-1]),
    "weights that are not numbers": ("model.last_weights", with_first(np.inf)),
    "an encoder of other columns": ("model.encoder", lambda array: array[:, :-1]),
    "a box of other columns": ("model.box", lambda array: array[:, :4]),
    "bounds of other columns": ("model.bounds", lambda array: array[:, :1]),
    "a spread that is not square": ("model.spread", lambda array: array[:, :-1]),
    "a generator of other points": ("model.layer_3", lambda array: array[:, :-3]),
    "a generator of other inputs": ("model.layer_1", lambda array: array[4:]),
    "an inverse of other columns": ("words.inverse", lambda array: array[:, :-1]),
    "a matrix of other features": ("words.context.matrix", lambda array: array[:, :-1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_points_elsewhere_is_refused(saved: Path, change: str) -> None:
    rewrite(saved, *CHANGES[change])

    with pytest.raises(SnapshotError, match="does not fit together"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("notes", [{"rows": 10**15}, {"rows": 61}, {"first_more": -1}])
def test_rows_that_no_arm_has_are_refused_before_there_is_room_for_them(
    saved: Path, notes: dict[str, Any]
) -> None:
    rewrite(saved, **notes)

    with pytest.raises(SnapshotError, match=r"rows for 60 arms|rows and 60 ids"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("decisions", [-1, 2**63, "x", None])
def test_decisions_need_to_be_counted(saved: Path, decisions: Any) -> None:
    rewrite(saved, decisions=decisions)

    with pytest.raises(SnapshotError, match="does not fit together"):
        FrozenBandit.load(saved)


@pytest.mark.parametrize("kind", CONTEXT_KINDS)
def test_contexts_of_every_kind_pass(kind: str, tmp_path: Path) -> None:
    seen, contexts = CONTEXT_KINDS[kind]
    bandit = Bandit(arms=vectors_of(60, 3), context=seen, reward="real")
    bandit.update(contexts=contexts, arms=[0, 1] * 12, rewards=np.arange(24) / 24)
    bandit.freeze().save(tmp_path)

    assert len(FrozenBandit.load(tmp_path)) == 60


@pytest.mark.parametrize("search", ["exhaustive", "ascent", "generator"])
@pytest.mark.parametrize(
    ("posterior", "exploration"),
    [("dropout", "ts"), ("bootstrap", "ts"), ("gradient", "ucb"), ("last-layer", "greedy")],
)
def test_models_of_every_kind_pass(
    posterior: str, exploration: str, search: str, tmp_path: Path
) -> None:
    terms: dict[str, Any] = {"posterior": posterior, "exploration": exploration, "search": search}
    bandit = Bandit(arms=vectors_of(60, 3), context=4, reward="real", **terms)
    bandit.update(contexts=CONTEXTS, arms=[0, 1, 2] * 10, rewards=CONTEXTS[:, 0])
    if (posterior, search) == ("gradient", "exhaustive"):
        pytest.skip("it cannot be frozen")
    bandit.freeze().save(tmp_path)

    assert len(FrozenBandit.load(tmp_path)) == 60


def test_one_that_grew_and_lost_arms_passes(bandit: Bandit, tmp_path: Path) -> None:
    frozen = bandit.freeze()
    frozen.add_arms(vectors_of(2, 3), ids=["a", "b"], columns={"colour": ["red", "green"]})
    frozen.discard_arms(["arm 3", "a"])
    frozen.save(tmp_path)
    assert len(FrozenBandit.load(tmp_path)) == 60

    frozen.index()
    frozen.save(tmp_path)
    assert len(FrozenBandit.load(tmp_path)) == 60
    assert json.loads((tmp_path / "manifest.json").read_text())["rows"] == 62
    assert arrays_of(tmp_path).exists()
