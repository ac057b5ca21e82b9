"""From a policy of torch to plain arrays, or the reason why that cannot be."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fastbandit.arms.arrays import read_only
from fastbandit.arms.box import Box
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partitions import build_partitions
from fastbandit.errors import SettingError
from fastbandit.exploration import Greedy, ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Features, FeaturesAndIds
from fastbandit.interfaces import Exploration, RewardModel, Search
from fastbandit.policy import Policy
from fastbandit.reward.context_features import LinearInputs
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.reward.encoders import (
    DenseEncoder,
    Encoder,
    FeaturesAndIdsEncoder,
    IdEncoder,
    SparseEncoder,
)
from fastbandit.reward.gradient_model import GradientReward
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.reward.model import NeuralReward
from fastbandit.reward.network import RewardNetwork
from fastbandit.reward.variational_model import VariationalReward
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.effects import BOUNDED, DRAWN
from fastbandit.runtime.encodings import Encoding, LinearEncoding
from fastbandit.runtime.fold import BOUND, DROPOUT, LAST_LAYER, MEAN
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.kernel import ASCENT, EXHAUSTIVE, GENERATOR
from fastbandit.runtime.parts import FrozenArms, FrozenModel
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.generator import ArmGenerator, GeneratorSearch, is_scan
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.settings.blueprint import Blueprint

_SURE = 17.0  # a sigmoid beyond this is 0 or 1 in float32
_ROWS = 4  # compiled layers read so many inputs at a time
_COLUMNS = 8
_NEVER = float("inf")


@dataclass(frozen=True)
class _Steps:
    """What a search is told: its kind, whole numbers, and the length of a first step."""

    kind: int = EXHAUSTIVE
    starts: int = 0
    lookups: int = 0
    partitions: int = 0
    far: int = 0
    hops: int = 0
    beam: int = 0
    steps: int = 0
    step_size: float = 0.0
    enough: float = _NEVER
    generator: ArmGenerator | None = None


def freeze(
    plan: Blueprint, policy: Policy, version: int, decisions: int, *, dtype: str = "float32"
) -> FrozenBandit:
    """Freeze a policy, built after a plan, that decided so often."""
    if isinstance(policy.model, EffectsReward):
        return _freeze_effects(plan, policy, version, decisions)
    model, catalogue = shared_model(policy), catalogue_of(policy)
    frozen_model, arms = freeze_model(policy), freeze_arms(policy, dtype=dtype)
    assert isinstance(model, NeuralReward)
    assert catalogue.frame is not None
    codec = Codec(
        context=freeze_encoding(plan.context, model.context_encoder, what="contexts"),
        arm=freeze_encoding(_seen(plan.arm, model), model.arm_encoder, what="arms"),
        inverse=_frozen(catalogue.frame.inverse),
        centre=_frozen(catalogue.frame.place.centre),
        reward=plan.reward,
        reward_shift=float(model.reward_shift),
        reward_scale=float(model.reward_scale),
        seed=plan.seed,
        version=version,
    )
    return FrozenBandit(
        frozen_model, FrozenCatalogue.of(arms, catalogue.rows), codec, decisions=decisions
    )


def _seen(arm: Features, model: NeuralReward) -> Features:
    """Return the kind of features that a model reads of arms, with or without their ids."""
    has_ids = isinstance(model.arm_encoder, FeaturesAndIdsEncoder)
    return arm.features if isinstance(arm, FeaturesAndIds) and not has_ids else arm


def _freeze_effects(plan: Blueprint, policy: Policy, version: int, decisions: int) -> FrozenBandit:
    """Freeze arms that have weights of their own, and what these see of a context."""
    catalogue, model = catalogue_of(policy), policy.model
    assert isinstance(model, EffectsReward)
    kind, scale = _read_effects(policy)
    fitted, arms, dim = model.fitted, freeze_arms(policy), catalogue.dim
    assert catalogue.frame is not None
    place = catalogue.frame.place
    size = 1 if fitted is None else fitted.inputs.count
    blank, one = read_only(np.zeros((0, 0), np.float32)), read_only(np.zeros(1, np.float32))
    frozen_model = FrozenModel(
        counts=read_only(np.array([EXHAUSTIVE, kind, *[0] * 10], np.int64)),
        numbers=_frozen(torch.tensor([scale, 0.0, 0.0, _NEVER])),
        encoder=_frozen(torch.zeros(0, 1)),
        first_weights=blank,
        first_biases=one[:0],
        deeper_weights=one[:0],
        hidden=read_only(np.zeros(0, np.int64)),
        last_weights=one,
        wide_weights=one[:0],
        place=_frozen(torch.cat([place.axes, place.centre[None]])),
        dropout=_frozen(torch.zeros(0, 4)),
        mask_sizes=read_only(np.zeros(0, np.int64)),
        centre=_frozen(torch.zeros(2, 0)),
        spread=blank,
        bonus=one[:0],
        root=blank,
        layer_1=_frozen(torch.zeros(1, 0)),
        layer_2=_frozen(torch.zeros(1, 0)),
        layer_3=_frozen(torch.zeros(1, 0)),
        box=read_only(np.zeros((4, dim), np.float32)),
        own_shared=_small(np.zeros(size) if fitted is None else fitted.effects.shared),
        own_prior=_small(np.zeros(size) if fitted is None else fitted.effects.prior),
        own_means=_small(np.zeros((0, size)) if fitted is None else fitted.effects.means),
        own_deviations=_small(np.zeros((0, size)) if fitted is None else fitted.effects.deviations),
    )
    seen = LinearInputs.blank() if fitted is None else fitted.inputs
    columns = _frozen(torch.zeros(1, place.axes.shape[1]))
    nothing = _frozen(torch.zeros(0, 1))
    codec = Codec(
        context=LinearEncoding(plan.context, seen),
        arm=Encoding(plan.arm, matrix=nothing, words=_frozen(torch.zeros(1, 0)), ids=columns),
        inverse=_frozen(catalogue.frame.inverse),
        centre=_frozen(place.centre),
        reward="real",  # scores are rewards already
        reward_shift=0.0,
        reward_scale=1.0,
        seed=plan.seed,
        version=version,
    )
    return FrozenBandit(
        frozen_model, FrozenCatalogue.of(arms, catalogue.rows), codec, decisions=decisions
    )


def _small(array: Any) -> Any:
    return read_only(array.astype(np.float32))


def _read_effects(policy: Policy) -> tuple[int, float]:
    """Tell how arms' own parts are drawn, and how widely; raise where that cannot be frozen."""
    if not isinstance(policy.search, Exhaustive):
        raise _cannot("search over arm effects", policy.search, "search='exhaustive'")
    match policy.exploration:
        case ThompsonSampling():
            return DRAWN, policy.exploration.scale
        case UpperConfidence():
            return BOUNDED, policy.exploration.width
        case Greedy():
            return BOUNDED, 0.0
    raise _cannot("exploration", policy.exploration, "ThompsonSampling, UpperConfidence or Greedy")


