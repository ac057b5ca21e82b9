"""Who plays: two towers, Vowpal Wabbit, linear policies, contextualbandits, and the default."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from fastbandit.errors import SettingError
from lab.bakeoff.contextual_bandits import ContextualBandits
from lab.bakeoff.history import Rows
from lab.bakeoff.play import Agent
from lab.bakeoff.ridge import Disjoint
from lab.bakeoff.systems import OURS, System
from lab.bakeoff.vowpal_wabbit import VowpalWabbit
from lab.equal_latency.retrieval import KINDS
from lab.equal_latency.two_towers import EXPLORATIONS, TwoTowers
from lab.experiments.environment import Environment
from lab.experiments.policies import agent_for

TOWERS, VOWPAL_WABBIT, LINEAR, AN_ARM = "two towers", "Vowpal Wabbit", "linear", "a model an arm"
FEW_ARMS = 1_000
SQUARECB = "--squarecb --gamma_scale 10000"
LARGE = f"{SQUARECB} --large_action_space"
CROSSES = ("ua", "uuaa")
"""Products of two numbers of the context and two of the arm beside those of one and one."""
MOST_SECONDS = 400.0
"""So long a run of Vowpal Wabbit may take, as its first decision says; others are ended later."""

MOST_BYTES = 4 * 10**9
_BYTES_OF_EXAMPLE = 33_000  # of Vowpal Wabbit, as `bytes_per_arm` found it at 1,000 and 5,000 arms
_WORK_OF_LEARNING = 2.0  # times that of a decision: it predicts again for all arms


class Patient:
    """Vowpal Wabbit, which stops before the first round that would last too long."""

    def __init__(self, environment: Environment, rounds: int, **settings: Any) -> None:
        before = resident_bytes()
        self._agent, self._rounds = VowpalWabbit(environment, **settings), rounds
        self.bytes_per_arm = (resident_bytes() - before) / (environment.size or 1)
        self._is_timed = False

    def select(self, contexts: Any, /) -> Rows:
        """Return the arms that Vowpal Wabbit draws."""
        return self._agent.select(contexts)

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn, if time allows."""
        if not self._is_timed:
            check_time(self._agent.seconds_of_one(contexts), self._rounds)
            self._is_timed = True
        self._agent.update(contexts=contexts, arms=arms, rewards=rewards)


def check_time(seconds: float, rounds: int) -> None:
    """Raise where rounds would take too long, each a decision and what is learned from it."""
    whole = (1.0 + _WORK_OF_LEARNING) * seconds * rounds
    if whole > MOST_SECONDS:
        raise SettingError(
            f"Takes too long: {1e3 * seconds:,.1f} ms a decision make about {whole:,.0f} s for "
            f"{rounds:,} rounds with learning, and {MOST_SECONDS:,.0f} s were to be had."
        )


def resident_bytes() -> int:
    """Return the memory that this process has now; 0 where the system does not say."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0


def _towers(
    retrieval: str, exploration: str, environment: Environment, seed: int, rounds: int
) -> Agent:
    return TwoTowers(environment, seed, exploration, retrieval)


def _vowpal_wabbit(
    exploration: str, crosses: tuple[str, ...], environment: Environment, seed: int, rounds: int
) -> Agent:
    _check_memory(environment)
    has_ids = environment.embed_ids or environment.arms is None
    return Patient(
        environment,
        rounds,
        exploration=exploration,
        seed=seed,
        crosses=crosses,
        has_ids=has_ids,
    )


def _check_memory(environment: Environment) -> None:
    needed = _BYTES_OF_EXAMPLE * (environment.size or 0)
    if needed > MOST_BYTES:
        raise SettingError(
            f"Takes too much memory: about {_BYTES_OF_EXAMPLE / 1000:.0f} kB an arm, parsed, make "
            f"{needed / 1e9:,.1f} GB, and {MOST_BYTES / 1e9:.0f} GB were to be had."
        )


def _policy(name: str, environment: Environment, seed: int, rounds: int) -> Agent:
    return agent_for(name, environment, seed=seed, rounds=rounds)


def _disjoint(environment: Environment, seed: int, rounds: int) -> Agent:
    _check_few(environment)
    size = environment.size or 0
    return Disjoint(size, environment.context, seed, width=0.1, is_drawn=False)


def _contextual_bandits(environment: Environment, seed: int, rounds: int) -> Agent:
    _check_few(environment)
    is_real = environment.reward != "binary"  # which logistic regressions do not take
    explorer = "EpsilonGreedy" if is_real else "SoftmaxExplorer"
    return ContextualBandits(environment, explorer=explorer, is_linear=is_real, seed=seed)


def _check_few(environment: Environment) -> None:
    if (environment.size or 0) > FEW_ARMS:
        raise SettingError(
            f"Has a model for each arm and sees no features of arms: not run with more than "
            f"{FEW_ARMS:,} arms, and there are {environment.size:,}."
        )


SYSTEMS: tuple[System, ...] = (
    System("fastbandit walk", OURS, partial(_policy, "Default TS by generator")),
    System("fastbandit scan", OURS, partial(_policy, "Default TS by scan")),
    *(
        System(f"towers {kind} {name}", TOWERS, partial(_towers, kind, name))
        for kind in KINDS
        for name in EXPLORATIONS
    ),
    System("VW SquareCB", VOWPAL_WABBIT, partial(_vowpal_wabbit, SQUARECB, ("ua",))),
    System("VW SquareCB crosses", VOWPAL_WABBIT, partial(_vowpal_wabbit, SQUARECB, CROSSES)),
    System("VW epsilon crosses", VOWPAL_WABBIT, partial(_vowpal_wabbit, "epsilon", CROSSES)),
    System("VW large crosses", VOWPAL_WABBIT, partial(_vowpal_wabbit, LARGE, CROSSES)),
    System("LinUCB", LINEAR, partial(_policy, "LinUCB")),
    System("disjoint LinUCB", AN_ARM, _disjoint),
    System("contextualbandits", AN_ARM, _contextual_bandits),
)
"""All systems, in the order of tables."""

NAMES = tuple(system.name for system in SYSTEMS)
