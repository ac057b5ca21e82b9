"""The defaults of a bandit: which parts suit contexts and arms, as wide as was measured.

A file of settings stands over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Point, Sparse
from fastbandit.features.rewards import RewardKind, read_reward_kind
from fastbandit.features.schema import Schema
from fastbandit.interfaces import Exploration, Posterior, Search, asks, scans
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.reward.fourier_model import FourierPosterior
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.model import NetworkSettings
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.files import Settings, is_settings_file, read_settings
from fastbandit.settings.parts import find, parts_of
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training
from fastbandit.types import Features

Preset = str | Path | Settings
"""The name "default", the path of a file of settings, or such settings."""

_FEW = 1_000  # arms with features: up to here a compiled scan is about as quick as a walk
_MOST_EFFECTS = 20_000  # ids that have weights of their own by default: all are scanned
_MAPPING = 16  # numbers that a mapping counts as


@dataclass(frozen=True)
class PartNames:
    """The parts a bandit is asked for, by name or as objects; names of outside parts are paths."""

    exploration: str | Exploration = "ts"
    search: str | Search = "auto"
    posterior: str | Posterior = "auto"
    modules: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("exploration", "search", "posterior"):
            part = getattr(self, name)
            if isinstance(part, type):
                raise SettingError(
                    f"The part {name}= needs a name or an object: got the class {part.__name__}. "
                    f"Write {name}={part.__name__}()."
                )
        if isinstance(self.modules, str):
            raise SettingError(
                f"part_modules needs to be a list of modules: got {self.modules!r}. Write "
                f"[{self.modules!r}]."
            )
        object.__setattr__(self, "modules", tuple(self.modules))


def blueprint(
    parts: PartNames,
    *,
    context: Features,
    arm: Features,
    reward: RewardKind | Mapping[str, float],
    preset: Preset = "default",
    seed: int = 0,
) -> Blueprint:
    """Put the parts together that these names stand for; objects are taken as they are."""
    kind, weights = read_reward_kind(reward)
    settings = settings_for(preset, modules=parts.modules)
    exploration, posterior, search = parts.exploration, parts.posterior, parts.search
    if posterior == "auto":  # exact for a box, else effects of arms
        posterior = "fourier" if isinstance(arm, Point) else "arm-effects"
    is_fourier = _is(posterior, "fourier", FourierPosterior)
    has_effects = _is(posterior, "arm-effects", ArmEffectsPosterior)
    own = arm  # what an arm is to what it has of its own
    if isinstance(arm, FeaturesAndIds) and getattr(posterior, "own_weights", False):
        own = arm.ids
    has_weights = has_effects and _has_weights(parts.search, own)
    if isinstance(exploration, str):
        widths = _widths(context, has_weights=has_weights, is_fourier=is_fourier)
        exploration = settings.over(_exploration(exploration, widths, parts.modules))
    if isinstance(posterior, str):
        posterior = settings.over(_posterior(posterior, exploration, context, arm, parts.modules))
    is_bound = asks(exploration) == "upper"
    if search == "auto":  # own weights are scanned, Fourier features climbed, networks searched
        search = "exhaustive" if has_weights else "ascent" if is_fourier else "generator"
    if isinstance(search, str):
        found = _search(search, arm, parts.modules, is_fourier=is_fourier)
        if isinstance(found, GeneratorSearch) and parts.search == "auto" and not is_bound:
            found = replace(found, exhaustive_up_to=_FEW)  # a bound cannot be scanned when frozen
        search = settings.over(found)
    has_bound = isinstance(posterior, GradientPosterior) or (has_effects and is_bound)
    embedding = settings.of("network").get("embedding")
    network = settings.over(_network(context, arm, embedding, has_bound=has_bound))
    training = _training(network, context, has_bound=has_bound)
    return Blueprint(
        context=context,
        arm=arm,
        reward=kind,
        network=network,
        posterior=posterior,
        exploration=exploration,
        search=search,
        training=Training(settings.over(training.reward), settings.over(training.generator)),
        seed=seed,
        weights=weights,
    )


def settings_for(preset: Any, *, modules: Iterable[str] = ()) -> Settings:
    """Return the settings that a name, a file or an object stands for."""
    if isinstance(preset, Settings):
        return preset
    if is_settings_file(preset):
        return read_settings(preset, modules=modules)
    known_name("preset", preset, ("default",))
    return Settings()


def _is(part: Any, name: str, kind: type) -> bool:
    return part == name or isinstance(part, kind)


def _has_weights(search: str | Search, arm: Features) -> bool:
    """Return whether arms are known by ids alone, and scanned: each has weights of its own."""
    if not isinstance(arm, Ids):
        return False
    if search == "auto":
        return arm.count <= _MOST_EFFECTS
    return search == "exhaustive" or (not isinstance(search, str) and scans(search, None))


def _widths(context: Features, *, has_weights: bool, is_fourier: bool) -> tuple[float, float]:
    """Return the scale of a draw and the width of a bound that were measured to suit."""
    if has_weights:
        return (0.3 if _has_words(context) else 0.2), 0.1
    return 0.7, (1.0 if is_fourier else 0.3)


def _exploration(name: str, widths: tuple[float, float], modules: Iterable[str]) -> Exploration:
    kind = find("exploration", name, modules=modules)
    scale, width = widths
    if kind is ThompsonSampling:
        return ThompsonSampling(scale=scale)
    if kind is UpperConfidence:
        return UpperConfidence(width=width, batched=width == 1.0)
    return kind()


def _search(name: str, arm: Features, modules: Iterable[str], *, is_fourier: bool) -> Search:
    if ":" not in name:
        known_name("search", name, ("auto", *parts_of("search")), or_object=True)
    kind = find("search", name, modules=modules)
    columns = _columns(arm)
    if kind is GradientAscent and is_fourier:  # a draw has many tops: climb from the best of many
        return GradientAscent(starts=4, steps=20, far=0, scan=256)
    # The best arm is harder to come by in more dimensions: look at more arms.
    if kind is GradientAscent and columns > 8:
        return GradientAscent(step_size=0.5, partitions=8, far=64)
    if kind is GradientAscent:
        return GradientAscent(far=0 if columns <= 4 else 64)
    if kind is GeneratorSearch and columns <= 4:
        return GeneratorSearch(partitions=1, far=0, steps=1, hops=2, beam=1)
    if kind is GeneratorSearch and columns > 8:
        return GeneratorSearch(partitions=4, far=64, steps=4, hops=6, beam=4)
    return kind()


def _posterior(
    name: str, exploration: Exploration, context: Features, arm: Features, modules: Iterable[str]
) -> Posterior:
    if ":" not in name:
        every = ("auto", "neural", *parts_of("posterior"))
        known_name("posterior", name, every, or_object=True)
    if name == "neural":
        name = _neural(exploration, arm)
    kind = find("posterior", name, modules=modules)
    if kind is ArmEffectsPosterior and _has_words(context):  # directions lack nothing of words
        return ArmEffectsPosterior(units=0)
    return kind()


def _neural(exploration: Exploration, arm: Features) -> str:
    """Return the posterior of a network that suits.

    Where arms have features and ids, dropout is sure of those never tried; a last layer is not.
    """
    if asks(exploration) == "upper":
        return "gradient"
    has_both = isinstance(arm, FeaturesAndIds) and asks(exploration) == "draw"
    return "last-layer" if has_both else "dropout"


def _network(
    context: Features, arm: Features, embedding: int | None, *, has_bound: bool
) -> NetworkSettings:
    """Choose 8 columns for up to 8 features, 16 beyond; penalties grow with the columns."""
    embedding = embedding or (8 if max(_columns(context), _columns(arm)) <= 8 else 16)
    return NetworkSettings(
        embedding=embedding,
        hidden=(16,) if has_bound else (32,),
        weight_penalty=(embedding / 8) ** 2,
        dropout_penalty=5 * embedding / 8,
        embedding_penalty=_embedding_penalty(context, arm),
        fourier_features=64,
    )


def _embedding_penalty(*kinds: Features) -> float:
    """Return 1 for numbers by position; a schema makes many numbers, most of which say nothing.

    With 1, a network learns single levels by heart: tests/settings/test_named_columns.py. Of a
    mapping most numbers are zero until it has grown: it counts as a few columns.
    """
    plain = [kind.features if isinstance(kind, FeaturesAndIds) else kind for kind in kinds]
    schemas = [kind.schema for kind in plain if isinstance(kind, Dense)]
    widths = [_numbers_of(schema) for schema in schemas if schema is not None]
    return max(1.0, max(widths, default=0) / 2)


def _numbers_of(schema: Schema) -> int:
    growing = [column.width for column in schema.columns if hasattr(column, "grown")]
    return schema.dim - sum(growing) + _MAPPING * len(growing)


def _training(network: NetworkSettings, context: Features, *, has_bound: bool) -> Training:
    # Images cost a hundred times as much as numbers: fewer, smaller steps.
    reward = RewardFit(iterations=200, batch=128) if isinstance(context, Image) else RewardFit()
    if has_bound and network.embedding <= 8:
        # A bound with a full matrix costs more than a draw: fewer targets, smaller batches.
        return Training(reward, GeneratorFit(batch=128, targets=2048, sample=256))
    return Training(reward)


def _has_words(features: Features) -> bool:
    kind = features.features if isinstance(features, FeaturesAndIds) else features
    return isinstance(kind, Sparse)


def _columns(features: Features) -> int:
    return features.dim if isinstance(features, Dense) else 16