def untrained(policy: Policy) -> Policy:
    """Give a policy that was never trained as one that can be frozen.

    What it scores is never asked for: before an update every arm is equally likely.
    """
    catalogue = catalogue_of(policy)
    with torch.no_grad():
        arms = catalogue.embedded_by(policy.model.embed_arms)
    return replace(policy, exploration=Greedy(), search=Exhaustive(), arms=arms)


def can_freeze(policy: Policy) -> bool:
    """Return whether a policy can be frozen, without doing it."""
    try:
        if isinstance(policy.model, EffectsReward):
            catalogue_of(policy)
            _read_effects(policy)
            return True
        model = _read_parts(policy).model
        _check_encoder(model.context_encoder, what="contexts")
        _check_encoder(model.arm_encoder, what="arms")
    except SettingError:
        return False
    return True


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
    nobody = np.empty((len(vectors), 0), dtype=np.int32)
    return FrozenArms.of(partitions, lookup.rows, nobody, dtype=dtype)


def freeze_model(policy: Policy) -> FrozenModel:
    """Freeze encoder, network, doubt and search into arrays."""
    own = _constants(policy.model)
    policy = replace(policy, model=copy.deepcopy(shared_model(policy)).cpu())
    arms, model, search, posterior, scale = _read_parts(policy)
    network = model.network
    first, *deeper, last = network.layers
    surrogate = _surrogate_of(model) if posterior == BOUND else None
    first_weights, first_biases, last_weights = _side_by_side(first, last, surrogate)
    constant = last.bias if network.wide is None else last.bias + network.wide.bias
    wide_weights = _wide(network)
    if isinstance(model, LinearEnd):
        last_weights, wide, constant = model.centre.split(model.parts)
        wide_weights = wide if network.wide is not None else wide_weights
    walk = (search.partitions, search.far, search.hops, search.beam, search.steps)
    sizes = (search.starts, search.lookups, *walk)
    has_wide = network.wide is not None or surrogate is not None
    flags = (search.kind, posterior, network.product, has_wide)
    step = search.step_size * math.sqrt(arms.dim)
    is_dense = isinstance(model.context_encoder, DenseEncoder)
    layers = _layers(search.generator)
    return FrozenModel(
        counts=read_only(np.array([*flags, *sizes, network.input_sizes[-1]], np.int64)),
        numbers=_frozen(torch.tensor([scale, step, network.leak, search.enough])),
        encoder=_frozen(_matrix(model.context_encoder) if is_dense else torch.zeros(0, 1)),
        first_weights=_frozen(first_weights.T),
        first_biases=_frozen(first_biases),
        deeper_weights=_frozen(torch.cat([torch.zeros(0), *map(_flat, deeper)])),
        hidden=read_only(np.array([len(first_biases), *network.input_sizes[2:]], np.int64)),
        last_weights=_frozen(torch.cat([last_weights, constant])),
        wide_weights=_frozen(wide_weights),
        place=_frozen(torch.cat([arms.place.axes, arms.place.centre[None]])),
        dropout=_frozen(_dropout(model) if posterior == DROPOUT else torch.zeros(0, 4)),
        mask_sizes=read_only(
            np.array(network.input_sizes if posterior == DROPOUT else [], np.int64)
        ),
        centre=_frozen(_centre(model) if posterior == LAST_LAYER else torch.zeros(2, 0)),
        spread=_frozen(_spread(model) if posterior == LAST_LAYER else torch.zeros(0, 0)),
        bonus=_frozen(_bonus(model, surrogate) if surrogate is not None else torch.zeros(0)),
        root=_frozen(_root(model) if surrogate is not None else torch.zeros(0, 0)),
        layer_1=layers[0],
        layer_2=layers[1],
        layer_3=layers[2],
        box=_frozen(_box(arms)),
        bounds=_bounds(model.context_encoder),
        **own,
    )


