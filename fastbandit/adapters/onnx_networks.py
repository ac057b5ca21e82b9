"""The networks of a frozen bandit in ONNX: one scores arms, one proposes where to look.

Both take a context and the numbers of one posterior draw, and fold them into a small network
of the arm alone, as `fastbandit.reward.network` does. Arms are points in the coordinates that
the search moves in; the faiss index of an export holds just these. Arms that have a constant of
their own beside the network are named by their rows in it, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.onnx_effects import effects_graph
from fastbandit.adapters.onnx_graph import Graph, Signal
from fastbandit.arms.own_lists import LISTED
from fastbandit.arms.partitions import Floats
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.runtime import kernel
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.encodings import Encoding, LinearEncoding
from fastbandit.runtime.fold import BOUND, DROPOUT, HEADS, LAST_LAYER
from fastbandit.runtime.parts import FrozenModel

_SMALLEST = 2.0**-24  # of the numbers between 0 and 1 that draws are made from
_SHARPNESS = 10.0  # one over the temperature of Concrete Dropout
_TINY = 1e-12
_BEND = 0.1  # of the generator's hidden units


@dataclass(frozen=True)
class Folded:
    """A reward network of the arm alone, for each context, and what a generator takes in."""

    first: Signal  # (B, D, H)
    bias: Signal  # (B, 1, H)
    deeper: list[tuple[Signal, Signal]]  # (B or 1, inputs, outputs) and (outputs)
    last: Signal  # (B, L, 1)
    wide: Signal | None  # (B, D, 1)
    constant: Signal  # (B, 1)
    leak: float
    taken_in: list[Signal]
    scale: Signal | None  # of draws

    def scores(self, points: Signal) -> Signal:
        """Score points (B, K, D): (B, K)."""
        hidden = (points @ self.first + self.bias).bent(self.leak)
        for weight, bias in self.deeper:
            hidden = (hidden @ weight + bias).bent(self.leak)
        scores = (hidden @ self.last).narrower(-1) + self.constant
        return scores if self.wide is None else scores + (points @ self.wide).narrower(-1)

    def slopes(self, points: Signal) -> Signal:
        """Return the slopes of the scores at points: (B, K, D)."""
        below = [points @ self.first + self.bias]
        for weight, bias in self.deeper:
            below.append(below[-1].bent(self.leak) @ weight + bias)
        back = self.last.turned() * below[-1].bends(self.leak)  # (B, K, L)
        for (weight, _), sums in zip(reversed(self.deeper), reversed(below[:-1]), strict=True):
            back = (back @ weight.turned()) * sums.bends(self.leak)
        slopes = back @ self.first.turned()
        return slopes if self.wide is None else slopes + self.wide.turned()


@dataclass(frozen=True)
class Draw:
    """What one draw makes of a network: its last weights, masks, and what a generator takes in."""

    last: Signal  # (B or 1, L)
    wide: Signal | None  # (B or 1, inputs)
    constant: Signal  # (B or 1, 1)
    masks: list[Signal] | None
    taken_in: list[Signal]
    scale: Signal | None = None


@dataclass(frozen=True)
class Constants:
    """Arms' own constants beside a network, and how unsure they are, by row of an export."""

    means: Floats
    widths: Floats

    @staticmethod
    def of(model: FrozenModel, rows: NDArray[np.int64]) -> Constants:
        """Return those of some rows; arms that came later have none."""
        is_known = rows < len(model.own_constants)
        near = rows[is_known]
        means, widths = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
        means[is_known], widths[is_known] = model.own_constants[near], model.own_widths[near]
        return Constants(means, widths)

    def best(self, scale: float) -> list[int]:
        """Return the rows with the highest upper bounds, best first."""
        bounds = self.means + scale * self.widths
        rows = np.flatnonzero((self.means != 0) | (self.widths > 0))
        order = np.argsort(-bounds[rows], kind="stable")[:LISTED]
        return [int(row) for row in rows[order]]

    def beside(self, graph: Graph, scale: Signal | None) -> Signal:
        """Write the constants of `places` (B, K), drawn where there is a scale: (B, K)."""
        places = graph.input("places", ("batch", "arms"), is_whole=True)
        found = graph.node("Gather", [graph.constant(self.means), places], {"axis": 0})
        if scale is None or not self.widths.any():
            return found
        widths = graph.node("Gather", [graph.constant(self.widths), places], {"axis": 0})
        return found + widths * graph.input("normals", ("batch", "arms")) * scale


