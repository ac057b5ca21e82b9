"""EffectsReward: each arm has a linear model of its own, whose posterior is exact.

Arms that are known by their ids alone share nothing that a network could read. Here each has its
own weights over features of the context, shrunk towards weights that all arms share
(`fastbandit.reward.arm_effects`). The features are those of `ContextFeatures` beside the last
layer of a small network, which is trained from scratch whenever the history has grown by a set
share: one that goes on from its last weights never leaves what few early rewards made of it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.interfaces import CompiledModel, RewardModel
from fastbandit.noise.philox import Stream, normals_at
from fastbandit.reward.arm_effects import ArmEffects, Priors, Seen
from fastbandit.reward.context_features import ContextFeatures, LinearInputs
from fastbandit.reward.feature_network import fit_features
from fastbandit.reward.model import no_noise
from fastbandit.score import Score, Seeds
from fastbandit.types import Floats, Inputs, Interactions

_COLUMNS = 8  # of an arm's embedding
_TINY = 1e-9
_FEWEST = 8  # directions of contexts, however short the history


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learned: inputs of the linear models, and the posterior of their weights.

    The inputs were fitted when there were `trained_at` interactions.
    """

    inputs: LinearInputs
    effects: ArmEffects
    trained_at: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        effects = self.effects
        return {
            **{f"inputs.{name}": array for name, array in self.inputs.arrays().items()},
            "effects.shared": effects.shared,
            "effects.means": effects.means,
            "effects.deviations": effects.deviations,
            "numbers": np.array([*effects.widths, *effects.used, effects.noise, self.trained_at]),
        }

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> Fitted:
        *widths, noise, trained_at = arrays["numbers"].tolist()
        fitted, used = (widths[0], widths[1]), (widths[2], widths[3])
        named = {name.removeprefix("inputs."): array for name, array in arrays.items()}
        weights = (arrays["effects.shared"], arrays["effects.means"], arrays["effects.deviations"])
        return Fitted(
            LinearInputs.of(named),
            ArmEffects(*weights, widths=fitted, used=used, noise=noise),
            int(trained_at),
        )