def shared_model(policy: Policy) -> RewardModel:
    """Return the model of what features say, which is frozen as a network."""
    model = policy.model
    return model.current if isinstance(model, HierarchicalReward) else model


def _constants(model: RewardModel) -> dict[str, Any]:
    """Return arms' own constants as arrays, where a model has any."""
    if not isinstance(model, HierarchicalReward) or model.own_constants is None:
        return {}
    means, deviations = model.told.arrays
    stamp = np.array([model.own_constants.stamp], np.int64)
    return {
        "own_constants": read_only(means),
        "own_widths": read_only(deviations),
        "own_stamp": read_only(stamp),
    }


def freeze_encoding(kind: Features, encoder: Encoder, *, what: str) -> Encoding:
    """Freeze the way contexts or arms are embedded."""
    features = _check_encoder(encoder, what=what)
    ids = encoder.ids if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
    nothing = torch.zeros(0, 1)
    return Encoding(
        kind,
        matrix=_frozen(_matrix(features) if isinstance(features, DenseEncoder) else nothing),
        words=_frozen(features.weight if isinstance(features, SparseEncoder) else nothing.T),
        ids=_frozen(ids.weight if isinstance(ids, IdEncoder) else nothing.T),
        bounds=_bounds(features),
    )


def _check_encoder(encoder: Encoder, *, what: str) -> DenseEncoder | SparseEncoder | IdEncoder:
    """Give the encoder of the features; raise unless they are of a kind that can be frozen."""
    features = encoder.features if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
    if not isinstance(features, DenseEncoder | SparseEncoder | IdEncoder):
        raise _cannot(f"encoder of the {what}", features, "features given as numbers, words or ids")
    return features


