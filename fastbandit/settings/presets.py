"""Settings by name: "default" is what was measured to work, "paper" what was printed.

A file of settings stands over one of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, Features, FeaturesAndIds, Ids, Image, Point, Sparse
from fastbandit.features.rewards import RewardKind
from fastbandit.interfaces import Exploration, Search
from fastbandit.reward.model import NetworkSettings
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.search.spanner import SpannerSearch
from fastbandit.settings.blueprint import (
    ArmEffectsPosterior,
    Blueprint,
    BootstrapPosterior,
    DropoutPosterior,
    FourierPosterior,
    GradientPosterior,
    LastLayerPosterior,
    Posterior,
    VariationalPosterior,
)
from fastbandit.settings.files import BASES, Settings, is_settings_file, read_settings
from fastbandit.training.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

Preset = str | Path | Settings
"""A preset's name, the path of a file of settings, or such settings."""

_EXPLORATIONS = ("ts", "ucb", "greedy")
_SEARCHES = ("auto", "generator", "ascent", "exhaustive", "spanner")
_SCALES = {"weights": 0.2, "weights of words": 0.3, "constants": 0.7, "waves": 0.7, "network": 0.7}
_BOUNDS = {"weights": 0.1, "weights of words": 0.1, "constants": 0.3, "waves": 1.0, "network": 0.3}
_FEW = 1_000  # arms with features: up to here a compiled scan is about as quick as a walk
_MOST_EFFECTS = 20_000  # ids that have weights of their own by default: all are scanned
_POSTERIORS = (
    "auto",
    "neural",
    "dropout",
    "gradient",
    "last-layer",
    "bootstrap",
    "variational",
    "arm-effects",
    "fourier",
)


def blueprint(
    *,
    context: Features,
    arm: Features,
    reward: RewardKind,
    exploration: str | Exploration,
    search: str | Search,
    preset: Preset,
    posterior: str | Posterior,
    seed: int,
) -> Blueprint:
    """Put the parts together that these names stand for; objects are taken as they are."""
    settings = settings_for(preset)
    base, is_paper = settings.base, settings.base != "default"
    is_scanned = search in ("auto", "exhaustive") or isinstance(search, Exhaustive)
    is_listed = isinstance(arm, Ids) and arm.count <= _MOST_EFFECTS
    if posterior == "auto" and not isinstance(arm, Point) and not is_paper:
        posterior = "arm-effects"
    if posterior == "auto" and isinstance(arm, Point) and not is_paper:
        posterior = "fourier"
    is_fourier = isinstance(posterior, FourierPosterior) or posterior == "fourier"
    has_effects = isinstance(posterior, ArmEffectsPosterior) or posterior == "arm-effects"
    if has_effects and isinstance(arm, Point):
        raise SettingError(
            "Arm effects need a catalogue of arms: got a box, every point of which is an arm that "
            "is hardly chosen twice. Leave out posterior=."
        )
    if is_fourier:
        _check_fourier(arm)
    is_named = isinstance(arm, Ids) and search != "auto"  # a scan that was asked for
    has_weights = has_effects and is_scanned and (is_listed or is_named)
    if isinstance(exploration, str):
        widths = _widths(has_weights, has_effects, is_fourier, has_words=_has_words(context))
        exploration = settings.over(_exploration(exploration, is_paper, widths))
    if isinstance(posterior, str):
        posterior = settings.over(_posterior(posterior, exploration, context, arm, is_paper))
    is_free = search == "auto"
    if search == "auto":  # arms' own weights are scanned, waves are climbed, a network is searched
        search = "exhaustive" if has_weights else "ascent" if is_fourier else "generator"
    if isinstance(search, str):
        found = _search(search, arm, is_paper, is_fourier=is_fourier)
        is_bound = isinstance(exploration, UpperConfidence)  # which cannot be scanned when frozen
        if isinstance(found, GeneratorSearch) and is_free and not (is_paper or is_bound):
            found = replace(found, exhaustive_up_to=_FEW)
        search = settings.over(found)
    columns = settings.of("network").get("embedding")
    has_bound = isinstance(posterior, GradientPosterior) or (
        isinstance(posterior, ArmEffectsPosterior) and isinstance(exploration, UpperConfidence)
    )
    network = (
        _paper_network(base)
        if is_paper
        else _default_network(context, arm, columns, has_bound=has_bound)
    )
    training = (
        _paper_training(posterior)
        if is_paper
        else _default_training(network, context, has_bound=has_bound)
    )
    return Blueprint(
        context=context,
        arm=arm,
        reward=reward,
        network=settings.over(network),
        posterior=posterior,
        exploration=exploration,
        search=search,
        training=Training(settings.over(training.reward), settings.over(training.generator)),
        seed=seed,
    )


def settings_for(preset: Any) -> Settings:
    """Give the settings that a name, a file or an object stands for."""
    if isinstance(preset, Settings):
        return preset
    if is_settings_file(preset):
        return read_settings(preset)
    known_name("preset", preset, BASES)
    return Settings(base=preset)


def _widths(has_weights: bool, has_effects: bool, is_fourier: bool, *, has_words: bool) -> str:
    if has_weights:
        return "weights of words" if has_words else "weights"
    return "constants" if has_effects else "waves" if is_fourier else "network"


