"""Tiny environments and agents of the bake-off, whose right answers are known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.features.kinds import Dense
from fastbandit.types import Inputs
from lab.bakeoff.play import Agent
from lab.bakeoff.sets import Log, Set, Setting
from lab.bakeoff.systems import System
from lab.experiments.environment import Environment, Tabled

ARMS = 4
ROUNDS = 40


def stripes(seed: int = 0, *, rounds: int = ROUNDS) -> Tabled:
    """Return an environment in which the context is a flag for the right arm: it earns 1, others 0.

    Of its rounds a quarter is for each arm.
    """
    right = np.arange(rounds) % ARMS
    flags = np.eye(ARMS, dtype=np.float32)[right]
    return Tabled("stripes", Dense(ARMS), Inputs(dense=flags), flags.copy(), seed=seed)


def load_stripes(data: Path | None, seed: int) -> Environment:
    return stripes(seed)


STRIPES = Set("stripes", "Stripes", load_stripes, ROUNDS, 10)


def warm(environment: Tabled) -> Setting:
    """Return an environment whose agents begin from a log of one round."""
    return Setting(
        environment, Log(environment.contexts(0, 1), np.zeros(1, dtype=np.int64), np.zeros(1))
    )


class Constant:
    """Takes one arm for ever, and records all of its updates."""

    def __init__(self, arm: int = 0) -> None:
        self.arm = arm
        self.selected: list[NDArray[Any]] = []
        self.updates: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def select(self, contexts: Any, /) -> NDArray[np.int64]:
        self.selected.append(contexts)
        return np.full(len(contexts), self.arm)

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.updates.append((contexts, arms, rewards))


class Oracle(Constant):
    """Reads the right arm off the flags of a context."""

    def select(self, contexts: Any, /) -> NDArray[np.int64]:
        return np.asarray(contexts).argmax(axis=1)


def make_constant(environment: Environment, seed: int, rounds: int) -> Agent:
    return Constant()


def make_broken(environment: Environment, seed: int, rounds: int) -> Agent:
    raise ValueError("no such thing")


def make_missing(environment: Environment, seed: int, rounds: int) -> Agent:
    raise ModuleNotFoundError("No module named 'nowhere'")


class Endless(Constant):
    def select(self, contexts: Any, /) -> NDArray[np.int64]:
        while True:
            pass


def make_endless(environment: Environment, seed: int, rounds: int) -> Agent:
    return Endless()


CONSTANT = System("Constant", "plain regressions", make_constant)
BROKEN = System("Broken", "plain regressions", make_broken)
MISSING = System("Missing", "plain regressions", make_missing)
ENDLESS = System("Endless", "plain regressions", make_endless)
