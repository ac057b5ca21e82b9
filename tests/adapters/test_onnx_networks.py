"""Networks in ONNX score and propose as the bandit does."""

from __future__ import annotations

import json
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
    GeneratorSearch,
    Ids,
    Sparse,
)
from fastbandit.adapters.onnx_export import check_onnx, export_onnx, live_arms
from fastbandit.arms.own_lists import BANK
from fastbandit.noise.philox import Stream, normals_at, uniforms
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.arm_generator import generator_inputs
from fastbandit.search.generator import FittedGenerator
from fastbandit.search.gradient_ascent import best_points, climb
from fastbandit.search.ranking import Tally
from fastbandit.settings.files import Settings

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'fastbandit[onnx]'")

onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
COUNT, NEAR = 24, 128
CONTEXTS = vectors_of(COUNT, 4, seed=2)
ARMS = vectors_of(400, 5, seed=1)
SEEDS = seeds_of(COUNT)
WORDS = scipy.sparse.random(COUNT, 30, density=0.2, random_state=3, format="csr")
NUMBERS = np.arange(COUNT) % 9
VARIANTS: dict[str, tuple[dict[str, Any], Any]] = {
    "dropout": ({"posterior": "dropout"}, CONTEXTS),
    "last layer": ({"posterior": "last-layer"}, CONTEXTS),
    "binary": ({"reward": "binary"}, CONTEXTS),
    "greedy": ({"exploration": "greedy"}, CONTEXTS),
    "two layers": ({"preset": {"hidden": [12, 7]}, "arms": ARMS[:20]}, CONTEXTS),
    "no arm effects": ({"posterior": "neural"}, CONTEXTS),
    "three layers": (
        {"preset": {"hidden": [6, 9, 5], "product": False}, "posterior": "dropout"},
        CONTEXTS,
    ),
    "neither product nor wide": (
        {"preset": {"product": False, "wide": False, "leak": 0.01}, "posterior": "last-layer"},
        CONTEXTS,
    ),
    "sparse contexts": ({"context": Sparse(30)}, WORDS),
    "ids": ({"context": Ids(9)}, NUMBERS),
    "both": ({"context": FeaturesAndIds(Dense(4), Ids(9))}, (CONTEXTS, NUMBERS)),
    "arms by name": ({"arms": None, "ids": [f"arm {n}" for n in range(40)]}, CONTEXTS),
    "many heads": (
        {"search": GeneratorSearch(heads=20, lookups=20, steps=0)},
        CONTEXTS,
    ),
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


@pytest.fixture(scope="module", params=VARIANTS)
def variant(
    little_training: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Bandit, Any, Path]:
    changes, contexts = VARIANTS[request.param]
    bandit = trained(contexts, **changes)
    folder = tmp_path_factory.mktemp("exports") / "made"
    export_onnx(bandit, folder)
    return bandit, contexts, folder


def test_scores_are_those_of_the_reward_model(variant: tuple[Bandit, Any, Path]) -> None:
    bandit, contexts, folder = variant
    session = session_of(folder / "score.onnx")

    scores, rewards = session.run(None, feed_of(bandit, contexts, session))

    expected, worded = scored(bandit, contexts)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rewards, worded, rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize(("count", "is_drawn"), [(1100, True), (20, False)])
def test_constants_of_arms_stand_beside_what_features_say(
    count: int, is_drawn: bool, tmp_path: Path
) -> None:
    bandit = trained(arms=vectors_of(count, 5, seed=1))
    export_onnx(bandit, tmp_path / "made")

    session = session_of(tmp_path / "made" / "score.onnx")
    asked = {part.name for part in session.get_inputs()}
    _, rewards = session.run(None, feed_of(bandit, CONTEXTS, session, is_quiet=True))

    assert "places" in asked
    assert ("normals" in asked) is is_drawn  # those of the regression are, the network's are not
    _, worded = scored(bandit, CONTEXTS, is_quiet=True)
    np.testing.assert_allclose(rewards, worded, rtol=0, atol=1e-5)
    model = bandit.policy.model
    assert isinstance(model, HierarchicalReward)
    means = model.constants_posterior.arrays[0]
    best = check_onnx(tmp_path / "made")["best"]
    assert set(np.flatnonzero(means)) <= set(best)


@pytest.mark.parametrize("has_features", [True, False])
def test_arms_that_came_later_have_no_part_of_their_own(has_features: bool, tmp_path: Path) -> None:
    arms = {"arms": ARMS[:30]} if has_features else {"arms": None, "search": "auto"}
    frozen = trained(**arms, ids=range(30)).freeze()
    frozen.discard_arms([3])
    frozen.add_arms(ARMS[40:41] if has_features else None, ids=[77])

    export_onnx(frozen, tmp_path / "made")

    session = session_of(tmp_path / "made" / "score.onnx")
    points, _ = live_arms(frozen.parts[1])
    given = {
        "context": CONTEXTS[:1],
        "points": points[None],
        "places": np.arange(30)[None],
        "uniforms": np.full((1, check_onnx(tmp_path / "made")["uniforms"]), 0.5, np.float32),
        "normals": np.zeros((1, 30), np.float32),
        "scale": np.zeros(1, np.float32),
    }
    asked = {part.name for part in session.get_inputs()}
    (rewards,) = session.run(["rewards"], {name: given[name] for name in asked})
    told = frozen.select(CONTEXTS[:1], k=30, explore=False)
    by_id = dict(zip(told.arms[0], told.scores[0], strict=True))
    ids = json.loads((tmp_path / "made" / "ids.json").read_text())
    assert ids[-1] == 77
    expected = [by_id[id] for id in ids]
    np.testing.assert_allclose(rewards[0], expected, rtol=0, atol=1e-5)


def test_points_are_those_of_the_generator(variant: tuple[Bandit, Any, Path]) -> None:
    bandit, contexts, folder = variant
    session = session_of(folder / "propose.onnx")

    (points,) = session.run(None, feed_of(bandit, contexts, session))

    np.testing.assert_allclose(points, proposed(bandit, contexts), rtol=1e-3, atol=1e-4)


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


def test_a_search_without_a_generator_exports_no_proposals(tmp_path: Path) -> None:
    made = export_onnx(trained(search="exhaustive"), tmp_path / "made")

    assert set(made.files) == {"score.onnx", "arms.faiss", "ids.json"}
