"""A demo whose policies train for moments only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastbandit.demo.comparison import DemoResult, run_demo
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, blueprint
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

POLICIES = (
    "Random",
    "LinearTS",
    "Exhaust TS",
    "FastBandit TS",
    "GANBandit TS",
    "GANBandit UCB",
)
SHORT = Training(
    reward=RewardFit(iterations=20), generator=GeneratorFit(iterations=20, targets=64, sample=32)
)


def short_blueprint(parts: PartNames, **settings: Any) -> Blueprint:
    """Return a blueprint that trains for moments only."""
    return replace(blueprint(parts, **settings), training=SHORT)


def quick_demo(**settings: Any) -> DemoResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbandit.bandit.blueprint", short_blueprint)
        return run_demo(**{"arms": 300, "rounds": 150, "batch": 60, **settings})
