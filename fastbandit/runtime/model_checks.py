"""Whether the parts of a frozen bandit fit one another: what compiled code relies on."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from fastbandit.arms.partitions import LANES, group_count, padded_size, partition_count
from fastbandit.features.kinds import Dense, FeaturesAndIds, Sparse
from fastbandit.files.array_specs import check_arrays
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.effects import BOUNDED, DRAWN
from fastbandit.runtime.encodings import Encoding, LinearEncoding, typical_inputs
from fastbandit.runtime.fold import BOUND, DROPOUT, HEADS, LAST_LAYER
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.kernel import (
    BEAM,
    ENOUGH,
    EXHAUSTIVE,
    GENERATOR,
    HOPS,
    LOOKUPS,
    PARTITIONS,
    POSTERIOR,
    PRODUCT,
    SCALE,
    SEARCH,
    STARTS,
    STEPS,
    UNITS,
    WIDE,
)
from fastbandit.runtime.parts import FrozenModel

_MOST = {SEARCH: 2, POSTERIOR: 6, PRODUCT: 1, WIDE: 1}
_FEW, _MANY = 2**16, 2**20
"""No decision takes so many of a thing, or of one for each of another: it would never end."""
_ROWS_LIKE = 16  # two rows in this many may be of arms that are gone
_SPARE = 2**24
_ROWS = 4  # a generator's inputs are filled up to a multiple of it


def check_parts(model: FrozenModel, catalogue: FrozenCatalogue, codec: Codec) -> None:
    """Raise ValueError where an array is of another kind, shape or range than the others need."""
    check_arrays(model, _model_sizes(model))
    if not np.isfinite(model.numbers[:ENOUGH]).all() or np.isnan(model.numbers[ENOUGH]):
        raise ValueError("numbers are not finite")
    if model.numbers[SCALE] and not model.centre[1].all():
        raise ValueError("a weight is drawn that has no deviation to measure its draw by")
    _check_catalogue(model, catalogue)
    _check_codec(model, codec)


def check_rows(total: int, first_more: int, more: int, arms: int) -> None:
    """Raise ValueError unless so many rows can be of these arms, before there is room for them."""
    most = _SPARE + _ROWS_LIKE * (arms + more)
    if not 0 <= first_more <= first_more + more == total <= most:
        raise ValueError(f"{total} rows for {arms} arms in partitions and {more} from {first_more}")


# -- the model


def _model_sizes(model: FrozenModel) -> dict[str, int]:
    """Return the sizes that follow from the settings and a few arrays."""
    counts = _checked_counts(model)
    axes, embedding = model.to_embedding.shape
    dim, own = axes - 1, len(model.own_shared)
    if dim < 1 or embedding < 1:
        raise ValueError(f"points of {dim} columns, embeddings of {embedding}")
    is_bounded, has_lists = len(model.bounds) > 0, len(model.own_constants) > 0
    sizes = {
        "axes": axes,
        "embedding": embedding,
        "own": own,
        "owners": len(model.own_means),
        "own_columns": own if len(model.own_means) else model.own_means.shape[1],
        "constants": len(model.own_constants),
        "stamps": 1 if has_lists else len(model.own_stamp),
        "bounds": 2 if is_bounded else 0,
        "bounded": model.encoder.shape[1] - 1 if is_bounded else 0,
    }
    has_effects = counts[POSTERIOR] in (DRAWN, BOUNDED)
    if has_effects != (own > 0) or (has_effects and counts[SEARCH] != EXHAUSTIVE):
        raise ValueError(f"{own} weights of the arms' own for posterior {counts[POSTERIOR]}")
    return sizes | (_no_network(dim) if has_effects else _network_sizes(model, counts))


def _checked_counts(model: FrozenModel) -> list[int]:
    """Return the settings, or raise where one is none, or asks for work without an end."""
    counts = [int(count) for count in model.counts]
    if len(counts) != UNITS + 1:
        raise ValueError(f"{len(counts)} settings")
    together = (
        counts[STARTS] * (counts[STEPS] + counts[LOOKUPS]),
        counts[LOOKUPS] * max(1, counts[PARTITIONS]),
        counts[HOPS] * counts[BEAM],
    )
    is_known = all(0 <= count <= _MOST.get(place, _FEW) for place, count in enumerate(counts))
    if not is_known or max(together) > _MANY:
        raise ValueError(f"settings {counts} are out of range")
    return counts


def _no_network(dim: int) -> dict[str, int]:
    nothing = "inputs units deeper layers masks drawn draws bonus roots gradient width proposed"
    ones = {"read": 1, "last": 1, "signals": 1, "between": 1}
    return {**dict.fromkeys(nothing.split(), 0), **ones, "encoded": 0, "columns": dim}


def _network_sizes(model: FrozenModel, counts: list[int]) -> dict[str, int]:
    (axes, embedding), hidden = model.to_embedding.shape, model.hidden.tolist()
    if (
        not hidden
        or min(hidden) < 1
        or sum(hidden) > model.first_biases.size + model.deeper_weights.size
    ):
        raise ValueError(f"hidden layers of {hidden} units")
    posterior, top, dim = counts[POSTERIOR], hidden[-1], axes - 1
    inputs = (3 if counts[PRODUCT] else 2) * embedding
    wide = inputs if counts[WIDE] else 0
    is_last_layer, is_bound = posterior in (LAST_LAYER, HEADS), posterior == BOUND
    sizes = {
        "encoded": embedding if len(model.encoder) else 0,
        "read": max(1, model.encoder.shape[1]) if len(model.encoder) else 1,
        "inputs": inputs,
        "units": hidden[0],
        "layers": len(hidden),
        "deeper": sum((below + 1) * above for below, above in pairwise(hidden)),
        "last": top + 1,
        "masks": len(hidden) + 1 if posterior == DROPOUT else 0,
        "drawn": top + wide + 1 if is_last_layer else 0,
        "bonus": top + 1 + inputs if is_bound else 0,
        "columns": padded_size(dim),
    }
    sizes["draws"] = max(1, model.spread.shape[1]) if posterior == HEADS else sizes["drawn"]
    if posterior == DROPOUT and model.mask_sizes.tolist() != [inputs, *hidden]:
        raise ValueError(f"masks of {model.mask_sizes.tolist()} for {inputs} inputs, {hidden}")
    gradient = counts[UNITS] * (inputs + 2) + 1 + wide if is_bound else 0
    if is_bound and (
        not 0 < counts[UNITS] <= top or len(hidden) > 1 or counts[SEARCH] == EXHAUSTIVE
    ):
        raise ValueError(f"a bound of {counts[UNITS]} units for hidden layers of {hidden}")
    sizes |= {"gradient": gradient, "roots": 1 if len(model.root) == 1 else gradient}
    return sizes | _generator_sizes(model, counts, sizes)


def _generator_sizes(
    model: FrozenModel, counts: list[int], sizes: dict[str, int]
) -> dict[str, int]:
    if counts[SEARCH] != GENERATOR:
        return {"signals": 1, "width": 0, "between": 1, "proposed": 0}
    (axes, embedding), width = model.to_embedding.shape, model.layer_1.shape[1]
    noise = max(int(model.mask_sizes.sum()), sizes["drawn"])
    return {
        "signals": _filled(embedding + noise + axes - 1) + 1,
        "width": width,
        "between": _filled(width) + 1,
        "proposed": counts[STARTS] * (axes - 1),
    }


def _filled(size: int) -> int:
    return -(-size // _ROWS) * _ROWS


# -- the arms


def _check_catalogue(model: FrozenModel, catalogue: FrozenCatalogue) -> None:
    arms, rows, more = catalogue.arms, catalogue.rows, catalogue.more
    count, dim = len(arms.order), len(model.to_embedding) - 1
    partitions = partition_count(count)
    if model.counts[SEARCH] == EXHAUSTIVE and len(arms.centres) == 1:
        partitions = 1  # which finds nothing: all arms are scored
    sizes = {
        "rows": catalogue.first_more,
        "arms": count,
        "dim": dim,
        "neighbours": arms.graph.shape[1],
        "columns": padded_size(dim),
        "blocks": -(-partitions // LANES),
        "group_blocks": -(-group_count(partitions) // LANES),
        "outermost": len(arms.far),
    }
    check_arrays(arms, sizes)
    if more.ndim != 2 or more.shape[1] != dim or more.dtype != np.float32:
        raise ValueError(f"more has shape {more.shape} of {more.dtype}, for {dim} columns")
    if not np.isfinite(more).all():
        raise ValueError("more holds numbers that are not finite")
    if (
        not count
        or not rows.live_count
        or np.count_nonzero(catalogue.positions >= 0) != count + len(more)
    ):
        raise ValueError(f"{rows.live_count} arms live, and {count} in partitions, or one twice")
    if not len(rows.ids) == len(rows.live) == rows.total:
        raise ValueError(f"{rows.total} rows and {len(rows.ids)} ids")


# -- what is read and answered


def _check_codec(model: FrozenModel, codec: Codec) -> None:
    is_whole = all(type(number) is int and number >= 0 for number in (codec.seed, codec.version))
    terms = (codec.reward_shift, codec.reward_scale)
    if not is_whole or codec.reward not in ("real", "binary") or not all(map(math.isfinite, terms)):
        raise ValueError("seed, version or units of reward are none")
    has_effects = len(model.own_shared) > 0
    dim, embedding = len(model.to_embedding) - 1, model.to_embedding.shape[1]
    if codec.centre.shape != (embedding,) or codec.inverse.shape != (embedding, dim):
        raise ValueError(f"centre {codec.centre.shape} and inverse {codec.inverse.shape}")
    if has_effects != isinstance(codec.context, LinearEncoding):
        raise ValueError("contexts are read in another way than arms are scored")
    if codec.version:
        _check_encoding(codec.context, len(model.own_shared) or embedding)
        compiled = model.encoder.shape[1] - 1 if len(model.encoder) else None
        if codec.context.is_compiled and getattr(codec.context.kind, "dim", None) != compiled:
            raise ValueError(f"contexts of kind {codec.context.kind}, embedded from {compiled}")
        if not codec.context.is_compiled and compiled is not None:
            raise ValueError("contexts are embedded twice")
    if not has_effects:
        _check_encoding(codec.arm, embedding)


def _check_encoding(encoding: Encoding | LinearEncoding, columns: int) -> None:
    """Raise unless features of the kind become so many finite numbers."""
    plain = encoding.kind.features if isinstance(encoding.kind, FeaturesAndIds) else encoding.kind
    if isinstance(plain, Dense | Sparse) and plain.dim != encoding.features:
        raise ValueError(f"{plain.dim} features, and arrays for {encoding.features}")
    if encoding.typical.size not in (0, encoding.features):
        raise ValueError(f"{encoding.typical.size} typical features of {encoding.features}")
    embedded: Any = encoding.embed(typical_inputs(encoding))
    if embedded.shape != (1, columns) or not np.isfinite(embedded).all():
        raise ValueError(f"features embed to {embedded.shape}, or not to finite numbers")