def _exploration(name: str, is_paper: bool, widths: str) -> Exploration:
    """Return an exploration as wide as was measured to suit what arms have of their own."""
    known_name("exploration", name, _EXPLORATIONS, or_object=True)
    if name == "ts":
        return ThompsonSampling(scale=1.0 if is_paper else _SCALES[widths])
    if name == "ucb":
        width = 1.0 if is_paper else _BOUNDS[widths]
        return UpperConfidence(width=width, batched=widths == "waves")
    return Greedy()


def _search(name: str, arm: Features, is_paper: bool, *, is_fourier: bool) -> Search:
    known_name("search", name, _SEARCHES, or_object=True)
    if name == "exhaustive":
        return Exhaustive()
    if name == "spanner":
        return SpannerSearch()
    if name == "ascent" and is_fourier:  # a draw has many tops: climb from the best of many points
        return GradientAscent(starts=4, steps=20, far=0, scan=256)
    if name == "ascent":
        return _PAPER_ASCENT if is_paper else GradientAscent(far=0 if _columns(arm) <= 4 else 64)
    if is_paper:
        return _PAPER_GENERATOR
    # The best arm is harder to come by in more dimensions: look at more arms.
    if _columns(arm) <= 4:
        return GeneratorSearch(partitions=1, far=0, steps=1, hops=2, beam=1)
    return (
        GeneratorSearch()
        if _columns(arm) <= 8
        else GeneratorSearch(partitions=4, far=64, steps=4, hops=6, beam=4)
    )


def _posterior(
    name: str, exploration: Exploration, context: Features, arm: Features, is_paper: bool
) -> Posterior:
    # Where arms have features and ids, dropout does not doubt those that were never tried; a
    # Bayesian last layer does.
    known_name("posterior", name, _POSTERIORS, or_object=True)
    has_both = isinstance(arm, FeaturesAndIds) and isinstance(exploration, ThompsonSampling)
    if name == "last-layer" or (name in ("auto", "neural") and has_both and not is_paper):
        return LastLayerPosterior()
    if name == "arm-effects":
        return ArmEffectsPosterior(units=0 if _has_words(context) else 64)
    if name == "fourier":
        return FourierPosterior()
    if name == "bootstrap":
        return BootstrapPosterior()
    if name == "variational":
        return VariationalPosterior()
    is_bound = isinstance(exploration, UpperConfidence)
    if name == "gradient" or (name in ("auto", "neural") and is_bound):
        return GradientPosterior(gradients="when chosen") if is_paper else GradientPosterior()
    return DropoutPosterior()


def _default_network(
    context: Features, arm: Features, embedding: int | None, *, has_bound: bool
) -> NetworkSettings:
    """Choose 8 columns for up to 8 features, 16 beyond; penalties grow with the columns."""
    embedding = embedding or (8 if max(_columns(context), _columns(arm)) <= 8 else 16)
    return NetworkSettings(
        embedding=embedding,
        hidden=(16,) if has_bound else (32,),
        weight_penalty=(embedding / 8) ** 2,
        dropout_penalty=5 * embedding / 8,
        embedding_penalty=1.0,
        fourier_features=64,
    )


def _check_fourier(arm: Features) -> None:
    """Refuse arms that are no points of a box."""
    if not isinstance(arm, Point):
        raise SettingError(
            f"Random Fourier features need arms that fill a box: got arms of kind "
            f"{type(arm).__name__}. Leave out posterior=, or give arms=Box.between(...)."
        )


def _has_words(features: Features) -> bool:
    """Tell whether features are words: a network finds nothing in them that directions lack."""
    kind = features.features if isinstance(features, FeaturesAndIds) else features
    return isinstance(kind, Sparse)


def _columns(features: Features) -> int:
    return features.dim if isinstance(features, Dense) else 16


def _paper_network(preset: str) -> NetworkSettings:
    return NetworkSettings(
        embedding=8,
        hidden=(8, 8),
        weight_penalty=0.0,
        dropout_penalty=0.1,
        product=False,
        wide=False,
        leak=0.01,
        penalties="constant" if preset == "paper" else "per observation",
    )


def _default_training(network: NetworkSettings, context: Features, *, has_bound: bool) -> Training:
    # Images cost a hundred times as much as numbers: fewer, smaller steps.
    reward = RewardFit(iterations=200, batch=128) if isinstance(context, Image) else RewardFit()
    if has_bound and network.embedding <= 8:
        # A bound with a full matrix costs more than a draw: fewer, smaller lessons.
        return Training(reward, GeneratorFit(batch=128, pairs=2048, sample=256))
    return Training(reward)


def _paper_training(posterior: Posterior) -> Training:
    """Give the printed settings; the minibatch of the generator is not printed."""
    batch = 32 if isinstance(posterior, GradientPosterior) else 256
    return Training(
        reward=RewardFit(rate=1e-3, weight_decay=1e-5, cosine_schedule=False),
        generator=GeneratorFit(
            iterations=3000, batch=batch, rate=1e-3, jitter=0.0, target="ascent"
        ),
    )


_PAPER_ASCENT = GradientAscent(
    starts=10, steps=30, step_size=1.0, neighbours=1, hops=0, rule="printed"
)
_PAPER_GENERATOR = GeneratorSearch(
    heads=1, hidden=64, lookups=1, neighbours=3, steps=0, hops=0, told="gaussian", bounded=False
)
