"""From a compiled model and compiled steps to the arrays that a kernel reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fastbandit.arms.arrays import read_only
from fastbandit.interfaces import CompiledModel
from fastbandit.reward.encoders import DenseEncoder
from fastbandit.reward.network import RewardNetwork
from fastbandit.runtime.effects import BOUNDED, DRAWN
from fastbandit.runtime.fold import BOUND, DROPOUT, HEADS, LAST_LAYER, MEAN
from fastbandit.runtime.kernel import ASCENT, EXHAUSTIVE, GENERATOR
from fastbandit.runtime.parts import FrozenModel
from fastbandit.score import Affine
from fastbandit.search.steps import CompiledSteps

_SURE = 17.0  # a sigmoid beyond this is 0 or 1 in float32
_TINY = 1e-12
_ROWS = 4  # compiled layers read so many inputs at a time
_COLUMNS = 8
_KINDS = {"scan": EXHAUSTIVE, "ascent": ASCENT, "generator": GENERATOR}
_POSTERIORS = {
    "mean": MEAN,
    "dropout": DROPOUT,
    "last-layer": LAST_LAYER,
    "heads": HEADS,
    "bound": BOUND,
}


def network_arrays(
    model: CompiledModel, steps: CompiledSteps, amount: float, *, to_embedding: Affine, box: Tensor
) -> FrozenModel:
    """Return the arrays of a network over contexts and arms, its posterior and its search."""
    network, surrogate = model.network, model.surrogate
    assert isinstance(network, RewardNetwork)
    assert surrogate is None or isinstance(surrogate, RewardNetwork)
    posterior = _POSTERIORS[model.draws_from]
    first, *deeper, last = network.layers
    first_weights, first_biases, last_weights = _side_by_side(first, last, surrogate)
    constant = last.bias if network.wide is None else last.bias + network.wide.bias
    has_wide = network.wide is not None
    inputs = network.input_sizes[0]
    wide_weights = torch.zeros(inputs) if network.wide is None else network.wide.weight[0]
    if model.last is not None:
        last_weights, wide, constant = model.last
        wide_weights = wide if has_wide else wide_weights
    walk = (steps.partitions, steps.far, steps.hops, steps.beam, steps.steps)
    sizes = (steps.starts, steps.lookups, *walk)
    flags = (_KINDS[steps.kind], posterior, network.product, has_wide or surrogate is not None)
    step = steps.step_size * math.sqrt(box.shape[1])
    encoder, layers = model.context_encoder, _layers(steps.generator)
    is_dense, is_dropout = isinstance(encoder, DenseEncoder), posterior == DROPOUT
    return FrozenModel(
        counts=read_only(np.array([*flags, *sizes, network.input_sizes[-1]], np.int64)),
        numbers=frozen(torch.tensor([amount, step, network.leak, steps.enough])),
        encoder=frozen(matrix_of(encoder) if is_dense else torch.zeros(0, 1)),
        first_weights=frozen(first_weights.T),
        first_biases=frozen(first_biases),
        deeper_weights=frozen(torch.cat([torch.zeros(0), *map(_flat, deeper)])),
        hidden=read_only(np.array([len(first_biases), *network.input_sizes[2:]], np.int64)),
        last_weights=frozen(torch.cat([last_weights, constant])),
        wide_weights=frozen(wide_weights),
        to_embedding=frozen(torch.cat([to_embedding.axes, to_embedding.centre[None]])),
        dropout=frozen(_dropout(network) if is_dropout else torch.zeros(0, 4)),
        mask_sizes=read_only(np.array(network.input_sizes if is_dropout else [], np.int64)),
        centre=frozen(_centre(model)),
        spread=frozen(torch.zeros(0, 0) if model.spread is None else model.spread),
        bonus=frozen(torch.zeros(0) if surrogate is None else _bonus(model, network, surrogate)),
        root=frozen(torch.zeros(0, 0) if model.root is None else model.root),
        layer_1=layers[0],
        layer_2=layers[1],
        layer_3=layers[2],
        box=frozen(torch.nn.functional.pad(box, (0, -box.shape[1] % _COLUMNS))),
        bounds=bounds_of(encoder),
        **_own(model),
    )


def effects_arrays(
    effects: Any, amount: float, *, is_drawn: bool, to_embedding: Affine, dim: int
) -> FrozenModel:
    """Return the arrays of arms that have weights of their own; `effects` are None if untrained."""
    size = 1 if effects is None else effects.inputs.count
    weights = None if effects is None else effects.effects
    blank, one = read_only(np.zeros((0, 0), np.float32)), read_only(np.zeros(1, np.float32))
    nothing = frozen(torch.zeros(1, 0))
    kind = DRAWN if is_drawn else BOUNDED
    return FrozenModel(
        counts=read_only(np.array([EXHAUSTIVE, kind, *[0] * 10], np.int64)),
        numbers=frozen(torch.tensor([amount, 0.0, 0.0, math.inf])),
        encoder=frozen(torch.zeros(0, 1)),
        first_weights=blank,
        first_biases=one[:0],
        deeper_weights=one[:0],
        hidden=read_only(np.zeros(0, np.int64)),
        last_weights=one,
        wide_weights=one[:0],
        to_embedding=frozen(torch.cat([to_embedding.axes, to_embedding.centre[None]])),
        dropout=frozen(torch.zeros(0, 4)),
        mask_sizes=read_only(np.zeros(0, np.int64)),
        centre=frozen(torch.zeros(2, 0)),
        spread=blank,
        bonus=one[:0],
        root=blank,
        layer_1=nothing,
        layer_2=nothing,
        layer_3=nothing,
        box=read_only(np.zeros((4, dim), np.float32)),
        own_shared=_small(np.zeros(size) if weights is None else weights.shared),
        own_prior=_small(np.zeros(size) if weights is None else weights.prior),
        own_means=_small(np.zeros((0, size)) if weights is None else weights.means),
        own_deviations=_small(np.zeros((0, size)) if weights is None else weights.deviations),
    )


def matrix_of(encoder: Any) -> Tensor:
    """Return a dense encoder as one matrix, the scale of its columns taken in, constant last."""
    assert isinstance(encoder, DenseEncoder)
    weight = encoder.linear.weight.double() / encoder.standardise.scale.double()
    constant = encoder.linear.bias.double() - weight @ encoder.standardise.shift.double()
    return torch.cat([weight, constant[:, None]], dim=1)


def bounds_of(encoder: Any) -> Any:
    """Return what a dense encoder cuts columns to, lowest and highest; nothing if it does not."""
    if not isinstance(encoder, DenseEncoder) or not encoder.standardise.cuts:
        return frozen(torch.zeros(0, 0))
    return frozen(torch.stack([encoder.standardise.low, encoder.standardise.high]))


def typical_of(encoder: Any) -> Tensor:
    """Return the mean of the columns that a dense encoder has seen; nothing of others."""
    return encoder.standardise.shift if isinstance(encoder, DenseEncoder) else torch.zeros(0)


def frozen(tensor: Tensor) -> Any:
    """Return a tensor as an array of float32 that nobody can write to."""
    return read_only(tensor.detach().cpu().to(torch.float32).numpy())


def _own(model: CompiledModel) -> dict[str, Any]:
    """Return arms' own constants, where a model has any."""
    if model.own is None:
        return {}
    means, deviations, stamp = model.own
    return {
        "own_constants": read_only(means),
        "own_widths": read_only(deviations),
        "own_stamp": read_only(np.array([stamp], np.int64)),
    }


