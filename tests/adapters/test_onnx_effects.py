"""Arms' own weights in ONNX score as the bandit does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from fakes import seeds_of, vectors_of
from numpy.typing import NDArray

from fastbandit import (
    Bandit,
    Dense,
    FeaturesAndIds,
    Ids,
    Image,
    Sparse,
)
from fastbandit.adapters.onnx_export import export_onnx
from fastbandit.arms.own_lists import BANK
from fastbandit.noise.philox import Stream, normals_at, uniforms
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.settings.files import Settings

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'fastbandit[onnx]'")

onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
COUNT, NEAR = 24, 128
CONTEXTS = vectors_of(COUNT, 4, seed=2)
ARMS = vectors_of(400, 5, seed=1)
SEEDS = seeds_of(COUNT)
WORDS = scipy.sparse.random(COUNT, 30, density=0.2, random_state=3, format="csr")
NUMBERS = np.arange(COUNT) % 9
OWN: dict[str, tuple[dict[str, Any], Any]] = {
    "numbers": ({}, CONTEXTS),
    "far numbers": ({}, 50.0 * CONTEXTS + 20_000.0),
    "bound": ({"exploration": "ucb"}, CONTEXTS),
    "greedy": ({"exploration": "greedy"}, CONTEXTS),
    "words": ({"context": Sparse(30)}, WORDS),
    "ids": ({"context": Ids(9)}, NUMBERS),
    "both": ({"context": FeaturesAndIds(Dense(4), Ids(9))}, (CONTEXTS, NUMBERS)),
    "words and ids": ({"context": FeaturesAndIds(Sparse(30), Ids(9))}, (WORDS, NUMBERS)),
    "pixels": ({"context": Image(8, 9)}, vectors_of(COUNT, 72, seed=4).reshape(COUNT, 8, 9)),
}
"""Bandits whose arms have weights of their own."""

COMMON = {"arms": ARMS, "context": 4, "reward": "real", "seed": 3, "search": "generator"}


def trained(contexts: Any = CONTEXTS, **changes: Any) -> Bandit:
    if isinstance(changes.get("preset"), dict):
        changes["preset"] = Settings(sections={"network": changes["preset"]})
    bandit = Bandit(**{**COMMON, **changes})
    rewards = CONTEXTS[:, 0] > 0 if changes.get("reward") == "binary" else CONTEXTS[:, 0]
    bandit.update(contexts=contexts, arms=bandit.select(contexts).arms, rewards=rewards)
    return bandit


def feed_of(
    bandit: Bandit, contexts: Any, session: Any, *, is_quiet: bool = False
) -> dict[str, Any]:
    """Give the inputs that a network asks for, with the draws of the seeds; all arms are scored."""
    parts = contexts if isinstance(contexts, tuple) else (contexts,)
    features = [part for part in parts if np.ndim(part) != 1]
    ids = [part for part in parts if np.ndim(part) == 1]
    numbers = uniforms(SEEDS, bandit.policy.model.noise_size, Stream.POSTERIOR)
    explore = bandit.policy.exploration
    width = 0.0 if is_quiet else getattr(explore, "scale", getattr(explore, "width", 0.0))
    places = np.arange(bandit.policy.arms.all().rows.shape[1])
    given: dict[str, Any] = {
        "uniforms": numbers,
        "scale": np.array([width], np.float32),
        "places": np.tile(places, (COUNT, 1)),
        "points": np.tile(bandit.policy.arms.all().points.numpy(), (COUNT, 1, 1)),
        "normals": normals_of(bandit, places),
    }
    if features:
        rows = getattr(features[0], "toarray", lambda: features[0])()
        given["context"] = rows.astype(np.float32)
    if ids:
        given["context_id"] = ids[0]
    asked = {part.name for part in session.get_inputs()}
    return {name: array for name, array in given.items() if name in asked}


def normals_of(bandit: Bandit, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Give the noise of arms' own parts: a number for each context and arm."""
    seeds, model = SEEDS, bandit.policy.model
    if isinstance(model, HierarchicalReward) and model.own_constants is not None:
        stamp = np.uint64(model.own_constants.stamp)
        seeds = stamp * np.uint64(BANK) + SEEDS % np.uint64(BANK)
    return normals_at(seeds, rows, Stream.ARMS)


def session_of(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


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


@pytest.mark.parametrize("case", OWN)
def test_arms_with_weights_of_their_own_are_all_scored(case: str, tmp_path: Path) -> None:
    changes, contexts = OWN[case]
    bandit = trained(contexts, arms=None, ids=range(40), search="auto", **changes)

    made = export_onnx(bandit, tmp_path / "made")

    assert set(made.files) == {"score.onnx", "ids.json"}
    session = session_of(tmp_path / "made" / "score.onnx")
    for is_quiet in (False, True):
        feed = feed_of(bandit, contexts, session, is_quiet=is_quiet)
        scores, rewards = session.run(None, feed)
        expected, worded = scored(bandit, contexts, is_quiet=is_quiet)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(rewards, worded, rtol=0, atol=1e-5)


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


def test_onnx_runtime_alone_chooses_among_arms_with_weights_of_their_own(tmp_path: Path) -> None:
    bandit = trained(arms=None, ids=range(40), search="auto")
    export_onnx(bandit, tmp_path / "made")

    chosen, calm, _ = chosen_elsewhere(bandit, tmp_path / "made")

    assert chosen == scored(bandit, CONTEXTS)[0].argmax(1).tolist()
    assert calm == scored(bandit, CONTEXTS, is_quiet=True)[0].argmax(1).tolist()
