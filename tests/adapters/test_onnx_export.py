"""ONNX Runtime and faiss alone choose the arms that fastbandit chooses by the same steps."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fakes import seeds_of, vectors_of
from numpy.typing import NDArray

from fastbandit import (
    Bandit,
    Exhaustive,
    Schema,
)
from fastbandit.adapters import onnx_export
from fastbandit.adapters.onnx_export import check_onnx, export_onnx, export_snapshot
from fastbandit.arms.own_lists import BANK
from fastbandit.cli.export import command
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.noise.philox import Stream, normals_at, uniforms
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.arm_generator import generator_inputs
from fastbandit.search.generator import FittedGenerator
from fastbandit.search.gradient_ascent import best_points, climb
from fastbandit.search.ranking import Tally
from fastbandit.settings.files import Settings

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'fastbandit[onnx]'")

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
COUNT, NEAR = 24, 128
CONTEXTS = vectors_of(COUNT, 4, seed=2)
ARMS = vectors_of(400, 5, seed=1)
SEEDS = seeds_of(COUNT)
"""Bandits whose arms have weights of their own."""

COMMON = {"arms": ARMS, "context": 4, "reward": "real", "seed": 3, "search": "generator"}


def trained(contexts: Any = CONTEXTS, **changes: Any) -> Bandit:
    if isinstance(changes.get("preset"), dict):
        changes["preset"] = Settings(sections={"network": changes["preset"]})
    bandit = Bandit(**{**COMMON, **changes})
    rewards = CONTEXTS[:, 0] > 0 if changes.get("reward") == "binary" else CONTEXTS[:, 0]
    bandit.update(contexts=contexts, arms=bandit.select(contexts).arms, rewards=rewards)
    return bandit


def normals_of(bandit: Bandit, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Give the noise of arms' own parts: a number for each context and arm."""
    seeds, model = SEEDS, bandit.policy.model
    if isinstance(model, HierarchicalReward) and model.own_constants is not None:
        stamp = np.uint64(model.own_constants.stamp)
        seeds = stamp * np.uint64(BANK) + SEEDS % np.uint64(BANK)
    return normals_at(seeds, rows, Stream.ARMS)


