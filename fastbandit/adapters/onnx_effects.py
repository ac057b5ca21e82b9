"""Arms' own weights in ONNX: from contexts and noise to the scores of all arms of an export.

An arm's score is linear in features of the context (`fastbandit.reward.context_features`), which
the graph works out from the raw context. Arms stand in the order of `ids.json`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.onnx_graph import Graph, Signal
from fastbandit.features.kinds import FeaturesAndIds, Ids, Image, Sparse
from fastbandit.reward.context_features import CLIP, ContextFeatures, FeatureNetwork, id_signs
from fastbandit.runtime.effects import DRAWN
from fastbandit.runtime.encodings import LinearEncoding
from fastbandit.runtime.kernel import POSTERIOR, SCALE
from fastbandit.runtime.parts import FrozenModel

_TINY = 1e-9
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def effects_graph(model: FrozenModel, context: LinearEncoding, rows: Rows) -> Graph:
    """Write the graph from contexts to the scores and rewards (batch, arms) of these rows."""
    graph = Graph("score")
    seen = _seen(graph, context)
    means, deviations = _weights(model, rows)
    scores = seen @ means[:, 1:].T + means[:, 0]
    if model.numbers[SCALE]:
        squares = np.square(deviations)
        variances = (seen * seen) @ squares[:, 1:].T + squares[:, 0]
        moved = variances.through("Sqrt")  # how far a draw, or a bound, lies from the mean
        if model.counts[POSTERIOR] == DRAWN:
            moved = moved * graph.input("normals", ("batch", len(rows)))
        scores = scores + moved * graph.input("scale", (1,))
    graph.output("scores", scores, ("batch", len(rows)))
    graph.output("rewards", scores, ("batch", len(rows)))  # scores are rewards already
    return graph


def _weights(model: FrozenModel, rows: Rows) -> tuple[Floats, Floats]:
    """Return the weights of arms and their deviations; those that came later have the prior's."""
    shape = (len(rows), len(model.own_shared))
    means, deviations = np.zeros(shape), np.broadcast_to(model.own_prior, shape).copy()
    is_known = rows < len(model.own_means)
    means[is_known] = model.own_means[rows[is_known]]
    deviations[is_known] = model.own_deviations[rows[is_known]]
    return model.own_shared + means, deviations.astype(np.float64)


# -- what an arm's weights see of a context, beside the constant


def _seen(graph: Graph, context: LinearEncoding) -> Signal:
    """Return features of contexts, and a network's units beside them."""
    inputs, kind = context.inputs, context.kind
    parts = []
    if not isinstance(kind, Ids):
        parts.append(_features(graph, context))
    if isinstance(kind, Ids | FeaturesAndIds):
        count = kind.count if isinstance(kind, Ids) else kind.ids.count
        table = graph.constant(id_signs(np.arange(count)))
        ids = graph.input("context_id", ("batch",), is_whole=True)
        parts.append(graph.node("Gather", [table, ids], {"axis": 0}))
    plain = parts[0].beside(*parts[1:]) if len(parts) > 1 else parts[0]
    return plain.beside(_units(plain, inputs.network)) if inputs.network.first.size else plain


def _features(graph: Graph, context: LinearEncoding) -> Signal:
    """Return numbers standardised and cut, or tokens weighed by how rare they are."""
    kind, features = context.kind, context.inputs.features
    kind = kind.features if isinstance(kind, FeaturesAndIds) else kind
    if isinstance(kind, Image):
        given = graph.input("context", ("batch", kind.height, kind.width)).shaped([0, -1])
    else:
        given = graph.input("context", ("batch", len(features.scale)))
    found = _tokens(given, features) if isinstance(kind, Sparse) else _numbers(given, features)
    return (found @ features.basis if features.basis.size else found) / features.length


def _numbers(given: Signal, features: ContextFeatures) -> Signal:
    # What 32 bits lose of the shift is taken off by itself: it may be far from zero.
    shift = features.shift.astype(np.float32)
    rest = features.shift - shift.astype(np.float64)
    return ((given - shift - rest) / features.scale).within(-CLIP, CLIP)


def _tokens(given: Signal, features: ContextFeatures) -> Signal:
    weighed = given * features.scale
    length = (weighed * weighed).summed().through("Sqrt")
    return weighed / length.within(_TINY, np.inf)


def _units(plain: Signal, network: FeatureNetwork) -> Signal:
    hidden = (plain @ network.first + network.first_bias).bent(0.0)
    units = (hidden @ network.second + network.second_bias).bent(0.0)
    return (units - network.centre) / network.length
