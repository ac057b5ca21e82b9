"""Every reward model through the laws of fastbandit/testing/posteriors.py."""

from __future__ import annotations

import pytest
import torch
from fakes import BowlReward, vectors_of
from torch import Generator, Tensor
from trained_models import DEEP, MODELS, PLAIN, embedded, trained

from fastbandit.reward.model import NetworkSettings
from fastbandit.score import Score
from fastbandit.testing.posteriors import check_model


@pytest.mark.parametrize("kind", ["real", "binary"])
@pytest.mark.parametrize("settings", [DEEP, PLAIN], ids=["deep and wide", "plain"])
@pytest.mark.parametrize("name", list(MODELS))
def test_reward_models(name: str, settings: NetworkSettings, kind: str, rng: Generator) -> None:
    model = trained(name, settings, kind)

    check_model(model, *embedded(model), rng=rng)


class Certain(BowlReward):
    """A model whose draws are all its mean."""

    def draw(self, contexts: Tensor, uniforms: Tensor, *, scale: float) -> Score:
        return self.mean(contexts)


def test_a_posterior_without_spread_is_caught(rng: Generator) -> None:
    contexts, arms = (torch.from_numpy(vectors_of(count, 3)) for count in (4, 9))

    with pytest.raises(AssertionError, match="two draws return the same scores"):
        check_model(Certain(3), contexts, arms, rng=rng)