def catalogue_of(policy: Policy) -> Catalogue:
    """Give the catalogue of a policy that has one."""
    if isinstance(policy.arms, Box):
        raise _cannot("arm space", policy.arms, "a catalogue of arms (say, a fine grid of the box)")
    return policy.arms


# -- the search and the exploration


class _Parts(NamedTuple):
    """A policy's parts as they are frozen: what scores are drawn from (`doubt`) and how widely."""

    arms: Catalogue
    model: NeuralReward
    search: _Steps
    posterior: int
    scale: float


def _read_parts(policy: Policy) -> _Parts:
    """Read the parts of a policy; raise where one cannot be frozen."""
    model, arms = shared_model(policy), catalogue_of(policy)
    if not isinstance(model, NeuralReward):
        raise _cannot("reward model", model, "one of fastbandit's")
    search = _read_search(policy.search)
    posterior, scale = _read_exploration(policy.exploration, model)
    if posterior == BOUND and search.kind == EXHAUSTIVE:
        raise _cannot("exhaustive search for a bound", policy.search, "search='generator'")
    if posterior == BOUND:
        _surrogate_of(model)
    return _Parts(arms, model, search, posterior, scale)


def _read_search(search: Search) -> _Steps:
    match search:
        case Exhaustive():
            return _Steps()
        case GeneratorSearch(generator=None) if search.exhaustive_up_to:
            return _Steps()
        case GeneratorSearch(generator=ArmGenerator() as generator, told="draw", bounded=True):
            return replace(_steps_of(search, search.heads), kind=GENERATOR, generator=generator)
        case GradientAscent(rule="direction", scan=0):
            enough = _NEVER if search.enough is None else search.enough
            return replace(_steps_of(search, search.starts), kind=ASCENT, enough=enough)
    raise _cannot(
        "search",
        search,
        "Exhaustive, GeneratorSearch(told='draw', bounded=True) after an update, or "
        "GradientAscent(rule='direction', scan=0)",
    )


def _steps_of(search: GeneratorSearch | GradientAscent, starts: int) -> _Steps:
    """Give what both searches are told, so many points to start from."""
    if search.neighbours:
        raise _cannot("search by nearest neighbours", search, "partitions= and neighbours=0")
    return _Steps(
        starts=starts,
        lookups=min(search.lookups or starts, starts),
        partitions=search.partitions,
        far=search.far,
        hops=search.hops,
        beam=search.beam,
        steps=search.steps,
        step_size=search.step_size,
    )


def _read_exploration(exploration: Exploration, model: NeuralReward) -> tuple[int, float]:
    """Tell what scores are drawn from, and how widely."""
    match exploration:
        case ThompsonSampling() if isinstance(model, DropoutReward):
            return DROPOUT, exploration.scale
        case ThompsonSampling() if isinstance(model, LastLayerReward | VariationalReward):
            return LAST_LAYER, exploration.scale
        case UpperConfidence() if isinstance(model, GradientReward):
            return BOUND, exploration.width
        case Greedy():
            return MEAN, 0.0
    both = f"{type(exploration).__name__} of a {type(model).__name__}"
    raise SettingError(
        f"This exploration cannot be frozen: got {both}. Use ThompsonSampling with a dropout or "
        f"last-layer doubt, UpperConfidence with a gradient doubt, or Greedy; or select with the "
        f"Bandit."
    )


# -- arrays


def _layers(generator: ArmGenerator | None) -> list[Any]:
    """Give the generator's layers as (inputs + 1, outputs), inputs filled up to a multiple of 4."""
    if generator is None:
        return [_frozen(torch.zeros(1, 0))] * 3
    layers: Sequence[nn.Linear] = list(generator.layers)  # type: ignore[arg-type]
    return [_frozen(_layer(layer)) for layer in layers]


def _layer(layer: nn.Linear) -> Tensor:
    missing = -layer.weight.shape[1] % _ROWS
    rows = torch.nn.functional.pad(layer.weight.T, (0, 0, 0, missing))
    return torch.cat([rows, layer.bias[None]])


def _flat(layer: nn.Linear) -> Tensor:
    return torch.cat([layer.weight.flatten(), layer.bias])


