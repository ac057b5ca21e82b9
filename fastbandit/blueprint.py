"""Everything a bandit is made of, as values that can be written down and read back.

The only place where a name in a file becomes a class.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any

import torch

from fastbandit.arms.box import Box
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.features import Dense, Features, FeaturesAndIds, Ids, Image, Point, Sparse
from fastbandit.interfaces import Exploration, RewardModel, Search
from fastbandit.ranges import check_fields
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
from fastbandit.rewards import RewardKind
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.search.spanner import SpannerSearch
from fastbandit.training.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training


@dataclass(frozen=True)
class DropoutDoubt:
    """Doubt from dropout masks: what `DropoutReward` needs beside its network."""


@dataclass(frozen=True)
class GradientDoubt:
    """Doubt from gradients: what `GradientReward` needs beside its network."""

    ridge: float = 1.0
    full_below: int = 512
    gradients: str = "current"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class LastLayerDoubt:
    """Doubt from a Bayesian last layer: what `LastLayerReward` needs beside its network."""

    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class BootstrapDoubt:
    """Doubt from heads that disagree: what `BootstrapReward` needs beside its network."""

    heads: int = 10
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class VariationalDoubt:
    """Doubt from weights with a trained spread: what `VariationalReward` needs."""

    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ArmEffectsPosterior:
    """Each arm's own weights over features of the context: what `EffectsReward` needs.

    At most so many principal directions of contexts are `features`, beside the `units` of a
    network (0: none), trained anew when the history is `grow` times as long. Widths are the
    standard deviations of an arm's constant and of its other weights before anything is seen.
    """

    features: int = 64
    units: int = 64
    grow: float = 1.25
    constant_width: float = 0.1
    slope_width: float = 0.8

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class FourierPosterior:
    """An exact posterior over random Fourier features: what `FourierReward` needs.

    There are so many `features`; lengths of the kernel are fitted anew when the history is `grow`
    times as long.
    """

    features: int = 512
    grow: float = 1.25

    def __post_init__(self) -> None:
        check_fields(self)


Doubt = (
    DropoutDoubt
    | GradientDoubt
    | LastLayerDoubt
    | BootstrapDoubt
    | VariationalDoubt
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
    doubt: Doubt
    exploration: Exploration
    search: Search
    training: Training
    seed: int

    def model(self, *, device: str) -> RewardModel:
        """Make the untrained reward model, always the same from the same seed."""
        rng = torch.Generator().manual_seed(self.seed % 2**63)
        make = {
            DropoutDoubt: DropoutReward,
            GradientDoubt: GradientReward,
            LastLayerDoubt: LastLayerReward,
            BootstrapDoubt: BootstrapReward,
            VariationalDoubt: VariationalReward,
            ArmEffectsPosterior: EffectsReward,
            FourierPosterior: FourierReward,
        }[type(self.doubt)]
        if isinstance(self.doubt, ArmEffectsPosterior) and not self.has_own_weights:
            return self._hierarchical(rng).requires_grad_(False).to(device)
        settings = {f.name: getattr(self.doubt, f.name) for f in fields(self.doubt)}
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


_PARTS = {
    part.__name__: part
    for part in (
        ArmEffectsPosterior,
        Blueprint,
        BootstrapDoubt,
        Box,
        Dense,
        DropoutDoubt,
        Exhaustive,
        FeaturesAndIds,
        FourierPosterior,
        GeneratorFit,
        GeneratorSearch,
        GradientAscent,
        GradientDoubt,
        Greedy,
        Ids,
        Image,
        LastLayerDoubt,
        NetworkSettings,
        Point,
        RewardFit,
        SpannerSearch,
        Sparse,
        ThompsonSampling,
        Training,
        UpperConfidence,
        VariationalDoubt,
    )
}
_NOT_WRITTEN = {"generator", "encode", "device"}  # weights and run-time matters
_CAME_LATER = {"exhaustive_up_to"}  # files of before have none


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
        return _PARTS[str(name)](**settings)
    except (KeyError, TypeError, SettingError) as error:
        raise SnapshotError(
            f"The snapshot names a part that this version cannot build: {name!r} with "
            f"{sorted(settings)} ({error}). Load it with the version that saved it."
        ) from error


def _is_left_out(part: Any, field: Field[Any]) -> bool:
    """Tell whether a field is no setting, or one that came later and is as if it were not there."""
    if field.name in _CAME_LATER:
        return bool(getattr(part, field.name) == field.default)
    return field.name in _NOT_WRITTEN and isinstance(part, Box | GeneratorSearch)
