"""From a policy of torch to plain arrays, or the reason why that cannot be."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partitions import build_partitions
from fastbandit.errors import SettingError
from fastbandit.exploration import Greedy
from fastbandit.features.kinds import Dense, FeaturesAndIds, Sparse
from fastbandit.interfaces import CompiledModel, asks, is_scan
from fastbandit.policy import Policy
from fastbandit.reward.context_features import LinearInputs
from fastbandit.reward.encoders import DenseEncoder, FeaturesAndIdsEncoder, IdEncoder, SparseEncoder
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.encodings import Encoding, LinearEncoding
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.model_arrays import (
    bounds_of,
    effects_arrays,
    frozen,
    matrix_of,
    network_arrays,
    typical_of,
)
from fastbandit.runtime.parts import FrozenArms
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.steps import CompiledSteps, compiled_steps
from fastbandit.settings.blueprint import Blueprint
from fastbandit.types import Features

COMPILED_ABOVE = 512
"""Few arms are left to torch: they are not worth the wait for a compiler, once a machine."""


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """A policy, and what decides instead of it; None where the policy has to decide itself."""

    policy: Policy
    frozen: FrozenBandit | None

    @staticmethod
    def of(plan: Blueprint, policy: Policy, *, version: int) -> CompiledPolicy:
        """Freeze a policy where that can be and pays: on the CPU, with more than a few arms."""
        arms, is_on_cpu = policy.arms, policy.model.device == "cpu"
        are_many = isinstance(arms, Catalogue) and len(arms) > COMPILED_ABOVE
        if not (is_on_cpu and are_many and can_freeze(policy)):
            return CompiledPolicy(policy, None)
        return CompiledPolicy(policy, freeze(plan, policy, version, decisions=0))


def freeze(
    plan: Blueprint, policy: Policy, version: int, decisions: int, *, dtype: str = "float32"
) -> FrozenBandit:
    """Freeze a policy, built after a plan, that decided so often."""
    catalogue = catalogue_of(policy)
    model, steps = _compiled(replace(policy, model=copy.deepcopy(policy.model).cpu()))
    assert catalogue.frame is not None
    amount, place = float(getattr(policy.exploration, "amount", 0.0)), catalogue.to_embedding
    has_effects = model.draws_from == "arm-effects"
    encodings = _effect_encodings(plan, policy, model) if has_effects else _encodings(plan, model)
    codec = Codec(
        context=encodings[0],
        arm=encodings[1],
        inverse=frozen(catalogue.frame.inverse),
        centre=frozen(catalogue.frame.to_embedding.centre),
        reward="real" if has_effects else plan.reward,  # effects are in units of reward already
        reward_shift=model.reward_shift,
        reward_scale=model.reward_scale,
        seed=plan.seed,
        version=version,
    )
    arms = freeze_arms(policy, dtype="float32" if has_effects else dtype)
    rows = FrozenCatalogue.of(arms, catalogue.rows)
    if has_effects:
        is_drawn, dim = asks(policy.exploration) == "draw", catalogue.dim
        arrays = effects_arrays(
            model.effects, amount, is_drawn=is_drawn, to_embedding=place, dim=dim
        )
    else:
        middle, half = (catalogue.high + catalogue.low) / 2, (catalogue.high - catalogue.low) / 2
        box = torch.stack([catalogue.low, catalogue.high, middle, half])
        arrays = network_arrays(model, steps, amount, to_embedding=place, box=box)
    return FrozenBandit(arrays, rows, codec, decisions=decisions)


def can_freeze(policy: Policy) -> bool:
    """Return whether a policy can be frozen, without doing it."""
    try:
        catalogue_of(policy)
        model, _ = _compiled(policy)
        if model.draws_from != "arm-effects":
            _check_encoder(model.context_encoder, what="contexts")
            _check_encoder(model.arm_encoder, what="arms")
    except SettingError:
        return False
    return True


def untrained(policy: Policy) -> Policy:
    """Return a policy that was never trained as one that can be frozen.

    What it scores is never asked for: before an update every arm is equally likely.
    """
    catalogue = catalogue_of(policy)
    with torch.no_grad():
        arms = catalogue.embedded_by(policy.model.embed_arms)
    return replace(policy, exploration=Greedy(), search=Exhaustive(), arms=arms)


def freeze_arms(policy: Policy, *, dtype: str = "float32") -> FrozenArms:
    """Freeze the arms in the order of their partitions, with their neighbour graph.

    Arms that are all scored stay in order: what finds some of them need not be built.
    """
    lookup = catalogue_of(policy).lookup
    assert lookup is not None, "a catalogue is frozen after a model embedded it"
    if not is_scan(policy.search):
        return FrozenArms.of(lookup.partitions, lookup.rows, lookup.near, dtype=dtype)
    vectors = lookup.vectors[torch.from_numpy(lookup.rows)].cpu().numpy()
    order = np.arange(len(vectors), dtype=np.int32)
    partitions = replace(build_partitions(vectors[:1]), order=order, vectors=vectors)
    none = np.empty((len(vectors), 0), dtype=np.int32)
    return FrozenArms.of(partitions, lookup.rows, none, dtype=dtype)


def catalogue_of(policy: Policy) -> Catalogue:
    """Return the catalogue of a policy that has one."""
    if not isinstance(policy.arms, Catalogue):
        raise SettingError(
            f"This arm space cannot be frozen: got {policy.arms.box}. Use a catalogue of arms "
            f"(say, a fine grid of the box), or select with the Bandit."
        )
    return policy.arms


def _compiled(policy: Policy) -> tuple[CompiledModel, CompiledSteps]:
    """Return what compiled code does in place of a model and a search, or raise what is missing."""
    asked = asks(policy.exploration)
    if not asked or getattr(policy.exploration, "amount", None) is None:
        raise SettingError(
            f"This exploration cannot be frozen: {type(policy.exploration).__name__} does not say "
            f"what it asks of a posterior. Give it asks = 'mean', 'draw' or 'upper' and an amount, "
            f"or select with the Bandit."
        )
    steps = compiled_steps(policy.search)
    model = policy.model.compiled(asked)
    if model.draws_from == "bound" and steps.kind == "scan":
        raise SettingError(
            "An exhaustive search for a bound cannot be frozen: got UpperConfidence over all arms. "
            "Use search='generator', or select with the Bandit."
        )
    if model.draws_from == "arm-effects" and steps.kind != "scan":
        raise SettingError(
            f"A search over arm effects cannot be frozen: got {type(policy.search).__name__}. Use "
            f"search='exhaustive', or select with the Bandit."
        )
    return model, steps


def _encodings(plan: Blueprint, model: CompiledModel) -> tuple[Encoding, Encoding]:
    seen, has_ids = plan.arm, isinstance(model.arm_encoder, FeaturesAndIdsEncoder)
    if isinstance(seen, FeaturesAndIds) and not has_ids:
        seen = seen.features
    return (
        freeze_encoding(plan.context, model.context_encoder, what="contexts"),
        freeze_encoding(seen, model.arm_encoder, what="arms"),
    )


def _effect_encodings(
    plan: Blueprint, policy: Policy, model: CompiledModel
) -> tuple[LinearEncoding, Encoding]:
    """Return what weights of arms see of a context; arms are known by their ids, whatever else."""
    fitted: Any = model.effects
    seen = LinearInputs.blank() if fitted is None else fitted.inputs
    columns = catalogue_of(policy).to_embedding.axes.shape[1]
    unread = plan.arm.features if isinstance(plan.arm, FeaturesAndIds) else None
    dense, words = torch.zeros(0, 1), torch.zeros(1, 0)
    if isinstance(unread, Dense):
        dense = torch.zeros(columns, unread.dim + 1)
    elif isinstance(unread, Sparse):
        words = torch.zeros(unread.dim, columns)
    ids = frozen(torch.zeros(1, columns))
    arm = Encoding(plan.arm, matrix=frozen(dense), tokens=frozen(words), ids=ids)
    return LinearEncoding(plan.context, seen), arm


def freeze_encoding(kind: Features, encoder: Any, *, what: str) -> Encoding:
    """Freeze the way contexts or arms are embedded."""
    features = _check_encoder(encoder, what=what)
    ids = encoder.ids if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
    nothing = torch.zeros(0, 1)
    return Encoding(
        kind,
        matrix=frozen(matrix_of(features) if isinstance(features, DenseEncoder) else nothing),
        tokens=frozen(features.weight if isinstance(features, SparseEncoder) else nothing.T),
        ids=frozen(ids.weight if isinstance(ids, IdEncoder) else nothing.T),
        bounds=bounds_of(features),
        typical=frozen(typical_of(features)),
    )


def _check_encoder(encoder: Any, *, what: str) -> DenseEncoder | SparseEncoder | IdEncoder:
    """Return the encoder of the features; raise unless they are of a kind that can be frozen."""
    features = encoder.features if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
    if not isinstance(features, DenseEncoder | SparseEncoder | IdEncoder):
        raise SettingError(
            f"This encoder of the {what} cannot be frozen: got {type(features).__name__}. Use "
            f"features given as numbers, words or ids, or select with the Bandit."
        )
    return features
