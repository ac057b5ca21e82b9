"""HierarchicalReward: what features say, and a constant of each arm's own beside it.

What features say comes from a network or, as long as that predicts better, from a regression on
principal directions (`LinearReward`). Each has predicted the rewards of every update before it
learned them: the sums of their log likelihoods, the newest counting most, tell which is better
(Dawid, "Present position and potential developments: the prequential approach", 1984). The
regression is asked only among many arms: of a few, each is soon known by its own rewards.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.interfaces import ArmSpace, CompiledModel, Learn, RewardModel
from fastbandit.reward.arm_constants import PRIOR, ArmConstants
from fastbandit.reward.linear_model import TEMPER, LinearReward
from fastbandit.reward.model import NeuralReward
from fastbandit.reward.own_constants import ConstantsPosterior, OwnConstants
from fastbandit.score import Score, Seeds
from fastbandit.types import Floats, Inputs, Interactions

_FEWEST = 50  # interactions that are worth holding some of them back
_HELD = 4  # one in so many is held back
_FEWEST_NEW = 8
_CHUNK = 8192
_FORGET = 0.5  # of the evidence, at an update
_STRONG = 20.0  # so much evidence, in nats, changes which model is taken
_MANY = 1_000  # from so many arms on the regression is asked
_NETWORK, _LINEAR = 0, 1


class HierarchicalReward(RewardModel):
    """A network or a linear regression over features, and constants of arms on what it leaves.

    Constants beside a network are not drawn: on thousands of arms chosen once or twice, their draws
    would swamp what it says. A network that `knows_ids` has none.
    """

    evidence: Tensor

    def __init__(
        self, network: NeuralReward, linear: LinearReward | None, *, knows_ids: bool = False
    ) -> None:
        super().__init__()
        self.knows_ids = knows_ids
        self.network, self.linear = network, linear
        self.constants: dict[int, ArmConstants] = {}
        self.register_buffer("evidence", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("is_linear", torch.tensor(linear is not None))
        self._arms: Inputs | None = None
        self._constants_now: ConstantsPosterior | None = None

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for number, constants in self.constants.items():
            for name, array in constants.arrays().items():
                destination[f"{prefix}constants.{number}.{name}"] = torch.from_numpy(array)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        mine = f"{prefix}constants."
        arrays = {name: state.pop(name).numpy() for name in list(state) if name.startswith(mine)}
        super()._load_from_state_dict(state, prefix, *rest)
        self.constants = {}
        for number in (_NETWORK, _LINEAR):
            start = f"{mine}{number}."
            named = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            if named:
                self.constants[number] = ArmConstants.of(named)

    # -- what it predicts with

    @property
    def current(self) -> NeuralReward:
        """The model of what features say: the one that predicts better."""
        if self.linear is not None and bool(self.get_buffer("is_linear")):
            return self.linear
        return self.network

    @property
    def own_constants(self) -> ArmConstants | None:
        """The constants of arms on what the current model leaves."""
        return self.constants.get(_LINEAR if self.current is self.linear else _NETWORK)

    @property
    def noise_size(self) -> int:  # type: ignore[override]
        return self.current.noise_size

    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]:
        return self.current.embed_contexts(contexts)

    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]:
        return self.current.embed_arms(arms)

    def is_clipped(self, contexts: Inputs) -> NDArray[np.bool_]:
        return self.current.is_clipped(contexts)

    def encode_arms(self, values: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        return self.current.encode_arms(values)

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        return self.current.mean(contexts)

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        return self.current.draw(contexts, uniforms, scale=scale)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        return self.current.upper(contexts, width=width)

    def own(
        self,
        contexts: Tensor,
        *,
        seeds: Seeds | None = None,
        scale: float = 0.0,
        width: float = 0.0,
    ) -> OwnConstants | None:
        if self.own_constants is None:
            return None
        is_drawn = seeds is not None
        seeds = np.zeros(len(contexts), dtype=np.uint64) if seeds is None else seeds
        return OwnConstants(self.constants_posterior, seeds, scale if is_drawn else width, is_drawn)

    @property
    def constants_posterior(self) -> ConstantsPosterior:
        """The posterior of constants, as arrays."""
        constants, now = self.own_constants, self._constants_now
        assert constants is not None
        if now is None or now.constants is not constants:
            now = self._constants_now = ConstantsPosterior(constants)
        return now

    def compiled(self, asks: str) -> CompiledModel:
        shared = self.current.compiled(asks)
        if self.own_constants is None:
            return shared
        return replace(shared, own=(*self.constants_posterior.arrays, self.own_constants.stamp))

    def fit_surrogate(self, arms: ArmSpace, contexts: Inputs, *, rng: Generator) -> None:
        self.current.fit_surrogate(arms, contexts, rng=rng)

    def in_rewards(self, scores: Tensor) -> Tensor:
        return self.current.in_rewards(scores)

    # -- learning

    def loss(
        self, contexts: Inputs, arms: Inputs, rewards: Tensor, *, total: float, rng: Generator
    ) -> Float[Tensor, ""]:
        return self.network.loss(contexts, arms, rewards, total=total, rng=rng)

    def observe_arms(self, arms: Inputs) -> None:
        self._arms = arms
        if not self._is_fitted:
            self.get_buffer("is_linear").fill_(self.linear in self._models())
        for model in self._models():
            model.observe_arms(arms)

    def start(self, history: Interactions, *, fresh: int) -> None:
        if self.linear is not None:
            self.linear.requires_grad_(False)
        if len(self._models()) == 1:
            self.get_buffer("is_linear").fill_(False)
        elif not self.is_undecided and 0 < fresh < len(history):
            self.judge(self.likelihoods(history.take(slice(len(history) - fresh, None))))
        for model in self._models():
            model.start(history, fresh=fresh)

    def _models(self) -> list[NeuralReward]:
        """Return the network, and the regression where there are many arms."""
        is_few = self._arms is not None and len(self._arms) < _MANY
        return [self.network] if self.linear is None or is_few else [self.network, self.linear]

    @property
    def is_undecided(self) -> bool:
        """Whether there are two models, and nothing is known of which predicts better."""
        return self.linear in self._models() and not self._is_fitted

    @property
    def _is_fitted(self) -> bool:
        """Whether there is a regression that was fitted to rewards."""
        return self.linear is not None and bool(self.linear.centre.any())

    def rehearse(self, history: Interactions, learn: Learn) -> None:
        """Let a copy learn most of a history, and judge both models by the rest."""
        if not self.is_undecided or len(history) < _FEWEST:
            return
        trial = copy.deepcopy(self)
        is_held = np.arange(len(history)) % _HELD == 0
        learn(trial, history.take(np.flatnonzero(~is_held)))
        self.judge(trial.likelihoods(history.take(np.flatnonzero(is_held))))

    def judge(self, likelihoods: list[float]) -> None:
        """Take the model that predicts better, by what both said of rewards not yet learned."""
        found = torch.tensor(likelihoods, dtype=torch.float64, device=self.evidence.device)
        self.evidence.mul_(1.0 - _FORGET).add_(found)
        ahead = float(self.evidence[_NETWORK] - self.evidence[_LINEAR])
        is_linear = self.get_buffer("is_linear")
        is_linear.fill_(ahead < (_STRONG if is_linear else -_STRONG))

    @torch.no_grad()
    def likelihoods(self, fresh: Interactions) -> list[float]:
        """Return the log likelihood of rewards under the network and under the regression."""
        return [
            self._likelihood(number, model, fresh) for number, model in enumerate(self._models())
        ]

    def _likelihood(self, number: int, model: NeuralReward, fresh: Interactions) -> float:
        scores = self._scores(model, fresh)
        constants = self.constants.get(number)
        if constants is not None and fresh.rows is not None:
            known = fresh.rows < len(constants)
            means = constants.posterior(np.where(known, fresh.rows, 0))[0]
            scores = scores + np.where(known, means, 0.0)
        rewards = _in_units(model, fresh.rewards)
        if model.reward == "binary":
            each = rewards * scores - np.logaddexp(0.0, scores)
        else:
            noise = math.exp(2.0 * float(model.log_noise))
            each = -0.5 * (np.square(rewards - scores) / noise + math.log(noise))
        return float(each.sum() if fresh.weights is None else (fresh.weights * each).sum())

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        self.network.fit_posterior(history)
        before = self.constants.get(_LINEAR)
        if self.linear in self._models():
            assert self.linear is not None
            width = PRIOR if before is None else before.width
            self.linear.solve(history, own_width=0.0 if history.rows is None else width)
        if history.rows is not None and self._arms is not None:
            self.constants = {
                number: self._constants(model, history)
                for number, model in enumerate(self._models())
                if number == _LINEAR or not self.knows_ids
            }
        self._arms = None

    def _constants(self, model: NeuralReward, history: Interactions) -> ArmConstants:
        """Fit constants to what a model leaves of the rewards."""
        assert history.rows is not None
        assert self._arms is not None
        scores, rewards = self._scores(model, history), _in_units(model, history.rewards)
        weights = np.ones(len(history)) if history.weights is None else history.weights
        noise = None
        if model.reward != "binary":
            noise = max(float(np.average(np.square(rewards - scores), weights=weights)), 1e-2)
        is_drawn = model is self.linear
        nobody = np.zeros(0, dtype=np.int64)
        return ArmConstants.fit(
            history.rows,
            rewards,
            scores,
            weights,
            arms=len(self._arms),
            tried=_worth_trying(model, self._arms, history) if is_drawn else nobody,
            noise=noise,
            temper=TEMPER if is_drawn else 0.0,
        )

    def _scores(self, model: NeuralReward, history: Interactions) -> Floats:
        """Return what a model says of the interactions of a history, without constants."""
        parts = []
        for first in range(0, len(history), _CHUNK):
            part = history.take(slice(first, first + _CHUNK))
            contexts, arms = model.embed_contexts(part.contexts), model.embed_arms(part.arms)
            if model is self.linear:
                said = model.features(contexts, arms) @ model.centre
            else:
                said = model.network(contexts, arms)
            parts.append(said.double().cpu().numpy())
        return np.concatenate(parts)

    def private(self) -> HierarchicalReward:
        """Return a copy whose constants may be changed where they stand."""
        mine = copy.copy(self)
        mine.constants = {n: c.private(len(c)) for n, c in self.constants.items()}
        mine._constants_now = None
        return mine

    def needs_history(self, fresh: Interactions) -> bool:
        return False

    @torch.no_grad()
    def observe(self, history: Interactions, fresh: Interactions) -> None:
        """Learn rewards at once: the constants of their arms, nothing else."""
        assert fresh.rows is not None
        size = int(fresh.rows.max(initial=-1)) + 1
        for number, constants in self.constants.items():
            model = self._models()[number]
            if size > len(constants):
                self.constants[number] = constants = constants.private(size)
            rewards, scores = _in_units(model, fresh.rewards), self._scores(model, fresh)
            constants.observe(fresh.rows, rewards, scores)
        if self._constants_now is not None:
            self._constants_now.renew(fresh.rows)


def _in_units(model: NeuralReward, rewards: NDArray[np.float32]) -> Floats:
    """Return rewards in the units that scores are in."""
    numbers = torch.from_numpy(rewards).to(model.log_noise.device)
    return model.standardised(numbers).double().cpu().numpy()


def _worth_trying(model: NeuralReward, arms: Inputs, history: Interactions) -> NDArray[np.int64]:
    """Return a few rows never chosen: those that look best for a context in the middle."""
    assert history.rows is not None
    middle = model.embed_contexts(history.contexts.take(slice(-_CHUNK, None))).mean(0, keepdim=True)
    score, parts = model.mean(middle), []
    for first in range(0, len(arms), _CHUNK):
        points = model.embed_arms(arms.take(slice(first, first + _CHUNK)))
        parts.append(score(points[None])[0].cpu().numpy())
    scores = np.concatenate(parts)
    scores[history.rows] = -np.inf
    count = min(len(scores), max(_FEWEST_NEW, math.isqrt(len(history))))
    best = np.argpartition(-scores, count - 1)[:count]
    return np.sort(best[scores[best] > -np.inf])
