"""LinearReward: a logistic or linear regression on principal directions, with a full covariance.

Early on, with few rewards, it beats a network where arms have many features. It has the shape of a
network whose hidden units say nothing, so that whatever searches, draws from or freezes a network
with a Bayesian last layer does so with this one.

Where contexts and arms have texts of one space, products of what matches are features, too
(`fastbandit.reward.matches`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from fastbandit.reward.context_features import principal_directions
from fastbandit.reward.encoders import (
    DenseEncoder,
    Encoder,
    FeaturesAndIdsEncoder,
    IdEncoder,
    SparseEncoder,
)
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.matches import matched_directions, matches_of
from fastbandit.types import Floats, Inputs, Interactions

TEMPER = 0.57
"""Draws are so much narrower than the posterior: 0.4 of its width at the default scale, 0.7."""
_HIDDEN = 8
_SAMPLE = 16_384  # rows that directions are taken from
_ARM_PRECISION = 3.0  # of the prior of weights of arm features
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

    def observe_arms(self, arms: Inputs) -> None:
        super().observe_arms(arms)
        self._orient(0, self.arm_encoder, arms)

    def start(self, history: Interactions, *, fresh: int) -> None:
        super().start(history, fresh=fresh)
        self._orient(1, self.context_encoder, history.contexts)

    @torch.no_grad()
    def _orient(self, which: int, encoder: Encoder, inputs: Inputs) -> None:
        """Have an encoder tell the directions along which its inputs differ most, once."""
        is_turned = self.get_buffer("is_turned")
        features = encoder.features if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
        ids = encoder.ids if isinstance(encoder, FeaturesAndIdsEncoder) else encoder
        if isinstance(ids, IdEncoder):  # ids say nothing here, those that came since neither
            ids.weight.zero_()
        if is_turned[which] or not len(inputs):
            return
        some = inputs.take(np.linspace(0, len(inputs) - 1, min(len(inputs), _SAMPLE)).astype(int))
        size = self.settings.embedding
        if isinstance(features, DenseEncoder):
            assert some.dense is not None
            dense = torch.as_tensor(some.dense, device=features.linear.weight.device)
            numbers = features.standardise(dense.double()).cpu().numpy()
            if self.matches is None:
                found = principal_directions(numbers, min(size, numbers.shape[1])).T
            else:
                places = (self.matches.arms, self.matches.contexts)[which]
                scales = features.standardise.scale.double().cpu().numpy()
                found = matched_directions(places, numbers, scales, size)
            features.linear.weight[: len(found)] = torch.from_numpy(found).float()
        elif isinstance(features, SparseEncoder):
            assert some.sparse is not None
            lengths = np.sqrt(np.asarray(some.sparse.multiply(some.sparse).sum(1))[:, 0])
            from scipy.sparse import diags

            rows = diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ some.sparse
            found = principal_directions(rows.tocsr(), min(size, rows.shape[1]))
            features.weight[:, : found.shape[1]] = torch.from_numpy(found).float()
        is_turned[which] = True

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        self.solve(history, own_width=0.0)

    @torch.no_grad()
    def solve(self, history: Interactions, *, own_width: float) -> None:
        """Find the posterior of shared weights; arms' constants, so wide, are integrated out."""
        x = self.features(self.embed_contexts(history.contexts), self.embed_arms(history.arms))
        z = x.double().cpu().numpy()
        given = torch.from_numpy(history.rewards).to(x.device)
        rewards = self.standardised(given).double().cpu().numpy()
        weights = np.ones(len(z)) if history.weights is None else history.weights
        rows = history.rows if own_width > 0 else None
        centre, spread, noise = fitted(
            z,
            rewards,
            weights,
            rows,
            prior=self._prior(),
            own=own_width,
            is_binary=self.reward == "binary",
        )
        self.centre.copy_(torch.from_numpy(centre))
        self.spread.copy_(torch.from_numpy(TEMPER * spread))
        self.log_noise.fill_(0.5 * np.log(noise))

    def _prior(self) -> Floats:
        """Return the precision of weights: of hidden units, context, arm, products, constant."""
        size = self.settings.embedding
        before = [np.ones(_HIDDEN + size), np.full(size, _ARM_PRECISION)]
        if self.matches is None:
            return np.diag(np.concatenate([*before, np.full(1, _FREE)]))
        found = np.diag(np.concatenate([*before, np.ones(size), np.full(1, _FREE)]))
        found[-size - 1 : -1, -size - 1 : -1] = self.matches.prior_precision(size)
        return found


def fitted(
    z: Floats,
    rewards: Floats,
    weights: Floats,
    rows: NDArray[np.int64] | None,
    *,
    prior: Floats,
    own: float,
    is_binary: bool,
) -> tuple[Floats, Floats, float]:
    """Return centre, spread (its square is the covariance) and noise, by Newton's method.

    Arms' own constants, of width `own`, are integrated out where `rows` tell whose they are.
    """
    arm = None if rows is None else np.unique(rows, return_inverse=True)[1]
    arms = 0 if arm is None else int(arm.max(initial=-1)) + 1
    centre, constants = np.zeros(z.shape[1]), np.zeros(arms)
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
        moment = z.T @ pull - prior @ centre
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
