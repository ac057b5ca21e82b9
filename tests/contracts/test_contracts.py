"""Every implementation of a role through the laws of fastbandit/testing/parts.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import LITTLE, BowlReward, catalogue_of, seeds_of, vectors_of
from torch import Generator, Tensor

from fastbandit import Box, Exhaustive, GeneratorSearch, GradientAscent
from fastbandit.arms.catalogue import Catalogue
from lab.baselines.faiss_index import FaissIndex
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, Point
from fastbandit.interfaces import ArmSpace, Choice, Exploration, RewardModel, Score, Search
from fastbandit.reward.bootstrap_model import BootstrapReward
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.fourier_model import FourierReward
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.reward.variational_model import VariationalReward
from fastbandit.search.spanner import SpannerSearch
from fastbandit.testing.parts import (
    check_arm_space,
    check_cost_does_not_grow,
    check_exploration,
    check_index,
    check_model,
    check_search,
)
from fastbandit.training.fit_generator import fit_generator
from fastbandit.training.fit_reward import fit_reward
from fastbandit.types import Inputs, Interactions

DEEP = NetworkSettings(embedding=4, hidden=(6, 5), weight_penalty=0.1, dropout_penalty=1.0)
PLAIN = replace(DEEP, hidden=(6,), product=False, wide=False)

MODELS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "dropout": (DropoutReward, {}),
    "gradient, full": (GradientReward, {}),
    "gradient, diagonal": (GradientReward, {"full_below": 1}),
    "gradient, when chosen": (GradientReward, {"gradients": "when chosen"}),
    "last layer": (LastLayerReward, {}),
    "bootstrap": (BootstrapReward, {"heads": 4}),
    "variational": (VariationalReward, {}),
    "fourier": (FourierReward, {"features": 32}),
}
SEARCHES: dict[str, Search] = {
    "exhaustive": Exhaustive(chunk=64),
    "ascent": GradientAscent(steps=5),
    "ascent, few look-ups": GradientAscent(steps=5, lookups=2, hops=0),
    "ascent from a scan": GradientAscent(starts=3, steps=5, scan=40),
    "ascent as printed": GradientAscent(
        starts=5, steps=5, step_size=1.0, neighbours=1, hops=0, rule="printed"
    ),
    "spanner": SpannerSearch(),
    "spanner alone": SpannerSearch(size=8, hops=0),
    "generator": GeneratorSearch(),
    "generator as printed": GeneratorSearch(
        heads=1, hidden=64, lookups=1, neighbours=3, steps=0, hops=0, told="gaussian", bounded=False
    ),
}
EXPLORATIONS: dict[str, Exploration] = {
    "greedy": Greedy(),
    "ucb": UpperConfidence(0.5),
    "ucb of a batch": UpperConfidence(0.5, batched=True),
    "ts": ThompsonSampling(0.7),
}
DIM = 3


def history_of(*, kind: str) -> Interactions:
    contexts, arms = vectors_of(80, 3, seed=1), vectors_of(80, 5, seed=2)
    rewards = contexts[:, 0] * arms[:, 0]
    return Interactions(
        Inputs(dense=contexts),
        Inputs(dense=arms),
        (rewards > 0).astype(np.float32) if kind == "binary" else rewards,
    )


def trained(name: str, settings: NetworkSettings, kind: str) -> RewardModel:
    make, more = MODELS[name]
    rng = torch.Generator().manual_seed(3)
    arm = Point((-4.0,) * 5, (4.0,) * 5) if make is FourierReward else Dense(5)
    model: RewardModel = make(Dense(3), arm, settings=settings, reward=kind, rng=rng, **more)
    history = history_of(kind=kind)
    model.start(history, fresh=len(history))
    fit_reward(model, history, LITTLE.reward, rng=rng)
    model.fit_posterior(history)
    return model.requires_grad_(False)


def embedded(model: RewardModel) -> tuple[Tensor, Tensor]:
    contexts = model.embed_contexts(Inputs(dense=vectors_of(4, 3, seed=8)))
    return contexts, model.embed_arms(Inputs(dense=vectors_of(12, 5, seed=9)))


@pytest.mark.parametrize("kind", ["real", "binary"])
@pytest.mark.parametrize("settings", [DEEP, PLAIN], ids=["deep and wide", "plain"])
@pytest.mark.parametrize(
    "name",
    list(MODELS),
)
def test_reward_models(name: str, settings: NetworkSettings, kind: str, rng: Generator) -> None:
    model = trained(name, settings, kind)

    check_model(model, *embedded(model), rng=rng)


@pytest.mark.parametrize(
    ("name", "exploration"),
    [(m, e) for m in MODELS for e in EXPLORATIONS],
)
def test_explorations(name: str, exploration: str) -> None:
    model = trained(name, DEEP, "real")

    check_exploration(EXPLORATIONS[exploration], model, *embedded(model), seeds=seeds_of(4))


# -- searches


def box() -> Box:
    space = Box.between([-2.0] * DIM, [2.0] * DIM, cover=400)
    return space.embedded_by(lambda values: values, device="cpu")


SPACES: dict[str, Callable[[], ArmSpace]] = {
    "catalogue": lambda: catalogue_of(vectors_of(400, DIM)),
    "box": box,
}


def bowl_score(arms: ArmSpace, exploration: Exploration, *, count: int = 6) -> Score:
    contexts = torch.from_numpy(vectors_of(count, DIM, seed=4))
    score = exploration.score(BowlReward(DIM), contexts, seeds=seeds_of(count))
    return score.through(arms.place)


def ready(search: Search, arms: ArmSpace, exploration: Exploration) -> Search:
    """Train the generator of a search that has one."""
    if not isinstance(search, GeneratorSearch):
        return search
    contexts = Inputs(dense=vectors_of(50, DIM, seed=5))
    rng = torch.Generator().manual_seed(1)
    taught = fit_generator(
        search, BowlReward(DIM), exploration, arms, contexts, LITTLE.generator, rng=rng
    )
    assert taught.generator is not None
    taught.generator.requires_grad_(False)
    return taught


@pytest.mark.parametrize("exploration", ["ts", "ucb"])
@pytest.mark.parametrize(
    ("name", "space"),
    [(n, s) for n in SEARCHES for s in SPACES],
)
def test_searches(name: str, space: str, exploration: str) -> None:
    arms, how = SPACES[space](), EXPLORATIONS[exploration]
    search = ready(SEARCHES[name], arms, how)

    check_search(search, bowl_score(arms, how), arms, seeds=seeds_of(6))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "each its own"])
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_among_eligible_arms(
    name: str, share: float, is_shared: bool, rng: Generator
) -> None:
    arms, how = SPACES["catalogue"](), EXPLORATIONS["ts"]
    search = ready(SEARCHES[name], arms, how)
    eligible = torch.rand(1 if is_shared else 6, 400, generator=rng) < share
    eligible[:, 7] = True

    check_search(search, bowl_score(arms, how), arms, seeds=seeds_of(6), eligible=eligible)


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "exhaustive"])
def test_only_exhaustive_search_is_linear_in_the_arms(name: str) -> None:
    how = EXPLORATIONS["ts"]
    small, large = (catalogue_of(vectors_of(count, DIM)) for count in (3_000, 6_000))
    search = ready(SEARCHES[name], small, how)

    def choice(arms: Catalogue) -> Choice:
        return search.best(bowl_score(arms, how), arms, count=1, seeds=seeds_of(6))

    check_cost_does_not_grow(choice(small), choice(large))


# -- arm spaces and indexes


@pytest.mark.parametrize("space", SPACES)
def test_arm_spaces(space: str, rng: Generator) -> None:
    check_arm_space(SPACES[space](), rng=rng)


@pytest.mark.parametrize("count", [1, 17, 5_000, 20_000])
def test_a_catalogue_of_any_size_is_an_arm_space(count: int, rng: Generator) -> None:
    check_arm_space(catalogue_of(vectors_of(count, DIM)), rng=rng)


def test_a_catalogue_of_equal_arms_is_an_arm_space(rng: Generator) -> None:
    check_arm_space(catalogue_of(np.repeat(vectors_of(5, DIM), 60, axis=0)), rng=rng)


@pytest.mark.parametrize("count", [1, 30, 3_000])
def test_indexes(count: int, numbers: np.random.Generator) -> None:
    vectors = vectors_of(count, 4)

    check_index(FaissIndex(vectors), vectors, numbers=numbers)


# -- the checks themselves notice


class Cheating:
    """Wraps a search and spoils its answer."""

    def __init__(self, spoil: Callable[[Choice], Choice]) -> None:
        self.spoil = spoil

    def best(self, *args: Any, **settings: Any) -> Choice:
        return self.spoil(Exhaustive().best(*args, **settings))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: replace(c, scores=c.scores + 1), "scores of the chosen"),
        (lambda c: replace(c, evaluations=c.evaluations - 1), "evaluations claimed"),
        (lambda c: replace(c, lookups=c.lookups + 1), "look-ups claimed"),
        (lambda c: replace(c, rows=torch.zeros_like(c.rows)), "comes twice"),
        (lambda c: replace(c, rows=torch.full_like(c.rows, -1)), "0 arms for"),
    ],
)
def test_a_search_that_cheats_is_caught(spoil: Callable[[Choice], Choice], message: str) -> None:
    arms = SPACES["catalogue"]()

    with pytest.raises(AssertionError, match=message):
        check_search(Cheating(spoil), bowl_score(arms, Greedy()), arms, seeds=seeds_of(6))
