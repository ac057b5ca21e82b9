"""LinearReward: a logistic or linear regression on principal directions, with a full covariance.

Early on, with few rewards, it beats a network where arms have many features. It has the shape of a
network whose hidden units say nothing, so that whatever searches, draws from or freezes a network
with a Bayesian last layer does so with this one.

Where contexts and arms have texts of one space, products of what matches are features, too
(`fastbandit.reward.matches`); elsewhere those of pairs of directions that rewards tell, as long as
these explain more than they cost (`fastbandit.reward.crosses`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from fastbandit.reward.context_features import principal_directions
from fastbandit.reward.crosses import SAMPLE, Crosses
from fastbandit.reward.encoders import (
    DenseEncoder,
    Encoder,
    FeaturesAndIdsEncoder,
    IdEncoder,
    SparseEncoder,
)
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.matches import matched_directions, matches_of
from fastbandit.reward.model import normals_need
from fastbandit.reward.network import RewardNetwork
from fastbandit.types import Floats, Inputs, Interactions

TEMPER = 0.57
"""Draws are so much narrower than the posterior: 0.4 of its width at the default scale, 0.7."""
_HIDDEN = 8
_ARM_PRECISION = 3.0  # of the prior of weights of arm features
_LOOSE = 1e-3  # where a direction says nothing
_FREE = 1e-6
_STEPS = 50
_LONGEST = 2.0
_EXACT = 1e-6
_LEAST_NOISE = 1e-2


class LinearReward(LastLayerReward):
    """Rewards that are linear (binary ones: in log odds) in features of context and arm."""

    def __init__(self, plan: Any, *, rng: Generator) -> None:
        matches = matches_of(plan.context, plan.arm, plan.network.embedding)
        more = 0 if matches is None else len(matches.contexts)  # beside as many for all the rest
        shape = {
            "embedding": plan.network.embedding + more,
            "hidden": (_HIDDEN,),
            "product": more > 0,
            "wide": True,
            "fourier_features": 0,
        }
        plain = replace(plan, network=replace(plan.network, **shape))
        super().__init__(plain, prior_precision=1.0, rng=rng)
        self.matches = matches
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
        self.register_buffer("is_turned", torch.zeros(2, dtype=torch.bool))
        self._arms: Inputs | None = None

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take over whether products were of use."""
        saved = state.get(f"{prefix}network.wide.weight")
        if saved is not None and self.matches is None:
            self._shape(product=saved.shape[-1] == 3 * self.settings.embedding)
        super()._load_from_state_dict(state, prefix, *rest)

    @torch.no_grad()
    def _shape(self, *, product: bool) -> None:
        """Have weights of products, or none."""
        if product == self.network.product:
            return
        self.settings = replace(self.settings, product=product)
        size = self.settings.embedding
        network = RewardNetwork(
            size, (_HIDDEN,), product=product, dropout=False, rng=Generator().manual_seed(0)
        )
        for parameter in network.parameters():
            parameter.zero_()
        self.network = network.to(self.centre.device).requires_grad_(False)
        self.parts = [_HIDDEN, network.input_sizes[0], 1]
        self.noise_size = normals_need(sum(self.parts))
        self.centre = self.centre.new_zeros(sum(self.parts))
        self.spread = torch.eye(sum(self.parts)).to(self.centre)

    def observe_arms(self, arms: Inputs) -> None:
        super().observe_arms(arms)
        self._arms = _some(arms)
        self._orient(0, self.arm_encoder, self._arms)

    def start(self, history: Interactions, *, fresh: int) -> None:
        super().start(history, fresh=fresh)
        self._orient(1, self.context_encoder, _some(history.contexts))

    @torch.no_grad()
    def _orient(self, which: int, encoder: Encoder, some: Inputs) -> None:
        """Have an encoder tell the directions along which its inputs differ most, once."""
        is_turned = self.get_buffer("is_turned")
        ids = encoder.ids if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
        if isinstance(ids, IdEncoder):  # ids say nothing here, those that came since neither
            ids.weight.zero_()
        if is_turned[which] or not len(some):
            return
        numbers, size = _numbers(encoder, some), self.settings.embedding
        if numbers is not None and self.matches is not None:
            places = (self.matches.arms, self.matches.contexts)[which]
            scales = _features(encoder).standardise.scale.double().cpu().numpy()
            _turn(encoder, matched_directions(places, numbers, scales, size).T)
        elif numbers is not None:
            _turn(encoder, principal_directions(numbers, min(size, numbers.shape[1])))
        is_turned[which] = True

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        self.solve(history, own_width=0.0)

    @torch.no_grad()
    def solve(self, history: Interactions, *, own_width: float) -> None:
        """Find the posterior of shared weights; arms' constants, so wide, are integrated out."""
        crosses = self._cross(history)
        x = self.features(self.embed_contexts(history.contexts), self.embed_arms(history.arms))
        z = x.double().cpu().numpy()
        rewards = self._rewards(history)
        weights = np.ones(len(z)) if history.weights is None else history.weights
        rows = history.rows if own_width > 0 else None
        middle, prior = self._prior(crosses)
        centre, spread, noise = fitted(
            z,
            rewards,
            weights,
            rows,
            prior=prior,
            middle=middle,
            own=own_width,
            is_binary=self.reward == "binary",
        )
        self.centre.copy_(torch.from_numpy(centre))
        self.spread.copy_(torch.from_numpy(TEMPER * spread))
        self.log_noise.fill_(0.5 * np.log(noise))

    def _rewards(self, history: Interactions) -> Floats:
        given = torch.from_numpy(history.rewards).to(self.log_noise.device)
        return self.standardised(given).double().cpu().numpy()

    def _cross(self, history: Interactions) -> Crosses | None:
        """Have encoders tell pairs of directions whose products are of use, if there are any."""
        arms, self._arms = self._arms, None
        if self.matches is not None or arms is None:
            return None
        last = history.take(slice(-SAMPLE, None))
        inputs = (last.contexts, last.arms, arms)
        encoders = (self.context_encoder, self.arm_encoder, self.arm_encoder)
        contexts, taken, every = (_numbers(e, i) for e, i in zip(encoders, inputs, strict=True))
        if contexts is None or taken is None or every is None:
            return None
        crosses = Crosses.find(
            contexts,
            taken,
            self._rewards(last),
            np.ones(len(last)) if last.weights is None else last.weights,
            size=self.settings.embedding,
            catalogue=every,
            precisions=(1.0, _ARM_PRECISION),
            is_binary=self.reward == "binary",
        )
        if crosses is not None:
            _turn(self.context_encoder, crosses.contexts)
            _turn(self.arm_encoder, crosses.arms)
        elif self.network.product:  # they were of use before
            self.get_buffer("is_turned").fill_(False)
            self._orient(0, self.arm_encoder, arms)
            self._orient(1, self.context_encoder, _some(history.contexts))
        self._shape(product=crosses is not None)
        return crosses

    def _prior(self, crosses: Crosses | None) -> tuple[Floats, Floats]:
        """Return mean and precision of weights: hidden units, context, arm, products, constant."""
        size = self.settings.embedding
        before = [np.ones(_HIDDEN + size), np.full(size, _ARM_PRECISION)]
        products = [np.ones(size)] if self.network.product else []
        found = np.diag(np.concatenate([*before, *products, np.full(1, _FREE)]))
        middle = np.zeros(len(found))
        if self.matches is not None:
            found[-size - 1 : -1, -size - 1 : -1] = self.matches.prior_precision(size)
        if crosses is not None:
            at = _HIDDEN
            for directions, precision in ((crosses.contexts, 1.0), (crosses.arms, _ARM_PRECISION)):
                mine = slice(at, at + size)
                found[mine, mine] = _LOOSE * np.eye(size)
                mine = slice(at, at + directions.shape[1])
                found[mine, mine] += precision * directions.T @ directions
                at += size
            found[at:-1, at:-1] = crosses.prior_precision(size)
            middle[at : at + crosses.count] = 1.0
        return middle, found


