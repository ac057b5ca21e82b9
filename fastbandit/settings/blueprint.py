"""Everything a bandit is made of, as values that can be written down and read back.

The only place where a name in a file becomes a class.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any

import torch

from fastbandit.arms.box import Box
from fastbandit.declaration import part, range_of, setting
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, Features, FeaturesAndIds, Ids, Image, Point, Sparse
from fastbandit.features.rewards import RewardKind
from fastbandit.interfaces import Exploration, RewardModel, Search
from fastbandit.reward.bootstrap_model import BootstrapReward
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.reward.fourier_model import FourierReward
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.linear_model import LinearReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.reward.variational_model import VariationalReward
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.search.spanner import SpannerSearch
from fastbandit.training.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training


@part("posterior", name="dropout", formerly=("DropoutDoubt",))
class DropoutPosterior:
    """Doubt from dropout masks: what `DropoutReward` needs beside its network."""


@part("posterior", name="gradient", formerly=("GradientDoubt",))
class GradientPosterior:
    """Doubt from gradients: what `GradientReward` needs beside its network."""

    ridge: float = setting(default=1.0, above=0)
    full_below: int = setting(default=512, least=0)
    gradients: str = setting(default="current", choices=("current", "when chosen"))


@part("posterior", name="last-layer", formerly=("LastLayerDoubt",))
class LastLayerPosterior:
    """Doubt from a Bayesian last layer: what `LastLayerReward` needs beside its network."""

    prior_precision: float = setting(default=1.0, above=0)


@part("posterior", name="bootstrap", formerly=("BootstrapDoubt",))
class BootstrapPosterior:
    """Doubt from heads that disagree: what `BootstrapReward` needs beside its network."""

    heads: int = 10
    prior_precision: float = setting(default=1.0, above=0)


@part("posterior", name="variational", formerly=("VariationalDoubt",))
class VariationalPosterior:
    """Doubt from weights with a trained spread: what `VariationalReward` needs."""

    prior_precision: float = setting(default=1.0, above=0)


@part("posterior", name="arm-effects")
class ArmEffectsPosterior:
    """Each arm's own weights over features of the context: what `EffectsReward` needs.

    At most so many principal directions of contexts are `features`, beside the `units` of a
    network (0: none), trained anew when the history is `grow` times as long. Widths are the
    standard deviations of an arm's constant and of its other weights before anything is seen.
    """

    features: int = 64
    units: int = setting(default=64, least=0)
    grow: float = setting(default=1.25, above=0)
    constant_width: float = setting(default=0.1, above=0)
    slope_width: float = setting(default=0.8, above=0)


@part("posterior", name="fourier")
class FourierPosterior:
    """An exact posterior over random Fourier features: what `FourierReward` needs.

    There are so many `features`; lengths of the kernel are fitted anew when the history is `grow`
    times as long.
    """

    features: int = 512
    grow: float = setting(default=1.25, above=0)


Posterior = (
    DropoutPosterior
    | GradientPosterior
    | LastLayerPosterior
    | BootstrapPosterior
    | VariationalPosterior
    | ArmEffectsPosterior
    | FourierPosterior
)


@dataclass(frozen=True)
class Blueprint:
    """How to build a bandit's parts anew."""

    context: Features
    arm: Features
    reward: RewardKind
    network: NetworkSettings
    posterior: Posterior
    exploration: Exploration
    search: Search
    training: Training
    seed: int

    def model(self, *, device: str) -> RewardModel:
        """Make the untrained reward model, always the same from the same seed."""
        rng = torch.Generator().manual_seed(self.seed % 2**63)
        make = {
            DropoutPosterior: DropoutReward,
            GradientPosterior: GradientReward,
            LastLayerPosterior: LastLayerReward,
            BootstrapPosterior: BootstrapReward,
            VariationalPosterior: VariationalReward,
            ArmEffectsPosterior: EffectsReward,
            FourierPosterior: FourierReward,
        }[type(self.posterior)]
        if isinstance(self.posterior, ArmEffectsPosterior) and not self.has_own_weights:
            return self._hierarchical(rng).requires_grad_(False).to(device)
        settings = {f.name: getattr(self.posterior, f.name) for f in fields(self.posterior)}
        model = make(
            self.context, self.arm, settings=self.network, reward=self.reward, rng=rng, **settings
        )
        return model.requires_grad_(False).to(device)

    @property
    def has_own_weights(self) -> bool:
        """Whether arms are known by their ids alone and scanned: each has weights of its own."""
        return isinstance(self.arm, Ids) and isinstance(self.search, Exhaustive)

    def _hierarchical(self, rng: torch.Generator) -> HierarchicalReward:
        """Make a network over features, a regression beside it, and room for arms' constants."""
        is_bound, arm = isinstance(self.exploration, UpperConfidence), self.arm
        has_both = isinstance(arm, FeaturesAndIds)
        make = GradientReward if is_bound else LastLayerReward if has_both else DropoutReward
        network = make(self.context, arm, settings=self.network, reward=self.reward, rng=rng)
        if is_bound or isinstance(arm, Ids):
            return HierarchicalReward(network, None)
        seen = arm.features if isinstance(arm, FeaturesAndIds) else arm
        linear = LinearReward(
            self.context, seen, settings=self.network, reward=self.reward, rng=rng
        )
        return HierarchicalReward(network, linear, knows_ids=has_both)


