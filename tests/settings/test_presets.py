"""Names stand for parts."""

from __future__ import annotations

from typing import Any

import pytest

from fastbandit import Exhaustive, GeneratorSearch, GradientAscent, Greedy
from fastbandit.arms.neighbour_graph import NEIGHBOURS
from fastbandit.arms.partitions import PARTITION
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.last_layer_model import LastLayerPosterior
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, blueprint


def planned(**changes: Any) -> Blueprint:
    settings: dict[str, Any] = {
        "context": Dense(4),
        "arm": Dense(3),
        "reward": "real",
        "exploration": "ts",
        "search": "generator",
        "posterior": "auto",
    } | changes
    names = PartNames(*(settings.pop(role) for role in ("exploration", "search", "posterior")))
    return blueprint(names, **settings)


@pytest.mark.parametrize(
    ("name", "exploration", "posterior"),
    [
        ("ts", ThompsonSampling, DropoutPosterior),
        ("ucb", UpperConfidence, GradientPosterior),
        ("greedy", Greedy, DropoutPosterior),
    ],
)
def test_each_exploration_has_its_own_kind_of_posterior(
    name: str, exploration: type, posterior: type
) -> None:
    plan = planned(exploration=name, posterior="neural")

    assert isinstance(plan.exploration, exploration)
    assert isinstance(plan.posterior, posterior)


@pytest.mark.parametrize(
    ("exploration", "posterior"), [("ts", LastLayerPosterior), ("ucb", GradientPosterior)]
)
def test_arms_with_features_and_ids_have_a_posterior_of_the_last_layer(
    exploration: str, posterior: type
) -> None:
    arm = FeaturesAndIds(Dense(3), Ids(5))

    plan = planned(arm=arm, exploration=exploration, posterior="neural")

    assert isinstance(plan.posterior, posterior)


@pytest.mark.parametrize("arm", [Dense(3), Ids(5), FeaturesAndIds(Dense(3), Ids(5))])
def test_arms_of_a_catalogue_have_effects_of_their_own_by_default(arm: Any) -> None:
    assert isinstance(planned(arm=arm).posterior, ArmEffectsPosterior)


def test_images_train_with_fewer_and_smaller_steps() -> None:
    images, numbers = (planned(context=c).training.reward for c in (Image(8, 9), Dense(4)))

    assert (images.iterations, images.batch) == (200, 128)
    assert (numbers.iterations, numbers.batch) == (1000, 256)


def test_a_posterior_may_be_named() -> None:
    assert planned(posterior="last-layer").posterior == LastLayerPosterior()
    assert planned(posterior="gradient").posterior == GradientPosterior()


@pytest.mark.parametrize("role", ["exploration", "search", "posterior"])
def test_an_unknown_part_may_be_given_as_an_object(role: str) -> None:
    with pytest.raises(SettingError, match=r"got 'xyz'\. Use one of them, or give an object\."):
        planned(**{role: "xyz"})


def test_an_unknown_preset_is_one_of_those_there_are() -> None:
    with pytest.raises(SettingError, match=r"got 'xyz'\. Use one of them\.$"):
        planned(preset="xyz")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("generator", GeneratorSearch), ("ascent", GradientAscent), ("exhaustive", Exhaustive)],
)
def test_searches_are_known_by_name(name: str, kind: type) -> None:
    assert isinstance(planned(search=name).search, kind)


@pytest.mark.parametrize("dim", [2, 8, 9, 100])
def test_the_default_embedding_grows_once_with_the_features(dim: int) -> None:
    assert planned(arm=Dense(dim)).network.embedding == (8 if dim <= 8 else 16)


def test_objects_are_taken_as_they_are() -> None:
    search, bound = GradientAscent(starts=3), UpperConfidence(0.25)

    plan = planned(search=search, exploration=bound, posterior=LastLayerPosterior(3.0))

    assert plan.search is search
    assert plan.exploration is bound
    assert plan.posterior == LastLayerPosterior(3.0)


@pytest.mark.parametrize("exploration", ["ts", "ucb"])
def test_the_default_recipe_needs_at_most_128_scores_and_2_look_ups(exploration: str) -> None:
    search = planned(exploration=exploration).search
    assert isinstance(search, GeneratorSearch)

    heads = search.heads if search.lookups < search.heads else 0
    landed = search.neighbours or search.partitions * PARTITION
    most = 2 + heads + search.lookups * (2 * search.steps + landed)  # 2: a slope in the middle
    most += search.hops * search.beam * NEIGHBOURS

    assert most <= 128
    assert search.lookups <= 2


@pytest.mark.parametrize(("columns", "partitions"), [(8, 1), (9, 8)])
def test_ascent_looks_into_more_partitions_where_arms_have_many_columns(
    columns: int, partitions: int
) -> None:
    search = planned(arm=Dense(columns), search="ascent").search

    assert isinstance(search, GradientAscent)
    assert search.partitions == partitions