def _some(inputs: Inputs) -> Inputs:
    """Return some thousand rows, evenly spaced."""
    return inputs.take(np.linspace(0, len(inputs) - 1, min(len(inputs), SAMPLE)).astype(int))


def _features(encoder: Encoder) -> Any:
    """Return what encodes features alone, without ids."""
    return encoder.features if isinstance(encoder, FeaturesAndIdsEncoder) else encoder


def _numbers(encoder: Encoder, inputs: Inputs) -> Any:
    """Return numbers as an encoder's map takes them, dense or sparse; None where it has none."""
    features = _features(encoder)
    if isinstance(features, DenseEncoder):
        assert inputs.dense is not None
        dense = torch.as_tensor(inputs.dense, device=features.linear.weight.device)
        return features.standardise(dense.double()).cpu().numpy()
    if isinstance(features, SparseEncoder):
        from scipy.sparse import diags

        assert inputs.sparse is not None
        lengths = np.sqrt(np.asarray(inputs.sparse.multiply(inputs.sparse).sum(1))[:, 0])
        return (diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ inputs.sparse).tocsr()
    return None


def _turn(encoder: Encoder, directions: Floats) -> None:
    """Have an encoder tell these directions (columns, <= size), and nothing else."""
    features = _features(encoder)
    table = features.weight if isinstance(features, SparseEncoder) else features.linear.weight.T
    table.zero_()
    table[:, : directions.shape[1]] = torch.from_numpy(directions).to(table)


