"""Scores of a frozen model by NumPy, many contexts and variants of one arm at a time.

What compiled code works out for many arms and one context (`fastbandit.runtime.kernel`), here for
one arm and many contexts, in float64: to explain, not to search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from fastbandit.arms.arrays import Mask
from fastbandit.arms.own_lists import BANK
from fastbandit.noise.draws import normal_at
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.effects import BOUNDED, DRAWN
from fastbandit.runtime.explanation import QUANTILE, Floats, between, middle_of
from fastbandit.runtime.feature_groups import FeatureGroups
from fastbandit.runtime.fold import (
    BOUND,
    DROPOUT,
    HEADS,
    LAST_LAYER,
    draw_all_masks,
    draw_last_layer,
)
from fastbandit.runtime.kernel import LEAK, POSTERIOR, PRODUCT, SCALE, UNITS, WIDE
from fastbandit.runtime.parts import DRAWS, FrozenModel
from fastbandit.runtime.propensity import propensity_seeds

_ARMS = 5  # the stream of `fastbandit.noise.philox`
_SMALLEST = 1e-12  # a bound's variance


@dataclass(frozen=True, eq=False)
class FrozenArmScores:
    """The scores of one arm of a frozen bandit (see `fastbandit.runtime.explanation.ArmScores`).

    `embedding` is that of the arm, `steps` what each of its features adds to it: (groups, E). The
    last group is the arm itself where `has_own`.
    """

    model: FrozenModel
    codec: Codec
    context: FeatureGroups
    row: int
    embedding: Floats
    steps: Floats
    arm_names: tuple[str, ...]
    has_own: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The features of the context, then those of the arm."""
        return (*self.context.names, *self.arm_names)

    @property
    def context_features(self) -> int:
        """How many of them are the context's."""
        return len(self.context.names)

    def __call__(self, present: Mask, *, seed: int | None) -> Floats:
        """Return a score in units of reward for each row of a mask of what is not typical."""
        scale = 0.0 if seed is None else float(self.model.numbers[SCALE])
        return self._in_rewards(self._scores(present, seed or 0, scale))

    def interval(self) -> tuple[float, float] | None:
        """Return what holds the expected reward with a probability of 90 %, by the posterior."""
        whole = np.ones((1, len(self.names)), dtype=np.bool_)
        if self._posterior == DROPOUT:
            drawn = self._in_rewards(self._dropout_draws(whole))
            return middle_of(drawn)
        if self._posterior == HEADS:
            return middle_of(self._in_rewards(self._heads(whole)))
        width = self._deviation(whole)
        if width is None:
            return None
        centre = float(self._scores(whole, 0, 0.0)[0])
        ends = self._in_rewards(np.array([centre - QUANTILE * width, centre + QUANTILE * width]))
        return between(float(ends[0]), float(ends[1]))

    # -- scores in units of the model

    @property
    def _posterior(self) -> int:
        return int(self.model.counts[POSTERIOR])

    def _scores(self, present: Mask, seed: int, scale: float) -> Floats:
        is_own = present[:, -1] if self.has_own else np.ones(len(present), dtype=np.bool_)
        if self._posterior in (DRAWN, BOUNDED):
            return self._effects(present, is_own, seed, scale)
        inputs = self._inputs(present)
        scores = self._network(inputs, seed, scale)
        if self.row < len(self.model.own_constants):
            scores = scores + is_own * self._constant(seed, scale)
        return scores

    def _in_rewards(self, scores: Floats) -> Floats:
        codec = self.codec
        if codec.reward == "binary":
            with np.errstate(over="ignore"):
                return np.asarray(1 / (1 + np.exp(-scores)))
        return scores * codec.reward_scale + codec.reward_shift

    def _contexts(self, present: Mask) -> Floats:
        mixed = self.context.mixed(present[:, : self.context_features])
        return np.asarray(self.codec.context.embed(mixed), dtype=np.float64)

    # -- arms with weights of their own

    def _effects(self, present: Mask, is_own: Mask, seed: int, scale: float) -> Floats:
        model, seen = self.model, self._contexts(present)
        scores = seen @ model.own_shared.astype(np.float64)
        means, deviations = self._weights
        own = seen @ means
        if scale:
            drawn = self._normal(seed) if self._posterior == DRAWN else 1.0
            own = own + scale * drawn * np.sqrt(np.square(seen * deviations).sum(1))
        return np.asarray(scores + is_own * own)

    @property
    def _weights(self) -> tuple[Floats, Floats]:
        """The means and deviations of the arm's own weights; the prior's if it came later."""
        model = self.model
        if self.row < len(model.own_means):
            own = (model.own_means[self.row], model.own_deviations[self.row])
        else:
            own = (np.zeros_like(model.own_prior), model.own_prior)
        return own[0].astype(np.float64), own[1].astype(np.float64)

    def _normal(self, seed: int) -> float:
        return float(normal_at(np.uint64(seed), self.row, _ARMS))

    def _constant(self, seed: int, scale: float) -> float:
        """Return the arm's own constant under a draw or a bound."""
        model = self.model
        mean, width = float(model.own_constants[self.row]), scale * self._own_width
        if not width:
            return mean
        if self._posterior == BOUND:
            return mean + width
        bank = (int(model.own_stamp[0]) * BANK + seed % BANK) % 2**64
        return mean + width * self._normal(bank)

    @property
    def _own_width(self) -> float:
        widths = self.model.own_widths
        return float(widths[self.row]) if self.row < len(widths) else 0.0

    # -- networks

    def _inputs(self, present: Mask) -> Floats:
        """Return what the first layer reads: (n, inputs)."""
        return self._whole if len(present) == 1 and present.all() else self._read(present)

    @cached_property
    def _whole(self) -> Floats:
        return self._read(np.ones((1, len(self.names)), dtype=np.bool_))

    def _read(self, present: Mask) -> Floats:
        contexts = self._contexts(present)
        missing = ~present[:, self.context_features :]
        arms = self.embedding - missing @ self.steps
        parts = [contexts, arms, contexts * arms][: 3 if self.model.counts[PRODUCT] else 2]
        return np.concatenate(parts, axis=1)

    @cached_property
    def _layers(self) -> list[tuple[Floats, Floats]]:
        """Weights (inputs, outputs) and biases of all hidden layers, without a surrogate's."""
        model = self.model
        width = int(model.counts[UNITS]) if self._posterior == BOUND else len(model.first_biases)
        layers = [(model.first_weights[:, :width], model.first_biases[:width])]
        sizes, start = model.hidden.tolist(), 0
        for inputs, outputs in pairwise(sizes):
            flat = model.deeper_weights[start : start + (inputs + 1) * outputs]
            weights = flat[: inputs * outputs].reshape(outputs, inputs).T
            layers.append((weights, flat[inputs * outputs :]))
            start += (inputs + 1) * outputs
        return [(w.astype(np.float64), b.astype(np.float64)) for w, b in layers]

    def _units(self, inputs: Floats, masks: Floats | None = None) -> Floats:
        """Return the last hidden units; masks are factors of all layers' inputs, side by side."""
        leak, start, units = float(self.model.numbers[LEAK]), 0, inputs
        for weights, biases in self._layers:
            if masks is not None:
                units = units * masks[..., start : start + len(weights)]
                start += len(weights)
            below = units @ weights + biases
            units = np.maximum(below, leak * below)
        return units if masks is None else units * masks[..., start:]

    def _end(self, units: Floats, inputs: Floats) -> Floats:
        """Return the sum of the last layer, and of the wide path."""
        model, width = self.model, units.shape[1]
        last = model.last_weights.astype(np.float64)
        scores = units @ last[:width] + last[-1]
        if model.counts[WIDE] and len(model.wide_weights):
            scores = scores + inputs @ model.wide_weights.astype(np.float64)
        return np.asarray(scores)

    def _network(self, inputs: Floats, seed: int, scale: float) -> Floats:
        if self._posterior in (LAST_LAYER, HEADS):
            return self._linear_end(inputs) @ self._drawn(seed, scale)
        masks = None
        if self._posterior == DROPOUT and scale:
            masks = self._masks(np.array([seed], np.uint64), scale)[0]
        units = self._units(inputs, masks)
        scores = self._end(units, inputs)
        if self._posterior == BOUND and scale:
            variances = np.maximum(scale**2 * self._variances(units, inputs), _SMALLEST)
            scores = scores + np.sqrt(variances)
        return scores

    # -- posteriors of networks

    def _masks(self, seeds: Any, scale: float) -> Floats:
        model = self.model
        masks = np.empty((len(seeds), int(model.mask_sizes.sum())), dtype=np.float32)
        draw_all_masks(seeds, model.dropout, model.mask_sizes, np.float32(scale), masks)
        return masks.astype(np.float64)

    def _dropout_draws(self, whole: Mask) -> Floats:
        """Return scores under some draws, those of the arm's own constant included."""
        inputs, masks = self._inputs(whole), self.model.posterior_masks.astype(np.float64)
        scores = self._end(self._units(inputs, masks), inputs)
        if self._own_width:
            return scores + [self._constant(int(seed), 1.0) for seed in propensity_seeds(0, DRAWS)]
        is_own = self.row < len(self.model.own_constants)
        return scores + (self._constant(0, 0.0) if is_own else 0.0)

    def _linear_end(self, inputs: Floats) -> Floats:
        """Return what drawn weights act on: units, the inputs of a wide path, and a constant."""
        units, ones = self._units(inputs), np.ones((len(inputs), 1))
        wide = [inputs] if self.model.counts[WIDE] else []
        return np.concatenate([units, *wide, ones], axis=1)

    def _drawn(self, seed: int, scale: float) -> Floats:
        model = self.model
        if not scale:
            return model.centre[0].astype(np.float64)
        count = model.centre.shape[1]
        drawn = np.empty((3, max(count, model.spread.shape[1]) + 1), np.float32)
        has_heads, noise = self._posterior == HEADS, np.empty(count, np.float32)
        draw_last_layer(
            np.uint64(seed), model.centre, model.spread, np.float32(scale), has_heads, drawn, noise
        )
        return drawn[2, :count].astype(np.float64)

    def _heads(self, whole: Mask) -> Floats:
        """Return the score under each head."""
        model, end = self.model, self._linear_end(self._inputs(whole))
        spread = model.spread.astype(np.float64) * np.sqrt(model.spread.shape[1])
        scores = (end @ (model.centre[0].astype(np.float64)[:, None] + spread))[0]
        is_own = self.row < len(model.own_constants)
        return scores + (self._constant(0, 0.0) if is_own else 0.0)

    def _variances(self, units: Floats, inputs: Floats) -> Floats:
        """Return gᵀ Z⁻¹ g / m of a bound, g being the gradient (`fastbandit.runtime.bound`)."""
        model, width = self.model, units.shape[1]
        slopes = model.last_weights[:width] * np.where(units > 0, 1.0, model.numbers[LEAK])
        ones = np.ones((len(inputs), 1))
        first = np.concatenate([inputs, ones], axis=1)
        tail = [units, ones, inputs] if model.counts[WIDE] else [units, ones]
        rest, size = np.concatenate(tail, axis=1), width * first.shape[1]
        root = model.root
        if len(root) == 1:
            by_unit = np.square(first) @ root[0, :size].reshape(width, -1).T
            variances = (np.square(slopes) * by_unit).sum(1) + np.square(rest) @ root[0, size:]
        else:
            outer = (slopes[:, :, None] * first[:, None, :]).reshape(len(inputs), size)
            gradients = np.concatenate([outer, rest], axis=1).astype(np.float32)
            variances = np.square(gradients @ root.T).sum(1, dtype=np.float64)
        return np.asarray(variances / width, dtype=np.float64)

    def _deviation(self, whole: Mask) -> float | None:
        """Return the standard deviation of the score by the posterior, where there is a formula."""
        if self._posterior in (DRAWN, BOUNDED):
            wide = self._contexts(whole)[0] * self._weights[1]
            return float(np.sqrt(np.square(wide).sum()))
        if self._posterior == LAST_LAYER:
            spread = self.model.spread.astype(np.float64)
            shared = np.square(self._linear_end(self._inputs(whole))[0] @ spread).sum()
            return float(np.sqrt(shared + self._own_width**2))
        if self._posterior == BOUND:
            inputs = self._inputs(whole)
            variance = float(self._variances(self._units(inputs), inputs)[0])
            return float(np.sqrt(max(variance, _SMALLEST))) + self._own_width
        return self._own_width or None