def _matrix(encoder: Encoder) -> Tensor:
    """Give a dense encoder as one matrix, the scale of its columns taken in, constant last."""
    assert isinstance(encoder, DenseEncoder)
    weight = encoder.linear.weight.double() / encoder.standardise.scale.double()
    constant = encoder.linear.bias.double() - weight @ encoder.standardise.shift.double()
    return torch.cat([weight, constant[:, None]], dim=1)


def _bounds(encoder: Encoder) -> Any:
    """Give what a dense encoder cuts columns to, lowest and highest; nothing where it does not."""
    if not isinstance(encoder, DenseEncoder) or not encoder.standardise.cuts:
        return _frozen(torch.zeros(0, 0))
    return _frozen(torch.stack([encoder.standardise.low, encoder.standardise.high]))


def _surrogate_of(model: NeuralReward) -> RewardNetwork:
    """Give the network by which a search for a bound finds its way."""
    assert isinstance(model, GradientReward)
    if model.bonus is None or not model.bonus_scale > 0:
        raise _cannot("bound", model.settings.hidden, "a network of one hidden layer")
    return model.bonus


def _side_by_side(
    first: nn.Linear, last: nn.Linear, surrogate: RewardNetwork | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Give first weights and biases and last weights, the guessing units (as yet mute) behind."""
    if surrogate is None:
        return first.weight, first.bias, last.weight[0]
    more = surrogate.layers[0]
    mute = torch.zeros(len(more.bias))
    return (
        torch.cat([first.weight, more.weight]),
        torch.cat([first.bias, more.bias]),
        torch.cat([last.weight[0], mute]),
    )


def _wide(network: RewardNetwork) -> Tensor:
    """Give the wide path's weights, zeros where there is none."""
    return torch.zeros(network.input_sizes[0]) if network.wide is None else network.wide.weight[0]


def _bonus(model: NeuralReward, surrogate: RewardNetwork) -> Tensor:
    """Give what a bound of width 1 adds to the last weights, their constant, the wide weights."""
    assert isinstance(model, GradientReward)
    assert surrogate.wide is not None
    last, scale = surrogate.layers[-1], model.bonus_scale
    before = torch.zeros(model.network.input_sizes[-1])
    constant = scale * (last.bias + surrogate.wide.bias) + model.bonus_shift
    return torch.cat([before, scale * last.weight[0], constant, scale * surrogate.wide.weight[0]])


def _root(model: NeuralReward) -> Tensor:
    """Give the root of the inverse of Z as a lower triangle, or its diagonal as one row."""
    assert isinstance(model, GradientReward)
    return model.root.T if model.is_full else model.inverse[None]


def _dropout(model: NeuralReward) -> Tensor:
    """Give, for each layer, logit, 1 / share kept, and where a mask is surely all or nothing."""
    logits = torch.stack([drop.logit for drop in model.network.dropouts]).double()
    rates = torch.sigmoid(logits)
    low, high = torch.sigmoid(-_SURE / 10 - logits), torch.sigmoid(_SURE / 10 - logits)
    return torch.stack([logits, 1 / (1 - rates), low, high], dim=1)


def _centre(model: NeuralReward) -> Tensor:
    assert isinstance(model, LinearEnd)
    return torch.stack([model.centre, model.spread.square().sum(1).sqrt()])


def _spread(model: NeuralReward) -> Tensor:
    assert isinstance(model, LinearEnd)
    return model.spread


def _box(arms: Catalogue) -> Tensor:
    parts = (arms.low, arms.high, (arms.high + arms.low) / 2, (arms.high - arms.low) / 2)
    return torch.nn.functional.pad(torch.stack(parts), (0, -arms.dim % _COLUMNS))


def _frozen(tensor: Tensor) -> Any:
    return read_only(tensor.detach().cpu().to(torch.float32).numpy())


def _cannot(part: str, found: object, instead: str) -> SettingError:
    return SettingError(
        f"This {part} cannot be frozen: got {found if isinstance(found, str) else _name(found)}. "
        f"Use {instead}, or select with the Bandit."
    )


def _name(found: object) -> str:
    text = repr(found)
    return text if len(text) <= 120 else type(found).__name__
