"""What can be frozen decides as before; what cannot says what to use instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes import vectors_of
from hardly_trained import CONTEXTS, COUNT, FEW, trained

from fastbandit import Bandit, Box, Dense, GeneratorSearch, GradientAscent, Image
from fastbandit.errors import SettingError
from fastbandit.reward.encoders import DenseEncoder
from fastbandit.runtime.freezing import can_freeze, freeze_encoding, untrained
from fastbandit.types import Inputs

pytestmark = pytest.mark.usefixtures("hardly_any_training")

IMAGES = np.random.default_rng(0).random((COUNT, 8, 8))
UNFROZEN: dict[str, tuple[dict[str, Any], Any, str]] = {
    "exhaustive ucb": (
        {"exploration": "ucb", "search": "exhaustive"},
        CONTEXTS,
        "search='generator'",
    ),
    "ucb of dropout": (
        {"exploration": "ucb", "posterior": "dropout"},
        CONTEXTS,
        "Thompson sampling",
    ),
    "ts of gradients": ({"posterior": "gradient"}, CONTEXTS, "Thompson sampling"),
    "a box": ({"arms": Box((0.0, 0.0), (1.0, 1.0))}, CONTEXTS, "catalogue"),
    "images": ({"context": Image(8, 8)}, IMAGES, "numbers, words or ids"),
    "an ascent from the best of many points": (
        {"search": GradientAscent(scan=64)},
        CONTEXTS,
        "scan=0",
    ),
    "nearest neighbours": ({"search": GeneratorSearch(neighbours=3)}, CONTEXTS, "neighbours=0"),
}
"""Settings, contexts, and what the refusal advises."""


@pytest.mark.slow
@pytest.mark.parametrize("name", UNFROZEN)
def test_what_cannot_be_frozen_says_what_to_use_instead(name: str) -> None:
    settings, contexts, advice = UNFROZEN[name]
    bandit = trained(contexts, **settings)

    with pytest.raises(SettingError, match="cannot be frozen") as refusal:
        bandit.freeze()

    assert advice in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("arms", [1, 10, 60])
@pytest.mark.parametrize("exploration", ["ts", "ucb"])
def test_before_an_update_any_arm_is_as_likely_as_another(arms: int, exploration: str) -> None:
    bandit = Bandit(arms=FEW[:arms], context=4, exploration=exploration)
    frozen = bandit.freeze()
    asked = bandit.select(CONTEXTS, k=3)
    found = frozen.select(CONTEXTS, k=3, seeds=asked.seeds)

    assert found.uniform
    assert found.arms == asked.arms
    assert np.array_equal(found.scores, asked.scores)
    one = frozen.select_one(CONTEXTS[0], seed=int(asked.seeds[0]))
    assert one.arm == bandit.select(CONTEXTS[:1], seeds=asked.seeds[:1]).arms[0]
    assert one.score == 0.0
    assert frozen.propensities(CONTEXTS[0], epsilon=0.0).of(one.arm) == 1 / arms


def test_a_policy_that_can_be_frozen_is_known_without_freezing_it() -> None:
    assert can_freeze(Bandit(arms=FEW, context=4, search="exhaustive").policy)
    assert not can_freeze(Bandit(arms=Box([0.0], [1.0]), context=4, search="ascent").policy)


def test_an_untrained_policy_is_frozen_as_a_greedy_scan() -> None:
    policy = untrained(Bandit(arms=FEW, context=4).policy)

    assert can_freeze(policy)
    assert policy.arms.all().points.shape[1] == len(FEW)


def test_a_frozen_encoding_embeds_as_its_encoder_does() -> None:
    encoder = DenseEncoder(Dense(4), 3, rng=torch.Generator().manual_seed(1))
    inputs = Inputs(dense=vectors_of(9, 4))
    encoder.fit(inputs)

    encoding = freeze_encoding(Dense(4), encoder, what="contexts")

    expected = encoder(inputs).detach().numpy()
    np.testing.assert_allclose(encoding.embed(inputs), expected, rtol=1e-4, atol=1e-5)
