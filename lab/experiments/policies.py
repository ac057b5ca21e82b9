"""Policies by the names they have in papers, made for an environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from lab.experiments.environment import Environment
from lab.experiments.linear_view import LinearView, Projected, linear_arms
from lab.experiments.run import Agent

if TYPE_CHECKING:
    from lab.experiments.recipe import Preset

NEURAL = {
    "Exhaust TS": ("ts", "exhaustive", "neural"),
    "Exhaust UCB": ("ucb", "exhaustive", "neural"),
    "FastBandit TS": ("ts", "ascent", "neural"),
    "FastBandit UCB": ("ucb", "ascent", "neural"),
    "GANBandit TS": ("ts", "generator", "neural"),
    "GANBandit UCB": ("ucb", "generator", "neural"),
    "Default TS": ("ts", "auto", "auto"),
    "Default UCB": ("ucb", "auto", "auto"),
    "Default TS by scan": ("ts", "exhaustive", "auto"),
    "Default TS by ascent": ("ts", "ascent", "auto"),
    "Default TS by generator": ("ts", "generator", "auto"),
    "Default TS by spanner": ("ts", "spanner", "auto"),
    "Default UCB by scan": ("ucb", "exhaustive", "auto"),
    "Default UCB by ascent": ("ucb", "ascent", "auto"),
    "Default UCB by generator": ("ucb", "generator", "auto"),
    "NeuralLinear": ("ts", "exhaustive", "last-layer"),
    "Bootstrapped heads": ("ts", "exhaustive", "bootstrap"),
    "Variational layer": ("ts", "exhaustive", "variational"),
    "GANBandit window": ("ts", "generator", "neural"),
    "GANBandit fading": ("ts", "generator", "neural"),
}
"""Exploration, search and posterior of each neural policy."""

_HALF_LIFE = 500.0
_FORGETTING: dict[str, dict[str, float]] = {
    "GANBandit window": {"window": 1000},
    "GANBandit fading": {"half_life": _HALF_LIFE},
}
"""What each policy for rewards that drift keeps of the past."""

NINE = (
    "Random",
    "Overall best arm",
    "LinearTS",
    *(n for n in NEURAL if n.endswith((" TS", " UCB")) and not n.startswith("Default")),
)
"""The policies of the paper's comparison."""

_RARE = 0.1
"""About the deviation of a binary reward that comes once in a hundred rounds."""

_LINEAR = (
    "LinearTS",
    "LinUCB",
    "GLOC",
    "GLOC-TS",
    "QGLOC",
    "LinearTS fading",
    "LinUCB fading",
    "GLM-UCB",
    "KernelUCB",
)
_CONTINUUM = ("GP-UCB", "GP-TS", "HOO", "LinearTS")
_MORE_NEURAL = tuple(name for name in NEURAL if name not in NINE)
NAMES = (*NINE, "Learned best arm", *_MORE_NEURAL, *_LINEAR[1:], *_CONTINUUM[:3])


def agent_for(
    name: str,
    environment: Environment,
    *,
    seed: int,
    rounds: int,
    preset: Preset = "default",
    device: str = "cpu",
) -> Agent:
    """Make a policy that knows nothing yet; `rounds` will be played.

    Only "Overall best arm" knows anything: the one arm that earns most in those rounds.
    """
    known_name("policy", name, NAMES)
    if name in NEURAL:
        return _neural(name, environment, preset=preset, seed=seed, device=device)
    if environment.size is None:
        return _on_continuum(name, environment, seed=seed)
    if name in _LINEAR:
        return _linear(name, environment, seed=seed)
    return _context_free(name, environment, seed=seed, rounds=rounds)


def _neural(
    name: str, environment: Environment, *, preset: Preset, seed: int, device: str
) -> Agent:
    from fastbandit.bandit import Bandit
    from lab.experiments.paper_preset import bandit_parts
    from lab.experiments.recipe import recipe_for

    exploration, search, posterior = NEURAL[name]
    recipe = recipe_for(preset).merged({"training.reward": _FORGETTING.get(name, {})})
    parts = bandit_parts(recipe, exploration=exploration, search=search, posterior=posterior)
    arms = environment.arms
    return Bandit(
        arms=arms,
        ids=range(environment.size or 0) if arms is None else None,
        embed_ids=environment.embed_ids,
        context=environment.context,
        reward=environment.reward,
        **parts,
        seed=seed,
        device=device,
        progress=False,
    )


def _linear(name: str, environment: Environment, *, seed: int) -> Agent:
    from fastbandit import baselines
    from lab import baselines as research

    makers: dict[str, Callable[..., Agent]] = {
        "LinearTS": baselines.LinearTS,
        "LinUCB": baselines.LinUCB,
        "LinearTS fading": partial(baselines.LinearTS, half_life=_HALF_LIFE),
        "LinUCB fading": partial(baselines.LinUCB, half_life=_HALF_LIFE),
        "GLOC": research.GLOC,
        "GLOC-TS": research.GLOCTS,
        "QGLOC": research.QGLOC,
        "GLM-UCB": research.GLMUCB,
        "KernelUCB": research.KernelUCB,
    }
    is_binary = environment.reward == "binary"
    view = LinearView.of(environment.context, is_centred=is_binary)
    arms, is_disjoint = linear_arms(environment)
    settings: dict[str, Any] = {"arms": arms, "context": view.columns, "seed": seed}
    settings["reward"] = environment.reward
    if name != "KernelUCB":
        settings["intercept"] = is_binary
    if is_disjoint and not name.startswith(("LinearTS", "LinUCB")):
        raise SettingError(
            f"{name} needs features of its arms: got {environment.name}, whose arms are ids "
            f"alone. Use LinearTS or LinUCB, which can learn a model for each arm."
        )
    if name.startswith("LinearTS") and is_binary:
        settings["scale"] = _RARE  # its draws assume a deviation of 1
    if is_disjoint:
        settings |= {"disjoint": True, "ids": range(environment.size or 0)}
    return Projected(makers[name](**settings), view)


def _context_free(name: str, environment: Environment, *, seed: int, rounds: int) -> Agent:
    from fastbandit import baselines

    ids = range(environment.size or 0)
    common: dict[str, Any] = {"ids": ids, "context": environment.context, "seed": seed}
    if name == "Random":
        return baselines.RandomBandit(**common)
    if name == "Overall best arm":
        return baselines.FixedArmBandit(row=_best_row(environment, rounds), **common)
    if name == "Learned best arm":
        return baselines.BestArmBandit(reward=environment.reward, **common)
    raise SettingError(
        f"{name} needs a continuum: got {environment.name}, which has {environment.size} arms. "
        f"Use one of {', '.join(NINE)}."
    )


def _best_row(environment: Environment, rounds: int) -> int:
    if not hasattr(environment, "best_arm"):
        raise SettingError(
            f"Overall best arm needs the expected rewards of all arms: got {environment.name}, a "
            f"log, which knows no hindsight. Use Learned best arm, or fit a simulator to the log."
        )
    return int(environment.best_arm(rounds))


def _on_continuum(name: str, environment: Environment, *, seed: int) -> Agent:
    from lab import baselines as research

    makers: dict[str, Callable[..., Agent]] = {
        "GP-UCB": research.GaussianProcessUCB,
        "GP-TS": research.GaussianProcessTS,
        "HOO": research.HOO,
        "LinearTS": research.GridLinearTS,
    }
    if name not in makers:
        raise SettingError(
            f"{name} needs a catalogue of arms: got {environment.name}, a continuum. Use one of "
            f"{', '.join((*NEURAL, *makers))}."
        )
    return makers[name](box=environment.arms, seed=seed)