class EffectsReward(RewardModel):
    """Expected rewards from each arm's own weights over features of the context."""

    def __init__(
        self,
        *,
        reward: str,
        most: int = 64,
        units: int = 64,
        grow: float = 1.25,
        widths: tuple[float, float] = (0.1, 0.8),
        alike: tuple[slice, ...] = (),
        rng: Generator,
    ) -> None:
        super().__init__()
        self.reward, self.most, self.units, self.grow = reward, most, units, grow
        self.priors, self.alike = Priors(*widths), alike
        self.root = int(torch.randint(2**62, (1,), generator=rng))
        self.arms = 0
        self.fitted: Fitted | None = None
        self.covariances: dict[int, Floats] = {}
        self.register_buffer("home", torch.zeros(()))

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        if self.fitted is not None:
            for name, array in self.fitted.arrays().items():
                destination[f"{prefix}{name}"] = torch.from_numpy(np.ascontiguousarray(array))

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        arrays = {name.removeprefix(prefix): tensor.numpy() for name, tensor in state.items()}
        self.fitted = Fitted.of(arrays) if "numbers" in arrays else None
        self.arms = 0 if self.fitted is None else len(self.fitted.effects.means)

    # -- seeing

    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]:
        assert self.fitted is not None, "contexts are seen after an update"
        return torch.from_numpy(self.fitted.inputs(contexts)).to(self.get_buffer("home"))

    def is_clipped(self, contexts: Inputs) -> NDArray[np.bool_]:
        if self.fitted is None:
            return super().is_clipped(contexts)
        return self.fitted.inputs.features.is_clipped(contexts)

    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]:
        """Embed arms by their own weights, in a few columns: arms liked alike lie together."""
        assert arms.ids is not None
        if self.fitted is None:
            return torch.zeros(len(arms), _COLUMNS, device=self.device)
        return torch.from_numpy(embedded(self.fitted.effects.means, arms.ids)).to(self.device)

    # -- scoring

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        """Return a score that knows no arm from another but by its own part."""

        def nothing(points: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
            return points.new_zeros(len(contexts), points.shape[1])

        return Score(nothing, contexts, no_noise(contexts))

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        return self.mean(contexts)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        return self.mean(contexts)

    def own(
        self,
        contexts: Tensor,
        *,
        seeds: Seeds | None = None,
        scale: float = 0.0,
        width: float = 0.0,
    ) -> OwnPart:
        assert self.fitted is not None
        return OwnPart(self.fitted.effects, contexts.double().cpu().numpy(), seeds, scale, width)

    # -- learning

    def observe_arms(self, arms: Inputs) -> None:
        assert arms.ids is not None
        self.arms = max(self.arms, int(arms.ids.max(initial=-1)) + 1)

    def start(self, history: Interactions, *, fresh: int) -> None:
        self.observe_arms(history.arms)

    def fit_posterior(self, history: Interactions) -> None:
        """Fit the posterior; train the inputs anew first where the history has grown enough."""
        before = self.fitted
        is_due = before is None or not (
            before.trained_at <= len(history) < self.grow * before.trained_at
        )
        inputs = self._inputs(history) if before is None or is_due else before.inputs
        assert history.arms.ids is not None
        weights = np.ones(len(history)) if history.weights is None else history.weights
        rewards = history.rewards.astype(np.float64)
        seen = Seen(inputs(history.contexts), history.arms.ids, rewards, weights)
        spread = float(rewards.std())  # priors are in units of the rewards seen
        is_unit = self.reward == "binary" or spread < _TINY
        effects = ArmEffects.fit(
            seen,
            self.arms,
            priors=self.priors if is_unit else replace(self.priors, unit=spread),
            before=None if before is None else before.effects.widths,
        )
        trained_at = len(history) if before is None or is_due else before.trained_at
        self.fitted, self.covariances = Fitted(inputs, effects, trained_at), {}

    def private(self) -> EffectsReward:
        """Return a copy whose posterior may be changed where it stands."""
        mine = copy.copy(self)
        if self.fitted is not None:
            mine.fitted = replace(self.fitted, effects=self.fitted.effects.private(self.arms))
        mine.covariances = {}
        return mine

    def needs_history(self, fresh: Interactions) -> bool:
        """Return whether an arm is among them whose covariance is not known yet."""
        assert fresh.arms.ids is not None
        return any(row not in self.covariances for row in fresh.arms.ids.tolist())

    def compiled(self, asks: str) -> CompiledModel:
        return CompiledModel("arm-effects", effects=self.fitted)

    def observe(self, history: Interactions, fresh: Interactions) -> None:
        """Learn rewards one by one, exactly, where the posterior stands; nothing is trained.

        The inputs, the shared weights and the widths stay as they are until the next update, so
        the order of rewards changes nothing beyond rounding. `history` is what came before.
        """
        assert self.fitted is not None
        assert fresh.arms.ids is not None
        if int(fresh.arms.ids.max(initial=-1)) >= len(self.fitted.effects.means):
            self.observe_arms(fresh.arms)
            wider = self.fitted.effects.private(self.arms)
            self.fitted = replace(self.fitted, effects=wider)
        effects, z = self.fitted.effects, self.fitted.inputs(fresh.contexts)
        for number, row in enumerate(fresh.arms.ids.tolist()):
            if row not in self.covariances:
                self.covariances[row] = self._covariance(row, history)
            effects.observe(row, z[number], float(fresh.rewards[number]), self.covariances[row])

    def _covariance(self, row: int, history: Interactions) -> Floats:
        """Return the covariance of an arm's weights after all of its interactions so far."""
        assert self.fitted is not None
        assert history.arms.ids is not None
        mine = history.take(np.flatnonzero(history.arms.ids == row))
        weights = np.ones(len(mine)) if mine.weights is None else mine.weights
        z = self.fitted.inputs(mine.contexts) if len(mine) else np.zeros((0, 1))
        return self.fitted.effects.covariance(row, z, weights)

    def _inputs(self, history: Interactions) -> LinearInputs:
        """Fit features to the contexts seen so far, and train the network from scratch."""
        most = int(np.clip(np.sqrt(len(history)), _FEWEST, self.most))
        features = ContextFeatures.fit(history.contexts, most=most, alike=self.alike)
        assert history.arms.ids is not None
        network = fit_features(
            features(history.contexts),
            history.arms.ids,
            history.rewards.astype(np.float64),
            arms=self.arms,
            units=self.units,
            seed=(self.root, len(history)),
            shares=history.weights,
        )
        return LinearInputs(features, network)


def embedded(means: Floats, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return fixed random projections of arms' own weights; those of unknown arms are zeros."""
    axes = np.random.default_rng(_COLUMNS).standard_normal((means.shape[1], _COLUMNS))
    is_known = ids < len(means)
    known = means[np.where(is_known, ids, 0)] * is_known[:, None]
    return (known @ axes / np.sqrt(_COLUMNS)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class OwnPart:
    """The rewards of arms for some contexts, under this decision's draw or bound.

    The noise of an arm comes from its row and the decision's seed: any two arms have their own.
    """

    effects: ArmEffects
    z: Floats
    seeds: Seeds | None
    scale: float
    width: float

    def __call__(self, rows: Int[Tensor, "b K"]) -> Float[Tensor, "B K"]:
        each = rows.cpu().numpy().clip(0)
        if len(each) == 1:  # the same arms for all contexts
            found = self._of(each[0], slice(None))
        else:
            found = np.concatenate([self._of(mine, slice(n, n + 1)) for n, mine in enumerate(each)])
        return torch.from_numpy(found.astype(np.float32)).to(rows.device)

    def _of(self, rows: NDArray[np.int64], part: slice) -> Floats:
        """Return the scores of the same arms for a part of the contexts."""
        scores, stds = self.effects.rewards(self.z[part], rows)
        scores = scores + self.width * stds
        if self.scale and self.seeds is not None:
            noise = normals_at(self.seeds[part], rows, Stream.ARMS)
            scores = scores + self.scale * stds * noise
        return scores