_PARTS: dict[str, Any] = {
    part.__name__: part
    for part in (
        ArmEffectsPosterior,
        Blueprint,
        BootstrapPosterior,
        Box,
        Dense,
        DropoutPosterior,
        Exhaustive,
        FeaturesAndIds,
        FourierPosterior,
        GeneratorFit,
        GeneratorSearch,
        GradientAscent,
        GradientPosterior,
        Greedy,
        Ids,
        Image,
        LastLayerPosterior,
        NetworkSettings,
        Point,
        RewardFit,
        SpannerSearch,
        Sparse,
        ThompsonSampling,
        Training,
        UpperConfidence,
        VariationalPosterior,
    )
}
_FORMER = {
    f"{kind}Doubt": _PARTS[f"{kind}Posterior"]
    for kind in ("Dropout", "Gradient", "LastLayer", "Bootstrap", "Variational")
}
_NOT_WRITTEN = {"generator", "encode", "device"}  # weights and run-time matters


def write(part: Any) -> Any:
    """Turn a part into JSON values: its name and its settings."""
    if isinstance(part, bool | int | float | str) or part is None:
        return part
    if isinstance(part, tuple | list):
        return [write(item) for item in part]
    name = type(part).__name__
    if not is_dataclass(part) or _PARTS.get(name) is not type(part):
        raise SettingError(
            f"Only fastbandit's own parts can be saved: got a {name}. Save its settings "
            f"yourself, and load with one of {', '.join(sorted(_PARTS))} in its place."
        )
    kept = [f.name for f in fields(part) if not _is_left_out(part, f)]
    return {"part": name, **{key: write(getattr(part, key)) for key in kept}}


def read(written: Any) -> Any:
    """Turn JSON values back into a part."""
    if isinstance(written, list):
        return tuple(read(item) for item in written)
    if not isinstance(written, dict):
        return written
    settings = {key: read(item) for key, item in written.items() if key != "part"}
    name = written.get("part")
    try:
        kind: Any = _FORMER.get(str(name)) or _PARTS[str(name)]
        former = {range_of(f).formerly: f.name for f in fields(kind) if range_of(f).formerly}
        return kind(**{former.get(key, key): value for key, value in settings.items()})
    except (KeyError, TypeError, SettingError) as error:
        raise SnapshotError(
            f"The snapshot names a part that this version cannot build: {name!r} with "
            f"{sorted(settings)} ({error}). Load it with the version that saved it."
        ) from error


def _is_left_out(part: Any, field: Field[Any]) -> bool:
    """Tell whether a field is no setting, or one that came later and is as if it were not there."""
    if range_of(field).came_later:
        return bool(getattr(part, field.name) == field.default)
    return field.name in _NOT_WRITTEN and isinstance(part, Box | GeneratorSearch)
