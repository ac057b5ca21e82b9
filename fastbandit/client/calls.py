"""What a client does in each of its calls; both clients only drive these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

from msgspec import json

from fastbandit.client.delivery import Delivery
from fastbandit.client.requester import Call, Requester
from fastbandit.client.retries import Retries
from fastbandit.client.shapes import (
    FALLBACK,
    ArmUpsert,
    Baseline,
    Context,
    DiscardArmsAnswer,
    Eligible,
    Selected,
    SelectedMany,
    UpsertArmsAnswer,
    check_id,
    encode,
    to_baseline,
)
from fastbandit.client.spool import Spool
from fastbandit.errors import InputError, ServiceUnavailable
from fastbandit.storage.events import ArmId

Fallback: TypeAlias = ArmId | Sequence[ArmId] | Callable[[Context], ArmId | Sequence[ArmId]]
"""An arm, arms, or a function that gives them for a context."""


class Calls:
    """The calls of a client, but those of rewards, which `delivery` has."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        deadline_seconds: float,
        retries: Retries,
        fallback: Fallback | None,
        spool: Spool | None,
    ) -> None:
        self.requester = Requester(urls, deadline_seconds=deadline_seconds, retries=retries)
        self.delivery = Delivery(self.requester, spool)
        self._fallback = fallback

    def select(
        self,
        context: Context,
        *,
        k: int,
        eligible: Eligible | None,
        explore: bool,
        id: str | None,
        propensity: bool,
        baseline: Baseline | ArmId | None,
        fallback: Fallback | None,
    ) -> Call[Selected]:
        """Choose arms for one context."""
        decision = uuid4().hex if id is None else check_id(id)
        asked = _asked(k=k, eligible=eligible, explore=explore, propensity=propensity)
        if baseline is not None:
            asked["baseline"] = to_baseline(baseline)
        body = encode({"context": context, "id": decision, **asked})
        fallback = self._fallback if fallback is None else fallback
        try:
            return (yield from self.requester.ask("POST", "/v1/select", body, read=_read_one))
        except ServiceUnavailable:
            if fallback is None:
                raise
        return self._fall_back(fallback, context, decision)

    def select_many(
        self,
        contexts: Sequence[Context],
        *,
        k: int,
        eligible: Eligible | None,
        explore: bool,
        ids: Sequence[str] | None,
        propensity: bool,
        baselines: Sequence[Baseline | ArmId] | None,
        fallback: Fallback | None,
    ) -> Call[list[Selected]]:
        """Choose arms for each of some contexts, in one request."""
        decisions = _ids_of(contexts, ids)
        if not decisions:
            return []
        asked = _asked(k=k, eligible=eligible, explore=explore, propensity=propensity)
        if baselines is not None:
            asked["baselines"] = [to_baseline(one) for one in baselines]
        body = encode({"contexts": contexts, "ids": decisions, **asked})
        read = _read_many(len(decisions))
        fallback = self._fallback if fallback is None else fallback
        try:
            return (yield from self.requester.ask("POST", "/v1/select", body, read=read))
        except ServiceUnavailable:
            if fallback is None:
                raise
        return [self._fall_back(fallback, *of) for of in zip(contexts, decisions, strict=True)]

    def _fall_back(self, fallback: Fallback, context: Context, decision: str) -> Selected:
        """Choose without the service."""
        given = fallback(context) if callable(fallback) else fallback
        arms = [given] if isinstance(given, str | int) else list(given)
        self.requester.count("fallbacks")
        return Selected(FALLBACK + decision, arms, [0.0] * len(arms), is_fallback=True)

    def upsert_arms(
        self, arms: Sequence[ArmUpsert], deadline_seconds: float | None
    ) -> Call[UpsertArmsAnswer]:
        """Add arms, or change them."""
        body, end = encode({"arms": arms}), self.requester.end(deadline_seconds)
        read = json.Decoder(UpsertArmsAnswer).decode
        return (yield from self.requester.ask("PUT", "/v1/arms", body, read=read, end=end))

    def discard_arms(
        self, ids: Sequence[ArmId], deadline_seconds: float | None
    ) -> Call[DiscardArmsAnswer]:
        """Remove arms."""
        body, end = encode({"ids": ids}), self.requester.end(deadline_seconds)
        read = json.Decoder(DiscardArmsAnswer).decode
        return (yield from self.requester.ask("DELETE", "/v1/arms", body, read=read, end=end))

    def status(self, deadline_seconds: float | None) -> Call[dict[str, Any]]:
        """Ask what the service is doing."""
        read, end = json.Decoder(dict[str, Any]).decode, self.requester.end(deadline_seconds)
        return (yield from self.requester.ask("GET", "/v1/status", None, read=read, end=end))


def _ids_of(contexts: Sequence[Context], ids: Sequence[str] | None) -> list[str]:
    """Return the ids of decisions: those given, one for each context, or new ones."""
    if ids is None:
        return [uuid4().hex for _ in contexts]
    if len(ids) != len(contexts):
        raise InputError(
            f"Each context needs one id: got {len(ids)} ids for {len(contexts)} contexts. Leave "
            f"them to the client, or give one for each."
        )
    return [check_id(id) for id in ids]


def _asked(*, k: int, eligible: Eligible | None, explore: bool, propensity: bool) -> dict[str, Any]:
    """Return the fields of a request that are not as the service would take them anyway."""
    fields: dict[str, Any] = {} if k == 1 else {"k": k}
    if eligible is not None:
        fields["eligible"] = eligible
    if not explore:
        fields["explore"] = False
    if propensity:
        fields["propensity"] = True
    return fields


def _read_one(body: bytes) -> Selected:
    return _with_arms(json.decode(body, type=Selected))


def _read_many(count: int) -> Callable[[bytes], list[Selected]]:
    def read(body: bytes) -> list[Selected]:
        found = json.decode(body, type=SelectedMany).decisions
        if len(found) != count:
            raise ValueError(f"{len(found)} decisions for {count} contexts")
        return [_with_arms(selected) for selected in found]

    return read


def _with_arms(selected: Selected) -> Selected:
    if not selected.arms:
        raise ValueError("a decision without an arm")
    return selected
