"""Choose among very many arms, for each context, through a neural network, and learn.

Names are imported when they are first used: those that train need the extra
`fastbandit[train]`, the others run without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastbandit.arms.box import Box as Box
    from fastbandit.arms.budget import Budget as Budget
    from fastbandit.bandit import Bandit as Bandit
    from fastbandit.baselines import BestArmBandit as BestArmBandit
    from fastbandit.baselines import LinearTS as LinearTS
    from fastbandit.baselines import LinUCB as LinUCB
    from fastbandit.baselines import RandomBandit as RandomBandit
    from fastbandit.errors import FastbanditError as FastbanditError
    from fastbandit.evaluation import evaluate as evaluate
    from fastbandit.exploration import Greedy as Greedy
    from fastbandit.exploration import ThompsonSampling as ThompsonSampling
    from fastbandit.exploration import UpperConfidence as UpperConfidence
    from fastbandit.features.kinds import Dense as Dense
    from fastbandit.features.kinds import FeaturesAndIds as FeaturesAndIds
    from fastbandit.features.kinds import Ids as Ids
    from fastbandit.features.kinds import Image as Image
    from fastbandit.features.kinds import Sparse as Sparse
    from fastbandit.features.schema import Schema as Schema
    from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior as ArmEffectsPosterior
    from fastbandit.reward.bootstrap_model import BootstrapPosterior as BootstrapPosterior
    from fastbandit.reward.dropout_model import DropoutPosterior as DropoutPosterior
    from fastbandit.reward.fourier_model import FourierPosterior as FourierPosterior
    from fastbandit.reward.gradient_model import GradientPosterior as GradientPosterior
    from fastbandit.reward.last_layer_model import LastLayerPosterior as LastLayerPosterior
    from fastbandit.reward.variational_model import VariationalPosterior as VariationalPosterior
    from fastbandit.runtime.frozen import FrozenBandit as FrozenBandit
    from fastbandit.search.exhaustive import Exhaustive as Exhaustive
    from fastbandit.search.generator import GeneratorSearch as GeneratorSearch
    from fastbandit.search.gradient_ascent import GradientAscent as GradientAscent
    from fastbandit.search.spanner import SpannerSearch as SpannerSearch
    from fastbandit.types import Audit as Audit
    from fastbandit.types import Chosen as Chosen
    from fastbandit.types import Decision as Decision

__version__ = "0.1.0"

_HOMES = {
    "ArmEffectsPosterior": "fastbandit.reward.arm_effects_posterior",
    "Audit": "fastbandit.types",
    "Bandit": "fastbandit.bandit",
    "BestArmBandit": "fastbandit.baselines",
    "BootstrapPosterior": "fastbandit.reward.bootstrap_model",
    "Box": "fastbandit.arms.box",
    "Budget": "fastbandit.arms.budget",
    "Chosen": "fastbandit.types",
    "Decision": "fastbandit.types",
    "Dense": "fastbandit.features.kinds",
    "DropoutPosterior": "fastbandit.reward.dropout_model",
    "Exhaustive": "fastbandit.search.exhaustive",
    "FastbanditError": "fastbandit.errors",
    "FeaturesAndIds": "fastbandit.features.kinds",
    "FourierPosterior": "fastbandit.reward.fourier_model",
    "FrozenBandit": "fastbandit.runtime.frozen",
    "GeneratorSearch": "fastbandit.search.generator",
    "GradientAscent": "fastbandit.search.gradient_ascent",
    "GradientPosterior": "fastbandit.reward.gradient_model",
    "Greedy": "fastbandit.exploration",
    "Ids": "fastbandit.features.kinds",
    "Image": "fastbandit.features.kinds",
    "LastLayerPosterior": "fastbandit.reward.last_layer_model",
    "LinUCB": "fastbandit.baselines",
    "LinearTS": "fastbandit.baselines",
    "RandomBandit": "fastbandit.baselines",
    "SpannerSearch": "fastbandit.search.spanner",
    "Schema": "fastbandit.features.schema",
    "Sparse": "fastbandit.features.kinds",
    "ThompsonSampling": "fastbandit.exploration",
    "UpperConfidence": "fastbandit.exploration",
    "VariationalPosterior": "fastbandit.reward.variational_model",
    "evaluate": "fastbandit.evaluation",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fastbandit' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from fastbandit.packages import missing_extra

        missing = missing_extra(error, what=name)
        if missing is None:
            raise
        raise missing from error


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
