"""Names stand for parts."""

from __future__ import annotations

from typing import Any

import pytest

from fastbandit import Exhaustive, GeneratorSearch, GradientAscent, Greedy
from fastbandit.arms.neighbour_graph import NEIGHBOURS
from fastbandit.arms.partitions import PARTITION
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image
from fastbandit.settings.blueprint import (
    ArmEffectsPosterior,
    Blueprint,
    DropoutPosterior,
    GradientPosterior,
    LastLayerPosterior,
    read,
    write,
)
from fastbandit.settings.presets import blueprint


def planned(**changes: Any) -> Blueprint:
    settings: dict[str, Any] = {
        "context": Dense(4),
        "arm": Dense(3),
        "reward": "real",
        "exploration": "ts",
        "search": "generator",
        "preset": "default",
        "posterior": "auto",
        "seed": 0,
    }
    return blueprint(**{**settings, **changes})


@pytest.mark.parametrize(
    ("explore", "exploration", "posterior"),
    [
        ("ts", ThompsonSampling, DropoutPosterior),
        ("ucb", UpperConfidence, GradientPosterior),
        ("greedy", Greedy, DropoutPosterior),
    ],
)
@pytest.mark.parametrize("preset", ["default", "paper", "paper-scaled"])
def test_each_exploration_has_its_own_kind_of_doubt(
    explore: str, exploration: type, posterior: type, preset: str
) -> None:
    plan = planned(exploration=explore, preset=preset, posterior="neural")

    assert isinstance(plan.exploration, exploration)
    assert isinstance(plan.posterior, posterior)


@pytest.mark.parametrize(
    ("preset", "explore", "posterior"),
    [
        ("default", "ts", LastLayerPosterior),
        ("default", "ucb", GradientPosterior),
        ("paper", "ts", DropoutPosterior),
        ("paper-scaled", "ts", DropoutPosterior),
    ],
)
def test_arms_with_features_and_ids_are_doubted_by_the_last_layer(
    preset: str, explore: str, posterior: type
) -> None:
    arm = FeaturesAndIds(Dense(3), Ids(5))

    plan = planned(arm=arm, preset=preset, exploration=explore, posterior="neural")

    assert isinstance(plan.posterior, posterior)


@pytest.mark.parametrize("arm", [Dense(3), Ids(5), FeaturesAndIds(Dense(3), Ids(5))])
def test_arms_of_a_catalogue_have_effects_of_their_own_by_default(arm: Any) -> None:
    assert isinstance(planned(arm=arm).posterior, ArmEffectsPosterior)


def test_images_train_with_fewer_and_smaller_steps() -> None:
    images, numbers = (planned(context=c).training.reward for c in (Image(8, 9), Dense(4)))

    assert (images.iterations, images.batch) == (200, 128)
    assert (numbers.iterations, numbers.batch) == (1000, 256)


def test_doubt_may_be_named() -> None:
    assert planned(posterior="last-layer").posterior == LastLayerPosterior()
    assert planned(posterior="gradient").posterior == GradientPosterior()


@pytest.mark.parametrize("role", ["explore", "search", "posterior"])
def test_an_unknown_part_may_be_given_as_an_object(role: str) -> None:
    with pytest.raises(SettingError, match=r"got 'xyz'\. Use one of them, or give an object\."):
        planned(**{role: "xyz"})


def test_an_unknown_preset_is_one_of_those_there_are() -> None:
    with pytest.raises(SettingError, match=r"got 'xyz'\. Use one of them\.$"):
        planned(preset="xyz")


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("generator", GeneratorSearch), ("ascent", GradientAscent), ("exhaustive", Exhaustive)],
)
def test_searches_are_known_by_name(name: str, kind: type, preset: str) -> None:
    assert isinstance(planned(search=name, preset=preset).search, kind)


def test_the_papers_generator_is_the_printed_recipe() -> None:
    search = planned(preset="paper").search
    training = planned(preset="paper").training

    assert isinstance(search, GeneratorSearch)
    assert (search.heads, search.lookups, search.neighbours) == (1, 1, 3)
    assert (search.told, search.steps, search.hops, search.bounded) == ("gaussian", 0, 0, False)
    assert training.generator.target == "ascent"


def test_the_papers_two_readings_differ_in_their_penalties() -> None:
    assert planned(preset="paper").network.penalties == "constant"
    assert planned(preset="paper-scaled").network.penalties == "per observation"


@pytest.mark.parametrize("dim", [2, 8, 9, 100])
def test_the_default_embedding_grows_once_with_the_features(dim: int) -> None:
    assert planned(arm=Dense(dim)).network.embedding == (8 if dim <= 8 else 16)


def test_objects_are_taken_as_they_are() -> None:
    search, explore = GradientAscent(starts=3), UpperConfidence(0.25)

    plan = planned(search=search, exploration=explore, posterior=LastLayerPosterior(3.0))

    assert plan.search is search
    assert plan.exploration is explore
    assert plan.posterior == LastLayerPosterior(3.0)


@pytest.mark.parametrize("preset", ["default", "paper", "paper-scaled"])
@pytest.mark.parametrize("explore", ["ts", "ucb", "greedy"])
def test_a_blueprint_can_be_written_down_and_read_back(preset: str, explore: str) -> None:
    plan = planned(preset=preset, exploration=explore, arm=Ids(7))

    assert read(write(plan)) == plan


def test_only_known_parts_can_be_written_and_read() -> None:
    with pytest.raises(SettingError, match="got a object"):
        write(object())
    with pytest.raises(SnapshotError, match="'Exhaustive' with"):
        read({"part": "Exhaustive", "speed": 3})


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("explore", ["ts", "ucb"])
def test_the_default_recipe_keeps_within_128_scores_and_2_look_ups(
    preset: str, explore: str
) -> None:
    search = planned(preset=preset, exploration=explore).search
    assert isinstance(search, GeneratorSearch)

    slope = 2 if search.told == "draw" else 0
    heads = search.heads if search.lookups < search.heads else 0
    landed = search.neighbours or search.partitions * PARTITION
    most = slope + heads + search.lookups * (2 * search.steps + landed)
    most += search.hops * search.beam * NEIGHBOURS

    assert most <= 128
    assert search.lookups <= 2