@torch.no_grad()
def scored(
    bandit: Bandit, contexts: Any, *, is_quiet: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Score all arms in fastbandit, under the draws of the seeds; give scores and rewards."""
    policy = bandit.policy
    policy = replace(policy, exploration=policy.exploration.quiet()) if is_quiet else policy
    inputs = bandit.blueprint.context.read(contexts, what="contexts")
    scores = policy.score(inputs, seeds=SEEDS).of(policy.arms.all())
    return scores.numpy(), policy.model.in_rewards(scores).numpy()


@torch.no_grad()
def proposed(bandit: Bandit, contexts: Any) -> NDArray[np.float32]:
    """Do in fastbandit what `propose.onnx` does."""
    policy, tally = bandit.policy, Tally(COUNT, torch.device("cpu"))
    assert isinstance(policy.search, FittedGenerator)
    search = policy.search.declared
    score = policy.score(bandit.blueprint.context.read(contexts, what="contexts"), seeds=SEEDS)
    points = policy.search.generator(generator_inputs(score, policy.arms, tally), policy.arms)
    if search.lookups < search.heads:
        points = best_points(score, points, search.lookups, tally)
    points = climb(
        score, points, policy.arms, tally, steps=search.steps, step_size=search.step_size
    )
    return points.numpy()


CHOOSING = """
import sys
for name in ("fastbandit", "torch"): sys.modules[name] = None
import json, numpy as np
from choose import Chooser
folder, contexts, draws, normals = sys.argv[1:]
chooser = Chooser(folder, near={near})
told = list(zip(np.load(contexts), np.load(draws), np.load(normals)))
chosen = [chooser.select_one(*each) for each in told]
calm = [chooser.select_one(*each, explore=False) for each in told]
everything = Chooser(folder, near=len(chooser.ids))
exhaustive = [everything.select_one(*each) for each in told]
print(json.dumps([chosen, calm, exhaustive]))
"""


def chosen_elsewhere(bandit: Bandit, folder: Path) -> list[list[Any]]:
    """Let the recipe of the page choose in a process that cannot import fastbandit or torch.

    Gives the arms for the draws, those without exploring, and those with all arms looked at.
    """
    recipe = re.search(r"```python\n(# choose\.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert recipe is not None
    (folder.parent / "choose.py").write_text(recipe[1])
    np.save(folder.parent / "contexts.npy", CONTEXTS)
    draws = uniforms(SEEDS, bandit.policy.model.noise_size, Stream.POSTERIOR)
    np.save(folder.parent / "draws.npy", draws)
    rows = np.arange(bandit.policy.arms.all().rows.shape[1])
    np.save(folder.parent / "normals.npy", normals_of(bandit, rows))
    files = ["contexts.npy", "draws.npy", "normals.npy"]
    done = subprocess.run(
        [sys.executable, "-c", CHOOSING.format(near=NEAR), "made", *files],
        cwd=folder.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told: list[list[Any]] = json.loads(done.stdout)
    return told


def points_of(folder: Path) -> NDArray[np.float32]:
    index = faiss.read_index(str(folder / "arms.faiss"))
    points: NDArray[np.float32] = index.reconstruct_n(0, index.ntotal)
    return points


@pytest.mark.parametrize("posterior", ["dropout", "last-layer", "arm-effects"])
def test_onnx_runtime_and_faiss_alone_choose_the_same_arms(posterior: str, tmp_path: Path) -> None:
    bandit = trained(posterior=posterior, arms=vectors_of(3000, 5, seed=1))
    export_onnx(bandit, tmp_path / "made")

    chosen, calm, exhaustive = chosen_elsewhere(bandit, tmp_path / "made")

    points = points_of(tmp_path / "made")
    scores, _ = scored(bandit, CONTEXTS)
    best = check_onnx(tmp_path / "made")["best"]
    ways = proposed(bandit, CONTEXTS)
    for number, (row, way) in enumerate(zip(scores, ways, strict=True)):
        distances = np.square(way[:, None] - points[None]).sum(-1)
        near = np.union1d(np.argsort(distances, axis=1)[:, :NEAR], np.int64(best))
        assert row[chosen[number]] == pytest.approx(row[near].max(), abs=1e-5)
        assert row[exhaustive[number]] == pytest.approx(row.max(), abs=1e-5)
    exact = replace(bandit.policy, search=Exhaustive())
    inputs = bandit.blueprint.context.read(CONTEXTS, what="contexts")
    assert exhaustive == exact.select(inputs, seeds=SEEDS).rows[:, 0].tolist()
    average, found = scores.mean(1), scores[np.arange(COUNT), chosen]
    quality = (found - average) / (scores.max(1) - average)
    assert quality.mean() > 0.8  # of a generator that was trained for a moment only
    if posterior != "dropout":  # these rewards are linear: no weight that a mask could drop is left
        assert calm != chosen


def test_many_arms_lie_in_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_export, "SCANNED", 1000)
    monkeypatch.setattr(onnx_export, "_LISTS_PER_ROOT", 1)
    bandit = trained(arms=vectors_of(3000, 5, seed=1), ids=[f"arm {n}" for n in range(3000)])
    export_onnx(bandit, tmp_path / "made")

    chosen, _, exhaustive = chosen_elsewhere(bandit, tmp_path / "made")

    index = faiss.read_index(str(tmp_path / "made" / "arms.faiss"))
    assert isinstance(index, faiss.IndexIVFFlat)
    assert all(arm.startswith("arm ") for arm in [*chosen, *exhaustive])


def test_only_arms_that_can_be_chosen_are_exported(tmp_path: Path) -> None:
    frozen = trained(arms=ARMS[:30], ids=[("a", n) for n in range(30)]).freeze()
    frozen.discard_arms([("a", 3)])
    frozen.add_arms(ARMS[40:42], ids=["new", 7.5])

    made = export_onnx(frozen, tmp_path / "made")

    ids = json.loads((tmp_path / "made" / "ids.json").read_text())
    assert (made.arms, ids[-2:]) == (31, ["new", 7.5])
    assert {"tuple": ["a", 3]} not in ids
    assert {"tuple": ["a", 4]} in ids


def test_an_export_has_the_sums_of_its_files(tmp_path: Path) -> None:
    made = export_onnx(trained(), tmp_path / "made")

    assert check_onnx(made.folder)["arms"] == 400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made"]
    whole = (made.folder / "ids.json").read_bytes()
    (made.folder / "ids.json").write_bytes(whole.replace(b"1", b"2", 1))
    with pytest.raises(SnapshotError, match=r"ids\.json differs"):
        check_onnx(made.folder)
    with pytest.raises(SnapshotError, match="holds no ONNX export"):
        check_onnx(tmp_path)


def test_an_export_holds_the_schema_whose_numbers_its_networks_take(tmp_path: Path) -> None:
    visits = [{"city": ("Oslo", "Rome")[row % 2], "age": row or None} for row in range(COUNT)]
    bandit = trained(visits, context=Schema.infer(visits))

    export_onnx(bandit, tmp_path / "out")

    schema = Schema.from_dict(check_onnx(tmp_path / "out")["context"]["schema"])
    shape = onnx.load(str(tmp_path / "out" / "score.onnx")).graph.input[0].type.tensor_type.shape
    assert schema == bandit.blueprint.context.schema
    assert shape.dim[1].dim_value == schema.dim == schema.encode(visits).shape[1]


def test_an_export_needs_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep me")

    with pytest.raises(SnapshotError, match="is there and not empty"):
        export_onnx(trained(), tmp_path)


def test_what_has_not_learned_or_reranks_by_bounds_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"Call update\(\) first"):
        export_onnx(Bandit(arms=ARMS, context=4), tmp_path / "made")
    with pytest.raises(SettingError, match="exploration='ts'"):
        export_onnx(trained(exploration="ucb"), tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_saved_and_frozen_bandits_are_exported_from_their_folders(tmp_path: Path) -> None:
    bandit = trained()
    bandit.save(tmp_path / "bandit")
    bandit.freeze().save(tmp_path / "version" / "frozen")

    one = export_snapshot(tmp_path / "bandit", tmp_path / "one")
    two = export_snapshot(tmp_path / "version" / "frozen", tmp_path / "two")
    three = export_snapshot(tmp_path / "version", tmp_path / "three")

    assert one.files == two.files == three.files
    with pytest.raises(SnapshotError, match=r"needs a manifest\.json"):
        export_snapshot(tmp_path / "none", tmp_path / "four")


def test_the_option_exports_a_saved_bandit(tmp_path: Path) -> None:
    trained().save(tmp_path / "bandit")
    args = ["--onnx", str(tmp_path / "bandit"), "--out"]

    told = CliRunner().invoke(command, [*args, str(tmp_path / "one")])
    assert told.output.startswith("400 arms of version 1\nscore.onnx: 0.0 MB\n")
    told = CliRunner().invoke(command, [*args, str(tmp_path / "two"), "--json"])
    assert json.loads(told.output)["arms"] == 400


def test_an_export_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(onnx_export, "write_synced", full)

    with pytest.raises(SnapshotError, match="no space left"):
        export_onnx(trained(), tmp_path / "made")
    assert not list(tmp_path.iterdir())
