"""Decides with the snapshot that serves now: which arms for a context, and what the log is told.

What serves is one value, replaced as a whole: a decision reads it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from msgspec import structs

from fastbandit.arms.rows import Upserted
from fastbandit.errors import (
    EligibilityError,
    FastbanditError,
    NotFiniteError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.problems import Refusal, refusal_of_error, wrong_field
from fastbandit.serving.reading import SelectReader
from fastbandit.serving.schemas import Reason, SelectRequest
from fastbandit.serving.shadowing import Shadow, check_no_baseline
from fastbandit.settings.service import Config
from fastbandit.storage.arm_changes import apply_change
from fastbandit.storage.events import ArmsChanged, DecisionMade

_OF_CONTEXT = (ShapeError, NotFiniteError)
_TRIES = 3


@dataclass(frozen=True)
class Serving:
    """A frozen bandit in service, the number of the last change of its arms, and what ails it."""

    bandit: FrozenBandit
    catalogue: int
    reasons: tuple[Reason, ...] = ()


class Decider:
    """Turns requests into decisions, with the terms of the config."""

    def __init__(self, config: Config) -> None:
        self.serving: Serving | None = None
        self._reader = SelectReader(config.context)
        self.columns = self._reader.columns
        self._select, self._key = config.select, str(config.select.seed).encode()
        self.shadow = Shadow(config, self.seed_of) if config.shadow.baseline else None
        self._terms: dict[str, Any] = {
            "wait": int(config.reward.wait_seconds * 1e6),
            "otherwise": config.reward.default,
            "sums": config.reward.combine == "sum",
        }

    def decide(self, request: SelectRequest) -> list[DecisionMade]:
        """Choose arms for each context of a request, or refuse it."""
        serving = self.serving
        assert serving is not None, "there is something to decide with"
        if self.shadow is not None:
            return self._decide_beside(self.shadow, serving, request)
        check_no_baseline(request)
        return self._decide(serving, request, *self._reader.read(request))

    def _decide_beside(
        self, shadow: Shadow, serving: Serving, request: SelectRequest
    ) -> list[DecisionMade]:
        """Decide with a baseline beside the bandit."""
        asked = self._reader.read(request)
        plan = shadow.plan(request, len(asked.contexts))
        if plan.decides == "baseline":  # of which only the baseline's propensity matters
            request = structs.replace(request, propensity=False)
        for _ in range(_TRIES):
            made = self._decide(serving, request, *asked)
            try:
                return shadow.compare(plan, request, made, bandit=serving.bandit)
            except (EligibilityError, UnknownArmError) as error:
                removed = error  # meanwhile
        raise refusal_of_error(removed, field="eligible", value=request.eligible)

    def _decide(
        self,
        serving: Serving,
        request: SelectRequest,
        contexts: list[list[float]],
        ids: list[str],
    ) -> list[DecisionMade]:
        epsilon = self._select.epsilon if request.explore else 0.0
        _check_columns(serving.bandit, request.eligible)
        try:
            if len(contexts) == 1 and request.k == 1:
                return [self._decide_one(serving, request, contexts[0], ids[0], epsilon)]
            return self._decide_many(serving, request, contexts, ids, epsilon)
        except (EligibilityError, UnknownArmError) as error:
            raise refusal_of_error(error, field="eligible", value=request.eligible) from error
        except _OF_CONTEXT as error:
            raise refusal_of_error(error, field="context", value=contexts[:1]) from error
        except FastbanditError as error:
            raise refusal_of_error(error, field="eligible", value=request.eligible) from error
        except OverflowError as error:  # the columns hold numbers of 64 bits
            raise wrong_field(
                "A predicate needs numbers below 1e308.",
                fix="Send a smaller number.",
                field="eligible",
                value=request.eligible,
            ) from error

    def put(self, change: ArmsChanged) -> Upserted:
        """Let what serves know of arms that were put in or taken out, and are in the log."""
        serving = self.serving
        assert serving is not None
        counts = apply_change(serving.bandit, change)
        self.serving = Serving(serving.bandit, change.seq, serving.reasons)
        return counts

    def _decide_one(
        self,
        serving: Serving,
        request: SelectRequest,
        context: list[float],
        id: str,
        epsilon: float,
    ) -> DecisionMade:
        bandit, seed = serving.bandit, self.seed_of(id)
        chosen = bandit.select_one(
            context, seed=seed, explore=request.explore, eligible=request.eligible, epsilon=epsilon
        )
        propensities = None
        if request.propensity:
            propensities = [self._propensity(bandit, request, context, chosen.arm, seed)]
        return self._made(
            serving, request, context, id, seed, [chosen.arm], [chosen.score], epsilon, propensities
        )

    def _decide_many(
        self,
        serving: Serving,
        request: SelectRequest,
        contexts: list[list[float]],
        ids: list[str],
        epsilon: float,
    ) -> list[DecisionMade]:
        seeds = [self.seed_of(id) for id in ids]
        decision = serving.bandit.select(
            np.array(contexts, dtype=np.float32),
            k=request.k,
            eligible=request.eligible,
            explore=request.explore,
            epsilon=epsilon,
            seeds=np.array(seeds, dtype=np.uint64),
        )
        made = []
        for place, (context, id, seed) in enumerate(zip(contexts, ids, seeds, strict=True)):
            found: Any = decision.arms[place]
            arms = [found] if request.k == 1 else list(found)
            scores = decision.scores[place][: len(arms)].tolist()
            propensities = None
            if request.propensity:
                bandit = serving.bandit
                propensities = [self._propensity(bandit, request, context, arms[0], seed)]
            made.append(
                self._made(serving, request, context, id, seed, arms, scores, epsilon, propensities)
            )
        return made

    def _propensity(
        self,
        bandit: FrozenBandit,
        request: SelectRequest,
        context: list[float],
        arm: Any,
        seed: int,
    ) -> float:
        """Tell how likely the chosen arm was, by as many draws as the config says."""
        if not request.explore:
            return 1.0
        told = bandit.propensities(
            context,
            draws=self._select.propensity_draws,
            epsilon=self._select.epsilon,
            eligible=request.eligible,
            seed=seed,
        )
        return told.of(arm)

    def _made(
        self,
        serving: Serving,
        request: SelectRequest,
        context: list[float],
        id: str,
        seed: int,
        arms: list[Any],
        scores: list[float],
        epsilon: float,
        propensities: list[float] | None,
    ) -> DecisionMade:
        return DecisionMade(
            id=id,
            context=context,
            arms=arms,
            scores=scores,
            seed=seed,
            version=serving.bandit.version,
            catalogue=serving.catalogue,
            explored=request.explore,
            epsilon=epsilon,
            propensities=propensities,
            eligible=request.eligible,
            degraded=bool(serving.reasons),
            **self._terms,
        )

    def seed_of(self, id: str) -> int:
        """Give the seed of the decision of an id: a retry draws the same."""
        digest = blake2b(id.encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little") >> 1  # SQLite's whole numbers have 63 bits


def _check_columns(bandit: FrozenBandit, eligible: Any) -> None:
    """Refuse a predicate where the arms have no columns that it could speak of."""
    if isinstance(eligible, dict) and bandit.columns is None:
        raise wrong_field(
            "A predicate needs columns of the arms to speak of: those of this service have none.",
            fix="Name columns of the arms' file in arms.columns, or send them with the first arms; "
            "either needs a new data folder. A list of ids works without.",
            field="eligible",
            value=eligible,
        )


def not_ready(reasons: Sequence[Reason]) -> Refusal:
    """Refuse a request that comes before the service can answer it."""
    return Refusal(
        503,
        "not ready",
        f"The service cannot decide yet: {reasons[0].detail}",
        fix=reasons[0].fix,
        headers=((b"retry-after", b"1"),),
    )
