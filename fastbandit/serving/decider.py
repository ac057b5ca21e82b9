"""Decides with the snapshot that serves now: which arms for a context, and what the log is told.

What serves is one value, replaced as a whole: a decision reads it once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from fastbandit.config import Config
from fastbandit.errors import (
    EligibilityError,
    FastbanditError,
    NotFiniteError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.events import Arm, ArmsChanged, DecisionMade
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.live import Put
from fastbandit.serving.problems import Refusal, refusal_of_error
from fastbandit.serving.schemas import MOST_CONTEXTS, Reason, SelectRequest

_DEEPEST = 4
_LARGEST = 1e30
_OF_CONTEXT = (ShapeError, NotFiniteError)


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
        self._names = config.context.names
        self.columns = len(self._names) or config.context.features
        self._select, self._key = config.select, str(config.select.seed).encode()
        self._terms: dict[str, Any] = {
            "wait": int(config.reward.wait_seconds * 1e6),
            "otherwise": config.reward.default,
            "sums": config.reward.combine == "sum",
        }

    def decide(self, request: SelectRequest) -> list[DecisionMade]:
        """Choose arms for each context of a request, or refuse it."""
        serving = self.serving
        assert serving is not None, "there is something to decide with"
        contexts = self._read_contexts(request)
        ids = _read_ids(request, len(contexts))
        _check_depth(request.eligible)
        if request.propensity and request.k != 1:
            raise Refusal(
                422,
                "wrong field",
                f"A propensity can be told of one arm: got k = {request.k}.",
                fix="Ask for one arm, or leave propensity out.",
                field="k",
                value=request.k,
            )
        floor = self._select.floor if request.explore else 0.0
        try:
            if len(contexts) == 1 and request.k == 1:
                return [self._decide_one(serving, request, contexts[0], ids[0], floor)]
            return self._decide_many(serving, request, contexts, ids, floor)
        except (EligibilityError, UnknownArmError) as error:
            raise refusal_of_error(error, field="eligible", value=request.eligible) from error
        except _OF_CONTEXT as error:
            raise refusal_of_error(error, field="context", value=contexts[:1]) from error
        except FastbanditError as error:
            raise refusal_of_error(error, field="eligible", value=request.eligible) from error
        except OverflowError as error:  # the columns hold numbers of 64 bits
            raise Refusal(
                422,
                "wrong field",
                "A predicate needs numbers below 1e308.",
                fix="Send a smaller number.",
                field="eligible",
                value=request.eligible,
            ) from error

    def put(self, change: ArmsChanged) -> Put:
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
        floor: float,
    ) -> DecisionMade:
        bandit, seed = serving.bandit, self.seed_of(id)
        chosen = bandit.choose(
            context, seed=seed, explore=request.explore, eligible=request.eligible, floor=floor
        )
        propensities = None
        if request.propensity:
            propensities = [self._propensity(bandit, request, context, chosen.arm, seed)]
        return self._made(
            serving, request, context, id, seed, [chosen.arm], [chosen.score], floor, propensities
        )

    def _decide_many(
        self,
        serving: Serving,
        request: SelectRequest,
        contexts: list[list[float]],
        ids: list[str],
        floor: float,
    ) -> list[DecisionMade]:
        seeds = [self.seed_of(id) for id in ids]
        decision = serving.bandit.select(
            np.array(contexts, dtype=np.float32),
            k=request.k,
            eligible=request.eligible,
            explore=request.explore,
            floor=floor,
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
                self._made(serving, request, context, id, seed, arms, scores, floor, propensities)
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
            floor=self._select.floor,
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
        floor: float,
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
            floor=floor,
            propensities=propensities,
            eligible=request.eligible,
            degraded=bool(serving.reasons),
            **self._terms,
        )

    def seed_of(self, id: str) -> int:
        """Give the seed of the decision of an id: a retry draws the same."""
        digest = blake2b(id.encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little") >> 1  # SQLite's whole numbers have 63 bits

    # -- contexts

    def _read_contexts(self, request: SelectRequest) -> list[list[float]]:
        one, many = request.context, request.contexts
        if not isinstance(one, UnsetType) and many is UNSET:
            return [self._read_context(one, "context")]
        if not isinstance(many, UnsetType) and one is UNSET:
            return [self._read_context(raw, f"contexts[{n}]") for n, raw in enumerate(many)]
        raise Refusal(
            422,
            "wrong field",
            "A request needs either one context or a list of contexts: got "
            f"{'neither' if one is UNSET else 'both'}.",
            fix="Send context, or contexts.",
            field="context",
        )

    def _read_context(self, raw: Any, field: str) -> list[float]:
        values = self._by_name(raw, field) if isinstance(raw, Mapping) else raw
        if len(values) != self.columns:
            raise Refusal(
                422,
                "wrong field",
                f"A context needs {self.columns} numbers: got {len(values)}.",
                fix="Send as many as the service was set up for.",
                field=field,
                value=raw,
            )
        if max(values) > _LARGEST or min(values) < -_LARGEST:
            raise Refusal(
                422,
                "wrong field",
                f"A context needs numbers of ordinary size, at most {_LARGEST:g}.",
                fix="Scale the features.",
                field=field,
                value=raw,
            )
        return values

    def _by_name(self, raw: Mapping[str, float], field: str) -> list[float]:
        """Put named features into the order of the config."""
        if not self._names:
            raise Refusal(
                422,
                "wrong field",
                "This service knows no names of features.",
                fix=f"Send a list of {self.columns} numbers.",
                field=field,
                value=raw,
            )
        if set(raw) == set(self._names):
            return [raw[name] for name in self._names]
        known = ", ".join(self._names)
        odd = sorted(set(raw) ^ set(self._names))
        raise Refusal(
            422,
            "wrong field",
            f"A context needs the features by their names ({shorter(known)}): {odd[0]!r} is "
            f"{'not one of them' if odd[0] in raw else 'missing'}.",
            fix="Send a number for each name, or a list of numbers in that order.",
            field=f"{field}.{odd[0]}",
            value=raw.get(odd[0]),
        )


def apply_change(bandit: FrozenBandit, change: ArmsChanged, *, is_trial: bool = False) -> Put:
    """Put arms into a bandit, or take them out; a trial only raises what that would raise."""
    counts = Put(0, 0, 0)
    if change.put:
        names = change.put[0].columns or {}
        columns = {name: [(arm.columns or {}).get(name) for arm in change.put] for name in names}
        counts = bandit.put_arms(
            _features_of(change.put),
            ids=[arm.id for arm in change.put],
            columns=columns or None,
            is_trial=is_trial,
        )
    if change.taken:
        bandit.take_arms(change.taken, is_trial=is_trial)
    return counts


def _features_of(arms: Sequence[Arm]) -> NDArray[np.float32]:
    """Stack the features of arms, if all have as many."""
    counts = [len(arm.features) for arm in arms]
    odd = next((place for place, count in enumerate(counts) if count != counts[0]), None)
    if odd is not None:
        raise ShapeError(
            f"Arms need equally many features: got {counts[0]} for {arms[0].id!r} and "
            f"{counts[odd]} for {arms[odd].id!r}. Send as many as the others have."
        )
    with np.errstate(over="ignore"):  # what is infinite then is refused
        return np.array([arm.features for arm in arms], dtype=np.float32)


def not_ready(reasons: Sequence[Reason]) -> Refusal:
    """Refuse a request that comes before the service can answer it."""
    return Refusal(
        503,
        "not ready",
        f"The service cannot decide yet: {reasons[0].detail}",
        fix=reasons[0].fix,
        headers=((b"retry-after", b"1"),),
    )


def new_id() -> str:
    """Give an id of its own for a decision; later ones sort after earlier ones."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


def shorter(text: str) -> str:
    """Cut a long list of names."""
    return text if len(text) <= 80 else f"{text[:80]}…"


def _read_ids(request: SelectRequest, count: int) -> list[str]:
    if request.id is not None and request.contexts is UNSET and request.ids is None:
        return [request.id]
    if request.id is not None or (request.ids is not None and len(set(request.ids)) != count):
        given = request.ids if request.ids is not None else request.id
        raise Refusal(
            422,
            "wrong field",
            f"Decisions need ids of their own, one for each of the {count} contexts.",
            fix="Send id with context, or ids with contexts, each different; or send none.",
            field="id" if request.ids is None else "ids",
            value=given,
        )
    return request.ids or [new_id() for _ in range(min(count, MOST_CONTEXTS))]


def _check_depth(value: Any, *, depth: int = 0) -> None:
    """Refuse a predicate that is nested deeper than any can be."""
    if depth > _DEEPEST:
        raise Refusal(
            422,
            "wrong field",
            "A predicate needs at most an object of conditions, with lists in them.",
            fix='Write it as {"column": {"<=": 10}}.',
            field="eligible",
            value=value,
        )
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value[:1]:
            _check_depth(item, depth=depth + 1)