def _centre(model: CompiledModel) -> Tensor:
    """Return the centre of drawn weights, and the deviation of each."""
    if model.centre is None or model.spread is None:
        return torch.zeros(2, 0)
    deviations = model.spread.square().sum(1).sqrt()
    return torch.stack([model.centre, deviations.clamp_min(_TINY)])  # draws are divided by it


def _layers(generator: nn.Module | None) -> list[Any]:
    """Return a generator's layers as (inputs + 1, outputs), inputs padded to a multiple of 4."""
    if generator is None:
        return [frozen(torch.zeros(1, 0))] * 3
    layers: Sequence[nn.Linear] = list(generator.layers)  # type: ignore[arg-type]
    return [frozen(_layer(layer)) for layer in layers]


def _layer(layer: nn.Linear) -> Tensor:
    missing = -layer.weight.shape[1] % _ROWS
    rows = torch.nn.functional.pad(layer.weight.T, (0, 0, 0, missing))
    return torch.cat([rows, layer.bias[None]])


def _flat(layer: nn.Linear) -> Tensor:
    return torch.cat([layer.weight.flatten(), layer.bias])


def _side_by_side(
    first: nn.Linear, last: nn.Linear, surrogate: RewardNetwork | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return first weights and biases and last weights, with the units of a surrogate behind."""
    if surrogate is None:
        return first.weight, first.bias, last.weight[0]
    more = surrogate.layers[0]
    mute = torch.zeros(len(more.bias))
    return (
        torch.cat([first.weight, more.weight]),
        torch.cat([first.bias, more.bias]),
        torch.cat([last.weight[0], mute]),
    )


def _bonus(model: CompiledModel, network: RewardNetwork, surrogate: RewardNetwork) -> Tensor:
    """Return what a bound of width 1 adds to the last weights, their constant, the wide weights."""
    assert surrogate.wide is not None
    last, scale = surrogate.layers[-1], model.bonus_scale
    before = torch.zeros(network.input_sizes[-1])
    constant = scale * (last.bias + surrogate.wide.bias) + model.bonus_shift
    return torch.cat([before, scale * last.weight[0], constant, scale * surrogate.wide.weight[0]])


def _dropout(network: RewardNetwork) -> Tensor:
    """Return, for each layer, logit, 1 / share left, and where a mask is surely all or nothing."""
    logits = torch.stack([drop.logit for drop in network.dropouts]).double()
    rates = torch.sigmoid(logits)
    low, high = torch.sigmoid(-_SURE / 10 - logits), torch.sigmoid(_SURE / 10 - logits)
    return torch.stack([logits, 1 / (1 - rates), low, high], dim=1)


def _small(array: Any) -> Any:
    return read_only(array.astype(np.float32))
