"""Decides with the snapshot that serves now: which arms for a context, and what is logged of it.

What serves is one value, replaced as a whole by `publish`: a decision reads it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from fastbandit.arms.stale_ids import check_known, known_of
from fastbandit.errors import (
    EligibilityError,
    FastbanditError,
    NotFiniteError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.problems import Rejection, rejection_of_error, wrong_field
from fastbandit.serving.request_arms import check_has_arms, check_only_arms, offered_to
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.schemas import Reason, SelectRequest
from fastbandit.serving.secret_columns import SecretColumns
from fastbandit.serving.select_reader import ParsedSelect, SelectReader
from fastbandit.serving.shadow import Shadow, check_no_baseline
from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service import Config, SelectConfig
from fastbandit.storage.events import Arm, DecisionMade

_OF_CONTEXT = (ShapeError, NotFiniteError)
_TRIES = 3


@dataclass(frozen=True)
class Serving:
    """A frozen bandit in service, the number of the last change of its arms, and its problems.

    For a request that brings arms it is a bandit of those; `offered` are logged.
    """

    bandit: FrozenBandit
    catalogue: int
    problems: tuple[Reason, ...] = ()
    offered: list[Arm] | None = None


class _Choice(NamedTuple):
    """The arms that were chosen for the context in a row of a parsed, best first."""

    row: int
    seed: int
    arms: list[Any]
    scores: list[float]


class Decider:
    """Turns requests into decisions, with the terms of the config."""

    def __init__(self, config: Config) -> None:
        self.serving: Serving | None = None  # what decides now: None before the first snapshot
        self._reader, self.secrets = SelectReader(config.context), SecretColumns(config)
        self.columns, self.schema = self._reader.columns, self._reader.schema
        self.drops = {} if self.schema is None else self.schema.drops
        self._select, self._key = config.select, str(config.select.seed).encode()
        has_baseline = config.shadow.baseline or config.personalizer.enabled
        self.shadow = Shadow(config, self.seed_of) if has_baseline else None
        self._terms: dict[str, Any] = {}
        self.set_terms(config.reward, config.select)

    def set_terms(self, reward: RewardConfig, select: SelectConfig) -> None:
        """Decide from now on with these settings; decisions in the log keep their own."""
        self._select = select
        self._terms = {
            "wait": int(reward.wait_seconds * 1e6),
            "default_reward": reward.default,
            "adds_up": reward.adds_up,
        }

    def publish(
        self, bandit: FrozenBandit, *, catalogue: int, problems: Sequence[Reason] | None = None
    ) -> None:
        """Put a bandit into service, in one assignment: decisions under way keep what they read.

        `catalogue` is the number of the last change of its arms. `problems` are reasons why it is
        less than should serve, which its decisions then say; None leaves them as they are.
        """
        if problems is None:
            problems = () if self.serving is None else self.serving.problems
        self.serving = Serving(bandit, catalogue, tuple(problems))

    def decide(self, request: SelectRequest) -> list[DecisionMade]:
        """Choose arms for each context of a request, or reject it."""
        serving, request = self._set_up(request)
        parsed = self._read(request, serving)
        return self._decide_parsed(serving, request, parsed)

    def rank(self, request: SelectRequest, *, draws: int) -> tuple[DecisionMade, dict[Any, float]]:
        """Choose one of the arms that a request brings; return how likely each of them was.

        That is estimated by so many draws, and by the choice itself, which is never impossible.
        """
        serving, request = self._set_up(request)
        parsed = self._read(request, serving)
        (made,) = self._decide_parsed(serving, request, parsed, is_rank=True)
        if made.decided_by == "baseline":
            return made, {made.arms[0]: 1.0}
        terms: dict[str, Any] = {"epsilon": self._epsilon(request), "seed": made.seed}
        terms |= {"eligible": _among(request), "threads": 1}
        found = serving.bandit.propensities(parsed.inputs, draws=draws, **terms)
        more = 0.0 if found.is_exact or serving.bandit.version == 0 else 1.0 / (found.draws + 1)
        assert isinstance(request.eligible, list)
        shares: dict[Any, float] = dict.fromkeys(request.eligible, (1 - more) * found.rest)
        drawn = zip(found.arms, found.probabilities.tolist(), strict=True)
        shares |= {arm: (1 - more) * share for arm, share in drawn}
        shares[made.arms[0]] += more
        return structs.replace(made, propensities=[shares[made.arms[0]]]), shares

    def _set_up(self, request: SelectRequest) -> tuple[Serving, SelectRequest]:
        """Return what decides a request, and the request with the arms that it may choose."""
        serving = self.serving
        assert serving is not None, "there is something to decide with"
        if request.arms is None:
            check_has_arms(serving.bandit)
        if request.arms is not None:
            check_only_arms(request)
            schema = self.secrets.arms(arm_schema_of(serving.bandit))
            bandit, offered = offered_to(serving.bandit, request.arms, schema)
            serving = replace(serving, bandit=bandit, offered=offered)
            request = structs.replace(request, eligible=[arm.id for arm in request.arms])
        elif isinstance(request.eligible, list):
            known, stale = known_of(request.eligible, serving.bandit.parts[1].rows)
            if not (request.strict and stale):
                request = structs.replace(request, eligible=known)
        return serving, request

    def _decide_parsed(
        self,
        serving: Serving,
        request: SelectRequest,
        parsed: ParsedSelect,
        *,
        is_rank: bool = False,
    ) -> list[DecisionMade]:
        shadow = self.shadow
        if shadow is None:
            check_no_baseline(request)
            return self._decide(serving, request, parsed)
        plan = shadow.plan(request, len(parsed.contexts), is_rank=is_rank)
        if plan.decides == "baseline":  # of which only the baseline's propensity matters
            request = structs.replace(request, propensity=False)
        for _ in range(_TRIES):
            made = self._decide(serving, request, parsed)
            try:
                return shadow.compare(plan, made, bandit=serving.bandit, inputs=parsed.inputs)
            except (EligibilityError, UnknownArmError) as error:
                removed = error  # meanwhile
        raise rejection_of_error(removed, field="eligible", value=request.eligible)

    def _read(self, request: SelectRequest, serving: Serving) -> ParsedSelect:
        schema = self.secrets.context(serving.bandit.parts[2].schema)
        return self._reader.read(request, schema)

    def _decide(
        self, serving: Serving, request: SelectRequest, parsed: ParsedSelect
    ) -> list[DecisionMade]:
        _check_columns(serving.bandit, request.eligible)
        try:
            choices = self._choose(serving.bandit, request, parsed)
            return [self._decision(serving, request, parsed, choice=one) for one in choices]
        except _OF_CONTEXT as error:
            raise rejection_of_error(error, field="context", value=parsed.contexts[:1]) from error
        except FastbanditError as error:
            raise rejection_of_error(error, field="eligible", value=request.eligible) from error
        except OverflowError as error:  # the columns hold numbers of 64 bits
            raise wrong_field(
                "A predicate needs numbers below 1e308.",
                fix="Send a smaller number.",
                field="eligible",
                value=request.eligible,
            ) from error

    def _epsilon(self, request: SelectRequest) -> float:
        return self._select.epsilon if request.explore else 0.0

    def _choose(
        self, bandit: FrozenBandit, request: SelectRequest, parsed: ParsedSelect
    ) -> Iterator[_Choice]:
        """Choose arms for each context; one arm for one context takes a shorter way."""
        seeds, epsilon = [self.seed_of(id) for id in parsed.ids], self._epsilon(request)
        terms: dict[str, Any] = {"explore": request.explore, "eligible": _among(request)}
        check_known(_among(request), bandit.parts[1].ids)
        if len(seeds) == 1 and request.k == 1:
            chosen = bandit.select_one(parsed.inputs, seed=seeds[0], epsilon=epsilon, **terms)
            yield _Choice(0, seeds[0], [chosen.arm], [chosen.score])
            return
        array = np.array(seeds, dtype=np.uint64)
        decision = bandit.select(
            parsed.inputs, k=request.k, seeds=array, epsilon=epsilon, threads=1, **terms
        )
        for row, seed in enumerate(seeds):
            found: Any = decision.arms[row]
            arms = [found] if request.k == 1 else list(found)
            yield _Choice(row, seed, arms, decision.scores[row][: len(arms)].tolist())

    def _decision(
        self, serving: Serving, request: SelectRequest, parsed: ParsedSelect, *, choice: _Choice
    ) -> DecisionMade:
        """Return a choice as the log holds it."""
        propensities = None
        if request.propensity:
            propensities = [self._propensity(serving.bandit, request, parsed, choice=choice)]
        return DecisionMade(
            id=parsed.ids[choice.row],
            context=parsed.contexts[choice.row],
            arms=choice.arms,
            scores=choice.scores,
            seed=choice.seed,
            version=serving.bandit.version,
            catalogue=serving.catalogue,
            explored=request.explore,
            epsilon=self._epsilon(request),
            propensities=propensities,
            eligible=request.eligible,
            degraded=bool(serving.problems),
            offered=serving.offered or None,
            subject=request.subject,
            **self._terms,
        )

    def _propensity(
        self, bandit: FrozenBandit, request: SelectRequest, parsed: ParsedSelect, *, choice: _Choice
    ) -> float:
        """Return how likely the chosen arm was, by as many draws as the config says."""
        if not request.explore:
            return 1.0
        found = bandit.propensities(
            parsed.inputs.take(slice(choice.row, choice.row + 1)),
            draws=self._select.propensity_draws,
            epsilon=self._select.epsilon,
            eligible=_among(request),
            seed=choice.seed,
            threads=1,
        )
        return found.of(choice.arms[0])

    def seed_of(self, id: str) -> int:
        """Return the seed of the decision of an id: a retry draws the same."""
        digest = blake2b(id.encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little") >> 1  # SQLite's whole numbers have 63 bits


def _among(request: SelectRequest) -> Any:
    """Return what a bandit may choose from: one of the arms that came with a request, any."""
    return request.eligible if request.arms is None else None


def _check_columns(bandit: FrozenBandit, eligible: Any) -> None:
    """Reject a predicate where the arms have no columns that it could speak of."""
    if isinstance(eligible, dict) and bandit.columns is None:
        raise wrong_field(
            "A predicate needs columns of the arms to speak of: those of this service have none.",
            fix="Name columns of the arms' file in arms.columns, or send them with the first arms; "
            "either needs a new data folder. A list of ids works without.",
            field="eligible",
            value=eligible,
        )


def not_ready(reasons: Sequence[Reason]) -> Rejection:
    """Reject a request that comes before the service can answer it."""
    return Rejection(
        503,
        "not ready",
        f"The service cannot decide yet: {reasons[0].detail}",
        fix=reasons[0].fix,
        headers=((b"retry-after", b"1"),),
    )