def noise_size(model: FrozenModel) -> int:
    """Return how many numbers between 0 and 1 one draw is made from."""
    if model.counts[kernel.POSTERIOR] == DROPOUT:
        return int(model.mask_sizes.sum())
    half = -(-model.centre.shape[1] // 2)
    return 2 * half if model.counts[kernel.POSTERIOR] == LAST_LAYER else 0


def check_model(model: FrozenModel) -> None:
    """Raise where the exploration cannot be written in ONNX."""
    if model.counts[kernel.POSTERIOR] == BOUND:
        raise SettingError(
            "An ONNX export needs Thompson sampling or a greedy choice: got an upper confidence "
            "bound, which re-ranks by gradients that are no network. Use exploration='ts'."
        )
    if model.counts[kernel.POSTERIOR] == HEADS:
        raise SettingError(
            "An ONNX export draws masks or weights: got a bootstrap posterior, which draws one of "
            "several heads. Use posterior='last-layer'."
        )


def score_graph(model: FrozenModel, codec: Codec, rows: NDArray[np.int64]) -> Graph:
    """Write the graph from context, draw and points (B, K, D) to their scores and rewards.

    Arms that have weights of their own need no points: it scores all of these rows.
    """
    if isinstance(codec.context, LinearEncoding):
        return effects_graph(model, codec.context, rows)
    graph = Graph("score")
    folded = _fold(graph, model, codec.context)
    scores = folded.scores(graph.input("points", ("batch", "arms", len(model.to_embedding) - 1)))
    if len(model.own_constants):
        scores = scores + Constants.of(model, rows).beside(graph, folded.scale)
    rewards = scores * codec.reward_scale + codec.reward_shift
    if codec.reward == "binary":
        rewards = scores.through("Sigmoid")
    graph.output("scores", scores, ("batch", "arms"))
    graph.output("rewards", rewards, ("batch", "arms"))
    return graph


def propose_graph(model: FrozenModel, codec: Codec) -> Graph | None:
    """Write the graph from context and draw to points near the best arms: (B, lookups, D)."""
    if model.counts[kernel.SEARCH] != kernel.GENERATOR or isinstance(codec.context, LinearEncoding):
        return None
    graph = Graph("propose")
    folded, dim = _fold(graph, model, codec.context), len(model.to_embedding) - 1
    low, high, middle, half = model.box[:, :dim]
    at_middle = folded.slopes(graph.constant(middle[None, None])).narrower(1)
    signal = folded.taken_in[0].beside(*folded.taken_in[1:], _unit(at_middle))
    heads = int(model.counts[kernel.STARTS])
    for number, layer in enumerate((model.layer_1, model.layer_2, model.layer_3)):
        inputs = _inputs_of(number, model)
        signal = (signal.bent(_BEND) if number else signal) @ layer[:inputs] + layer[-1]
    points = signal.shaped([0, heads, dim]).through("Tanh") * half + middle  # (B, M, D)
    lookups = min(int(model.counts[kernel.LOOKUPS]), heads)
    if lookups < heads:
        points = _best(folded.scores(points), points, lookups, dim=dim)
    steps = int(model.counts[kernel.STEPS])
    for step in range(steps):  # up the slope of the score, each shorter than the last
        length = float(model.numbers[kernel.STEP]) * (1 - step / steps)
        points = (points + _unit(folded.slopes(points)) * length).within(low, high)
    graph.output("points", points, ("batch", lookups, dim))
    return graph


# -- a context


def _embedded(graph: Graph, context: Encoding) -> Signal:
    """Embed contexts: numbers as `context`, and whole numbers as `context_id`."""
    kind = context.kind
    features = kind.features if isinstance(kind, FeaturesAndIds) else kind
    parts = []
    if isinstance(features, Dense):
        given = graph.input("context", ("batch", features.dim))
        given = given.within(*context.bounds) if context.bounds.size else given
        parts.append(given @ context.matrix[:, :-1].T + context.matrix[:, -1])
    elif isinstance(features, Sparse):
        given = graph.input("context", ("batch", features.dim))
        length = (given * given).summed().through("Sqrt")
        parts.append((given @ context.tokens) / length.within(_TINY, np.inf))
    if isinstance(kind, Ids | FeaturesAndIds):
        ids = graph.input("context_id", ("batch",), is_whole=True)
        table = graph.constant(context.ids)
        parts.append(graph.node("Gather", [table, ids], {"axis": 0}))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


# -- a draw, and the network it leaves


def _fold(graph: Graph, model: FrozenModel, context: Encoding) -> Folded:
    """Fold context and draw into a network of the arm alone (see `fastbandit.runtime.fold`)."""
    check_model(model)
    embedded = _embedded(graph, context)
    draw = _draw(graph, model)
    first, bias = _act_on_arm(model, embedded, draw.masks)
    axes, centre = graph.constant(model.to_embedding[:-1]), graph.constant(model.to_embedding[-1:])
    bias = bias + (centre @ first).narrower(1) + model.first_biases
    wide, constant = None, draw.constant
    if draw.wide is not None:
        wide, more = _act_wide(model, embedded, draw.wide)
        constant = constant + more
    return Folded(
        first=axes @ first,
        bias=bias.wider(1),
        deeper=_deeper(graph, model, draw.masks),
        last=draw.last.wider(-1),
        wide=wide,
        constant=constant,
        leak=float(model.numbers[kernel.LEAK]),
        taken_in=[embedded, *draw.taken_in],
        scale=draw.scale,
    )


def _draw(graph: Graph, model: FrozenModel) -> Draw:
    """Draw what is uncertain: masks of all layers, the last, linear part, or nothing."""
    scale = graph.input("scale", (1,)) if noise_size(model) else None
    if model.counts[kernel.POSTERIOR] == LAST_LAYER and scale is not None:
        weights, noise = _drawn(graph, model, scale)
        units, count = int(model.hidden[-1]), model.centre.shape[1]
        wide = weights.columns(units, count - 1) if model.counts[kernel.WIDE] else None
        last, constant = weights.columns(0, units), weights.columns(count - 1, count)
        return Draw(last, wide, constant, None, [noise], scale)
    last = graph.constant(model.last_weights[None, :-1])
    constant = graph.constant(model.last_weights[None, -1:])
    wide = graph.constant(model.wide_weights[None]) if model.counts[kernel.WIDE] else None
    if model.counts[kernel.POSTERIOR] != DROPOUT or scale is None:
        return Draw(last, wide, constant, None, [])
    masks = _masks(graph, model, scale)
    taken_in = [masks[0].beside(*masks[1:]) - 1.0]
    return Draw(last * masks[-1], wide, constant, masks, taken_in, scale)


def _act_wide(model: FrozenModel, embedded: Signal, weights: Signal) -> tuple[Signal, Signal]:
    """Split the wide path into its action on the arm's point (B, D, 1) and a constant (B, 1)."""
    frame, size = model.to_embedding, model.to_embedding.shape[1]
    acting = weights.columns(size, 2 * size)
    if model.counts[kernel.PRODUCT]:
        acting = acting + weights.columns(2 * size, 3 * size) * embedded
    constant = (weights.columns(0, size) * embedded).summed() + acting @ frame[-1:].T
    return (acting @ frame[:-1].T).wider(-1), constant


def _act_on_arm(
    model: FrozenModel, embedded: Signal, masks: list[Signal] | None
) -> tuple[Signal, Signal]:
    """Split the first layer into its action on the arm's embedding (B, E, H) and a constant."""
    size, weights = model.to_embedding.shape[1], model.first_weights

    def masked(part: int) -> Signal:
        if masks is None:
            return embedded.graph.constant(np.ones((1, size)))
        return masks[0].columns(part * size, (part + 1) * size)

    by_arm = masked(1).wider(-1) * weights[size : 2 * size]
    if model.counts[kernel.PRODUCT]:
        by_arm = by_arm + (masked(2) * embedded).wider(-1) * weights[2 * size :]
    else:
        by_arm = by_arm + (embedded * 0.0).wider(-1)  # one for each context, as above
    return by_arm, (masked(0) * embedded) @ weights[:size]


def _deeper(
    graph: Graph, model: FrozenModel, masks: list[Signal] | None
) -> list[tuple[Signal, Signal]]:
    """Return weights (B or 1, inputs, outputs) and biases of the layers after the first."""
    layers, offset = [], 0
    for number, (inputs, outputs) in enumerate(pairwise(model.hidden.tolist())):
        end = offset + inputs * outputs
        weight = graph.constant(model.deeper_weights[offset:end].reshape(outputs, inputs).T[None])
        if masks is not None:
            weight = masks[number + 1].wider(-1) * weight
        layers.append((weight, graph.constant(model.deeper_weights[end : end + outputs])))
        offset = end + outputs
    return layers


def _noise(graph: Graph, model: FrozenModel) -> Signal:
    uniforms = graph.input("uniforms", ("batch", noise_size(model)))
    return uniforms.within(_SMALLEST, 1.0 - _SMALLEST)


def _masks(graph: Graph, model: FrozenModel, scale: Signal) -> list[Signal]:
    """Turn numbers between 0 and 1 into one mask for each layer (Concrete Dropout)."""
    uniforms = _noise(graph, model)
    sizes = model.mask_sizes.tolist()
    logits = np.repeat(model.dropout[:, 0], sizes)
    factors = np.repeat(model.dropout[:, 1], sizes)
    odds = (uniforms / (uniforms * -1.0 + 1.0)).through("Log") + logits
    masks = (odds * -_SHARPNESS).through("Sigmoid") * factors
    masks = (masks - 1.0) * scale + 1.0
    ends = np.cumsum(sizes).tolist()
    return [masks.columns(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _drawn(graph: Graph, model: FrozenModel, scale: Signal) -> tuple[Signal, Signal]:
    """Draw the weights of the last, linear part; give them, and the draw in units of spread."""
    uniforms = _noise(graph, model)
    count = model.centre.shape[1]
    half = noise_size(model) // 2
    radius = (uniforms.columns(0, half).through("Log") * -2.0).through("Sqrt")
    angle = uniforms.columns(half, 2 * half) * (2 * math.pi)
    both = (radius * angle.through("Cos")).beside(radius * angle.through("Sin"))
    shift = (both.columns(0, count) @ model.spread.T) * scale
    return shift + model.centre[0], shift / model.centre[1]


# -- where to look


def _inputs_of(number: int, model: FrozenModel) -> int:
    """Return how many inputs a layer of the generator has, less what fills it up."""
    if number:
        return int((model.layer_1, model.layer_2)[number - 1].shape[1])
    drawn = max(int(model.mask_sizes.sum()), model.centre.shape[1])
    return int(model.to_embedding.shape[1] + drawn + len(model.to_embedding) - 1)


def _unit(vectors: Signal) -> Signal:
    """Return vectors the length 1."""
    return vectors / (vectors * vectors).summed().through("Sqrt").within(_TINY, np.inf)


def _best(scores: Signal, points: Signal, count: int, *, dim: int) -> Signal:
    """Keep the points with the highest scores: (B, count, D)."""
    graph = points.graph
    number = graph.constant(np.array([count]))
    _, found = graph.nodes_of("TopK", [scores, number], {"axis": 1}, outputs=2)
    spread = graph.constant(np.array([1, 1, dim]))
    found = graph.node("Tile", [found.wider(-1), spread])
    return graph.node("GatherElements", [points, found], {"axis": 1})
