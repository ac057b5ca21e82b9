"""The printed recipe: its values, its nine policies, and what may stand over it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes import BowlReward, catalogue_of, same_decision, seeds_of, vectors_of

from fastbandit import Bandit, Exhaustive, Greedy
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.interfaces import SearchFit, declared
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.last_layer_model import LastLayerPosterior
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.types import Inputs
from lab.experiments import paper_preset
from lab.experiments.paper_preset import (
    FittedPrintedGenerator,
    PrintedAscent,
    PrintedGenerator,
    bandit_parts,
)
from lab.experiments.recipe import Recipe, recipe_for

PAPER = ("paper", "paper-scaled")
EXPLORATIONS = ("ts", "ucb", "greedy")
SEARCHES = ("generator", "ascent", "exhaustive")
CONTEXTS, ARMS = vectors_of(30, 4, seed=1), vectors_of(40, 3, seed=2)
REWARDS = (CONTEXTS[:, :3] * ARMS[:30]).sum(1)
QUICK = {
    "training.reward": {"iterations": 10, "batch": 16},
    "training.generator": {"iterations": 10, "batch": 16},
}


def made(
    preset: Any = "paper",
    *,
    exploration: str = "ts",
    search: str = "generator",
    posterior: str = "auto",
    **more: Any,
) -> Bandit:
    names = {"exploration": exploration, "search": search, "posterior": posterior}
    given: dict[str, Any] = {"arms": ARMS, "context": 4, "reward": "real"} | more
    return Bandit(**given, **bandit_parts(preset, **names), progress=False)


def trained(preset: str, **names: str) -> Bandit:
    bandit = made(recipe_for(preset).merged(QUICK), **names)
    bandit.update(contexts=CONTEXTS, arms=range(30), rewards=REWARDS)
    return bandit


@pytest.mark.parametrize("preset", PAPER)
@pytest.mark.parametrize(("exploration", "search"), list(product(EXPLORATIONS, SEARCHES)))
def test_the_papers_nine_policies_run(preset: str, exploration: str, search: str) -> None:
    bandit = trained(preset, exploration=exploration, search=search)

    assert len(set(bandit.select(CONTEXTS[:1], k=3).arms[0])) == 3


@pytest.mark.parametrize("preset", PAPER)
@pytest.mark.parametrize(("exploration", "search"), list(product(("ts", "ucb"), SEARCHES)))
def test_a_saved_bandit_of_the_paper_decides_alike(
    preset: str, exploration: str, search: str, tmp_path: Path
) -> None:
    bandit = trained(preset, exploration=exploration, search=search)

    bandit.save(tmp_path / "saved")
    loaded = Bandit.load(tmp_path / "saved", part_modules=(paper_preset.__name__,), progress=False)

    assert loaded.blueprint == bandit.blueprint
    assert same_decision(loaded.select(CONTEXTS), bandit.select(CONTEXTS))


def test_a_loaded_generator_goes_on_from_what_it_was(tmp_path: Path) -> None:
    bandit = trained("paper")
    bandit.save(tmp_path / "saved")
    loaded = Bandit.load(tmp_path / "saved", part_modules=(paper_preset.__name__,), progress=False)

    for one in (bandit, loaded):
        one.update(contexts=CONTEXTS, arms=range(30), rewards=REWARDS)

    assert same_decision(loaded.select(CONTEXTS), bandit.select(CONTEXTS))


# -- the printed values


@pytest.mark.parametrize(
    ("search", "printed"),
    [
        ("ascent", PrintedAscent(starts=10, steps=30, step_size=1.0, neighbours=1)),
        ("generator", PrintedGenerator(hidden=64, neighbours=3)),
        ("auto", PrintedGenerator(hidden=64, neighbours=3)),
        ("exhaustive", Exhaustive()),
    ],
)
def test_the_searches_are_the_printed_ones(search: str, printed: Any) -> None:
    assert made(search=search).blueprint.search == printed


@pytest.mark.parametrize(
    ("name", "exploration", "posterior"),
    [
        ("ts", ThompsonSampling(1.0), DropoutPosterior()),
        ("ucb", UpperConfidence(1.0), GradientPosterior(gradients="when chosen")),
        ("greedy", Greedy(), DropoutPosterior()),
    ],
)
@pytest.mark.parametrize("preset", PAPER)
def test_each_exploration_has_its_printed_posterior(
    name: str, exploration: Any, posterior: Any, preset: str
) -> None:
    plan = made(preset, exploration=name, posterior="neural").blueprint

    assert (plan.exploration, plan.posterior) == (exploration, posterior)


def test_arms_with_features_and_ids_keep_the_printed_posterior() -> None:
    plan = made(posterior="neural", embed_ids=True).blueprint

    assert plan.posterior == DropoutPosterior()


def test_another_posterior_may_be_named() -> None:
    assert made(posterior="last-layer").blueprint.posterior == LastLayerPosterior()


def test_the_network_is_the_printed_one() -> None:
    network = made().blueprint.network

    assert (network.embedding, network.hidden, network.leak) == (8, (8, 8), 0.01)
    assert (network.weight_penalty, network.dropout_penalty) == (0.0, 0.1)
    assert (network.embedding_penalty, network.fourier_features) == (0.0, 0)
    assert (network.product, network.wide) == (False, False)


def test_the_two_readings_differ_in_their_penalties_alone() -> None:
    one, two = (made(preset).blueprint for preset in PAPER)

    assert one.network.penalties == "constant"
    assert two.network.penalties == "per observation"
    assert (one.search, one.training, one.posterior) == (two.search, two.training, two.posterior)


@pytest.mark.parametrize(("exploration", "batch"), [("ts", 256), ("ucb", 32)])
def test_training_is_the_printed_one(exploration: str, batch: int) -> None:
    training = made(exploration=exploration).blueprint.training

    reward, generator = training.reward, training.generator
    assert (reward.iterations, reward.batch, reward.rate) == (1000, 256, 1e-3)
    assert (reward.weight_decay, reward.cosine_schedule) == (1e-5, False)
    assert (generator.iterations, generator.batch, generator.rate) == (3000, batch, 1e-3)
    assert generator.jitter == 0.0


# -- what stands over it


def test_settings_stand_over_the_printed_ones() -> None:
    over: Any = {
        "network": {"embedding": 4},
        "search.ascent": {"steps": 3},
        "exploration.ts": {"scale": 0.5},
        "training.reward": {"rate": 0.1},
    }

    plan = made(Recipe("paper").merged(over), search="ascent").blueprint

    assert plan.search == PrintedAscent(steps=3)
    assert plan.exploration == ThompsonSampling(0.5)
    assert (plan.network.embedding, plan.network.hidden) == (4, (8, 8))
    assert (plan.training.reward.rate, plan.training.reward.weight_decay) == (0.1, 1e-5)


def test_a_field_that_the_printed_search_lacks_is_rejected() -> None:
    over = Recipe("paper").merged({"search.generator": {"heads": 4}})

    with pytest.raises(SettingError, match=r"over the printed recipe .* hidden, neighbours: got"):
        made(over)


def test_over_the_defaults_a_bandit_is_the_products_own() -> None:
    names: dict[str, Any] = {"exploration": "ts", "search": "ascent", "posterior": "neural"}

    own = Bandit(arms=ARMS, context=4, reward="real", **names)

    assert made("default", **names).blueprint == own.blueprint


@pytest.mark.parametrize("role", ["exploration", "search", "posterior"])
def test_an_unknown_part_is_rejected(role: str) -> None:
    with pytest.raises(SettingError, match=f"The {role} needs to be one of .*: got 'xyz'"):
        made(**{role: "xyz"})


# -- the parts


def bowl_task(iterations: int, seed: int = 0) -> SearchFit:
    return SearchFit(
        BowlReward(3),
        ThompsonSampling(),
        catalogue_of(vectors_of(200, 3)),
        Inputs(dense=vectors_of(40, 3, seed=3)),
        GeneratorFit(iterations=iterations, batch=32, rate=0.01, jitter=0.0),
        torch.Generator().manual_seed(seed),
    )


def mean_score(search: Any, task: SearchFit) -> float:
    seeds = seeds_of(40)
    contexts = task.model.embed_contexts(task.contexts)
    score = task.exploration.score(task.model, contexts, seeds=seeds)
    found = search.best(score.through(task.arms.to_embedding), task.arms, count=1, seeds=seeds)
    return float(found.scores.mean())


def test_the_generator_climbs_log_d() -> None:
    before, after = (
        PrintedGenerator().fit(bowl_task(iterations), before=PrintedGenerator())
        for iterations in (0, 150)
    )

    assert mean_score(after, bowl_task(0)) > mean_score(before, bowl_task(0)) + 0.5


def test_the_generator_goes_on_from_the_one_of_before() -> None:
    search = PrintedGenerator()
    one = search.fit(bowl_task(0, seed=1), before=search)

    two = one.fit(bowl_task(0, seed=2), before=one)  # type: ignore[attr-defined]

    assert isinstance(one, FittedPrintedGenerator)
    assert isinstance(two, FittedPrintedGenerator)
    left, right = one.network.state_dict(), two.network.state_dict()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert declared(two) == search


def test_a_generator_looks_up_one_point_and_scores_its_neighbours() -> None:
    bandit = trained("paper")

    decision = bandit.select(CONTEXTS)

    assert (decision.lookups == 1).all()
    assert (decision.evaluations <= 4).all()


def test_without_an_update_a_generator_says_what_to_do() -> None:
    task = bowl_task(0)

    with pytest.raises(SettingError, match="Update the bandit first"):
        mean_score(PrintedGenerator(), task)


def test_the_ascent_comes_near_the_best_arm() -> None:
    task = bowl_task(0)

    climbed = mean_score(PrintedAscent(neighbours=3), task)

    assert climbed > mean_score(PrintedAscent(starts=1, steps=0), task) + 0.5
    assert climbed == pytest.approx(mean_score(Exhaustive(), task), abs=0.1)


def test_a_climb_that_has_enough_stands_still() -> None:
    task = bowl_task(0)

    still = PrintedAscent(starts=1, steps=30, enough=-1e9)

    assert mean_score(still, task) == mean_score(PrintedAscent(starts=1, steps=0), task)