def fitted(
    z: Floats,
    rewards: Floats,
    weights: Floats,
    rows: NDArray[np.int64] | None,
    *,
    prior: Floats,
    own: float,
    is_binary: bool,
    middle: Floats | None = None,
) -> tuple[Floats, Floats, float]:
    """Return centre, spread (its square is the covariance) and noise, by Newton's method.

    Weights have a prior about `middle` (None: 0). Arms' own constants, of width `own`, are
    integrated out where `rows` tell whose they are.
    """
    arm = None if rows is None else np.unique(rows, return_inverse=True)[1]
    arms = 0 if arm is None else int(arm.max(initial=-1)) + 1
    middle = np.zeros(z.shape[1]) if middle is None else middle
    centre, constants = middle.copy(), np.zeros(arms)
    noise = 1.0 if is_binary else max(float(np.average(rewards**2, weights=weights)), _LEAST_NOISE)
    loose = 1.0 / own**2 if own else 0.0
    for _ in range(_STEPS):
        predicted = z @ centre + (0.0 if arm is None else constants[arm])
        if is_binary:
            likely = 1.0 / (1.0 + np.exp(-np.clip(predicted, -40.0, 40.0)))
            curve, pull = weights * likely * (1.0 - likely), weights * (rewards - likely)
        else:
            curve, pull = weights / noise, weights * (rewards - predicted) / noise
        precision = (z * curve[:, None]).T @ z + prior
        moment = z.T @ pull - prior @ (centre - middle)
        if arm is not None:
            curvature = np.bincount(arm, weights=curve, minlength=arms) + loose
            left = np.bincount(arm, weights=pull, minlength=arms) - loose * constants
            shares = _summed(z * curve[:, None], arm, arms)
            precision -= (shares / curvature[:, None]).T @ shares
            moment -= shares.T @ (left / curvature)
        step = np.linalg.solve(precision, moment)
        longest = float(np.abs(step).max())
        if arm is not None:
            moved = (left - shares @ step) / curvature
            longest = max(longest, float(np.abs(moved).max()))
            constants += moved * min(1.0, _LONGEST / max(longest, _EXACT))
        centre += step * min(1.0, _LONGEST / max(longest, _EXACT))
        if not is_binary:
            again = rewards - z @ centre - (0.0 if arm is None else constants[arm])
            noise = max(float(np.average(again**2, weights=weights)), _LEAST_NOISE)
        if longest < _EXACT:
            break
    root = np.linalg.cholesky(precision)
    return centre, np.linalg.inv(root).T, noise


def _summed(rows: Floats, groups: NDArray[np.int64], count: int) -> Floats:
    """Return the sums of rows by group: (count, columns)."""
    order = np.argsort(groups, kind="stable")
    firsts = np.searchsorted(groups[order], np.arange(count))
    return np.asarray(np.add.reduceat(rows[order], firsts, axis=0))
