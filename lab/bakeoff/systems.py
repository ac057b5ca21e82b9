"""Who plays: fastbandit's policies and others', each made for an environment, a seed and rounds.

To add one, write a function `(environment, seed, rounds) -> agent` and put a `System` into
`SYSTEMS`; an agent has `select` and `update` (`lab.bakeoff.play.Agent`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.bakeoff.contextual_bandits import EXPLORERS, ContextualBandits
from lab.bakeoff.logistic import HierarchicalLogistic
from lab.bakeoff.play import Agent
from lab.bakeoff.ridge import Disjoint
from lab.bakeoff.vowpal_wabbit import EXPLORATIONS, VowpalWabbit
from lab.experiments.environment import Environment
from lab.experiments.policies import agent_for

Make = Callable[[Environment, int, int], Agent]
"""Makes an agent for an environment, with a seed, for so many rounds."""

OURS = "fastbandit"
PLAIN = "plain regressions"
YARDSTICK = "yardsticks"


@dataclass(frozen=True)
class System:
    """An agent by name, the library or family it is of, and the sets it plays (None: all)."""

    name: str
    family: str
    make: Make
    sets: tuple[str, ...] | None = None


def _ours(name: str, environment: Environment, seed: int, rounds: int) -> Agent:
    return agent_for(name, environment, seed=seed, rounds=rounds)


def _disjoint(
    width: float, is_drawn: bool, environment: Environment, seed: int, rounds: int
) -> Agent:
    return Disjoint(
        environment.size or 0, environment.context, seed, width=width, is_drawn=is_drawn
    )


def _logistic(width: float, environment: Environment, seed: int, rounds: int) -> Agent:
    return HierarchicalLogistic(environment, seed=seed, width=width)


def _vowpal_wabbit(exploration: str, environment: Environment, seed: int, rounds: int) -> Agent:
    return VowpalWabbit(environment, exploration=exploration, seed=seed)


def _contextual_bandits(
    explorer: str, is_linear: bool, environment: Environment, seed: int, rounds: int
) -> Agent:
    return ContextualBandits(environment, explorer=explorer, is_linear=is_linear, seed=seed)


def _on_plain_words(explorer: str, environment: Environment, seed: int, rounds: int) -> Agent:
    return ContextualBandits(
        environment, explorer=explorer, is_linear=False, seed=seed, has_plain_words=True
    )


SYSTEMS: tuple[System, ...] = (
    *(
        System(name, OURS, partial(_ours, name))
        for name in (
            "Default TS",
            "Default UCB",
            "Exhaust TS",
            "NeuralLinear",
            "LinearTS",
            "LinUCB",
        )
    ),
    *(System(name, YARDSTICK, partial(_ours, name)) for name in ("Random", "Overall best arm")),
    System("Disjoint LinTS .05", PLAIN, partial(_disjoint, 0.05, True)),
    System("Disjoint LinTS .1", PLAIN, partial(_disjoint, 0.1, True)),
    System("Disjoint LinUCB .1", PLAIN, partial(_disjoint, 0.1, False)),
    System("Hierarchical logistic .25", PLAIN, partial(_logistic, 0.25)),
    System("Hierarchical logistic .5", PLAIN, partial(_logistic, 0.5)),
    *(
        System(
            f"{explorer} {word}",
            "contextualbandits",
            partial(_contextual_bandits, explorer, is_linear),
        )
        for is_linear, word in ((False, "logistic"), (True, "ridge"))
        for explorer in EXPLORERS
    ),
    *(
        System(
            f"{explorer} plain words",
            "contextualbandits",
            partial(_on_plain_words, explorer),
            sets=("bibtex",),
        )
        for explorer in EXPLORERS
    ),
    *(
        System(f"VW {exploration}", "Vowpal Wabbit", partial(_vowpal_wabbit, exploration))
        for exploration in EXPLORATIONS
    ),
)
"""All systems, in the order of tables where they are level."""

NAMES = tuple(system.name for system in SYSTEMS)
