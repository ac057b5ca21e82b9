"""What roles do by default, and what can be asked of a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of
from torch import Tensor

from fastbandit import Exhaustive, GradientAscent, Greedy, ThompsonSampling, UpperConfidence
from fastbandit.errors import SettingError
from fastbandit.interfaces import (
    ArmSpace,
    Exploration,
    Posterior,
    RewardModel,
    Search,
    asks,
    declared,
    is_scan,
    scans,
)
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.types import Inputs

CONTEXTS = torch.from_numpy(vectors_of(3, 2))
ARMS = torch.from_numpy(vectors_of(5, 2, seed=1))[None]


class BareBowl(BowlReward):
    """A bowl that has what every reward model has, and nothing more."""

    encode_arms = RewardModel.encode_arms


@dataclass(frozen=True)
class Fitted:
    """What fitting made of a search."""

    declared: Search

    def best(self, *arguments: Any, **options: Any) -> Any:
        return self.declared.best(*arguments, **options)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {}, {}


@pytest.mark.parametrize(
    ("exploration", "asked"),
    [(Greedy(), "mean"), (ThompsonSampling(), "draw"), (UpperConfidence(), "upper")],
)
def test_an_exploration_says_what_it_asks_of_a_posterior(
    exploration: Exploration, asked: str
) -> None:
    assert asks(exploration) == asked


def test_a_model_without_a_batched_bound_has_that_of_one_decision() -> None:
    model = BareBowl(2)

    beside = model.upper_beside(CONTEXTS, torch.rand(3, 3), width=2.0)

    assert torch.equal(beside(ARMS), model.upper(CONTEXTS, width=2.0)(ARMS))


def test_a_model_has_no_own_parts_and_cuts_no_context_by_default() -> None:
    model = BareBowl(2)

    assert model.own(CONTEXTS, seeds=seeds_of(3), scale=1.0) is None
    assert not model.is_clipped(Inputs(dense=vectors_of(3, 2))).any()


def test_a_model_that_cannot_be_compiled_says_which_method_is_missing() -> None:
    with pytest.raises(SettingError, match="BareBowl has no method compiled"):
        BareBowl(2).compiled("mean")


def test_a_model_that_embeds_no_points_says_which_method_is_missing() -> None:
    with pytest.raises(SettingError, match="BareBowl has no method encode_arms"):
        BareBowl(2).encode_arms(ARMS)


def test_a_fitted_search_is_declared_as_what_was_fitted() -> None:
    search = GradientAscent()

    assert declared(Fitted(search)) is search
    assert declared(search) is search


def test_a_fitted_search_scans_what_its_declaration_scans() -> None:
    assert scans(Fitted(Exhaustive()), None)
    assert not scans(Fitted(GradientAscent()), 1_000_000)


def test_an_exhaustive_search_is_a_scan_and_an_ascent_is_none() -> None:
    assert is_scan(Exhaustive())
    assert not is_scan(GradientAscent())


@pytest.mark.parametrize(
    ("part", "role"),
    [
        (Exhaustive(), Search),
        (Greedy(), Exploration),
        (DropoutPosterior(), Posterior),
        (catalogue_of(vectors_of(4, 2)), ArmSpace),
    ],
)
def test_parts_are_seen_to_play_their_roles(part: object, role: type) -> None:
    assert isinstance(part, role)
    assert not isinstance(object(), role)
