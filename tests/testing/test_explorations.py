"""Every exploration, of every reward model, through the law of explorations."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import seeds_of
from trained_models import DEEP, MODELS, embedded, trained

from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.interfaces import Exploration
from fastbandit.testing.explorations import check_exploration

EXPLORATIONS: dict[str, Exploration] = {
    "greedy": Greedy(),
    "ucb": UpperConfidence(0.5),
    "ucb of a batch": UpperConfidence(0.5, batched=True),
    "ts": ThompsonSampling(0.7),
}


@pytest.mark.parametrize(("name", "exploration"), [(m, e) for m in MODELS for e in EXPLORATIONS])
def test_explorations(name: str, exploration: str) -> None:
    model = trained(name, DEEP, "real")

    check_exploration(EXPLORATIONS[exploration], model, *embedded(model), seeds=seeds_of(4))


class Restless(ThompsonSampling):
    """An exploration that cannot be quiet."""

    def quiet(self) -> Any:
        return self


def test_an_exploration_that_is_never_quiet_is_caught() -> None:
    model = trained("dropout", DEEP, "real")

    with pytest.raises(AssertionError, match="the score without exploring"):
        check_exploration(Restless(0.7), model, *embedded(model), seeds=seeds_of(4))
