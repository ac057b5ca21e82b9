"""What a client does in each of its calls; both clients only drive these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import json

from fastbandit.client.deciders import check_urls
from fastbandit.client.delivery import Delivery
from fastbandit.client.requester import Call, Requester
from fastbandit.client.retries import Retries
from fastbandit.client.shapes import (
    FALLBACK,
    ArmUpsert,
    Context,
    DiscardArmsAnswer,
    Selected,
    SelectedMany,
    SelectManyRequest,
    SelectRequest,
    UpsertArmsAnswer,
    encode,
)
from fastbandit.client.spool import Spool
from fastbandit.errors import ServiceUnavailable
from fastbandit.storage.events import ArmId

Fallback: TypeAlias = ArmId | Sequence[ArmId] | Callable[[Context], ArmId | Sequence[ArmId]]
"""An arm, arms, or a function that returns them for a context."""


class Calls:
    """The calls of a client, but those of rewards, which `delivery` has."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        deadline_seconds: float,
        retries: Retries,
        fallback: Fallback | None,
        spool: str | Path | Spool | None,
    ) -> None:
        self.requester = Requester(
            check_urls(url), deadline_seconds=deadline_seconds, retries=retries
        )
        if isinstance(spool, str | Path):
            spool = Spool(spool)
        self.delivery = Delivery(self.requester, spool)
        self._fallback = fallback

    def select(self, request: SelectRequest, fallback: Fallback | None) -> Call[Selected]:
        """Choose arms for one context."""
        try:
            return (yield from self._post(encode(request), read=_read_one))
        except ServiceUnavailable:
            fallback = self._fallback if fallback is None else fallback
            if fallback is None:
                raise
        return self._fall_back(fallback, request.context, str(request.id))

    def select_many(
        self, request: SelectManyRequest, fallback: Fallback | None
    ) -> Call[list[Selected]]:
        """Choose arms for each of some contexts, in one request."""
        ids = list(request.ids or ())
        if not ids:
            return []
        try:
            return (yield from self._post(encode(request), read=_read_many(len(ids))))
        except ServiceUnavailable:
            fallback = self._fallback if fallback is None else fallback
            if fallback is None:
                raise
        return [self._fall_back(fallback, *of) for of in zip(request.contexts, ids, strict=True)]

    def _post(self, body: bytes, *, read: Callable[[bytes], Any]) -> Call[Any]:
        return self.requester.request("POST", "/v1/select", body, read=read)

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
        return self.requester.request("PUT", "/v1/arms", body, read=read, end=end)

    def discard_arms(
        self, ids: Sequence[ArmId], deadline_seconds: float | None
    ) -> Call[DiscardArmsAnswer]:
        """Remove arms."""
        body, end = encode({"ids": ids}), self.requester.end(deadline_seconds)
        read = json.Decoder(DiscardArmsAnswer).decode
        return self.requester.request("DELETE", "/v1/arms", body, read=read, end=end)

    def status(self, deadline_seconds: float | None) -> Call[dict[str, Any]]:
        """Ask what the service is doing."""
        read, end = json.Decoder(dict[str, Any]).decode, self.requester.end(deadline_seconds)
        return self.requester.request("GET", "/v1/status", None, read=read, end=end)


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
