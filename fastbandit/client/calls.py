"""What a client does in each of its calls, as generators; both clients only drive these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from msgspec import json

from fastbandit.client import shapes
from fastbandit.client.delivery import Delivery, Flushed
from fastbandit.client.requester import Call, Requester
from fastbandit.client.shapes import Baseline, Context, Eligible, Offered, Reward, Selected
from fastbandit.errors import ServiceUnavailable
from fastbandit.storage.events import ArmId

_T = TypeVar("_T")
Fallback: TypeAlias = ArmId | Sequence[ArmId] | Callable[[Context], ArmId | Sequence[ArmId]]
"""An arm, arms, or a function that returns them for a context."""


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a client: how rewards are delivered or spooled is for `delivery`."""

    requester: Requester
    delivery: Delivery
    fallback: Fallback | None
    is_strict: bool

    def select(
        self,
        context: Context,
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        arms: Sequence[Offered] | None = None,
        explore: bool = True,
        id: str | None = None,
        propensity: bool = False,
        baseline: Baseline | ArmId | None = None,
        fallback: Fallback | None = None,
        columns: Sequence[str] = (),
        subject: str | None = None,
    ) -> Call[Selected]:
        """Choose `k` arms for a context, or all that are eligible where those are fewer.

        `eligible` is a list of ids, or a predicate such as {"price": {"<=": 10}}. `arms`, in its
        place, are the ones to choose among, such as [{"id": 7, "features": {"price": 9.5}}], in the
        catalogue or not; one that is in it may come without features. Without
        `explore` the arms are chosen by expected reward. `propensity` asks how likely the arms
        were. In shadow mode `baseline` is the arm that your own policy takes, best as
        Baseline(arm, propensity). A `fallback` given here goes before that of the client.
        `columns` names columns of the arms that the answer is to have. `subject` is whom it is
        about: `fastbandit forget` removes all that is stored under it.
        """
        terms = (k, eligible, explore, propensity, self.is_strict, arms, list(columns), subject)
        request = shapes.SelectRequest(context, id, baseline, *terms)
        ids = [str(request.id)]
        (selected,) = yield from self._select(request, _read_one, [context], ids, fallback)
        return selected

    def select_many(
        self,
        contexts: Sequence[Context],
        *,
        k: int = 1,
        eligible: Eligible | None = None,
        arms: Sequence[Offered] | None = None,
        explore: bool = True,
        ids: Sequence[str] | None = None,
        propensity: bool = False,
        baselines: Sequence[Baseline | ArmId] | None = None,
        fallback: Fallback | None = None,
        columns: Sequence[str] = (),
        subject: str | None = None,
    ) -> Call[list[Selected]]:
        """Choose arms for each of some contexts, in one request."""
        terms = (k, eligible, explore, propensity, self.is_strict, arms, list(columns), subject)
        request = shapes.SelectManyRequest(contexts, ids, baselines, *terms)
        own = list(request.ids or ())
        if not own:
            return []
        return (yield from self._select(request, _read_many, contexts, own, fallback))

    def _select(
        self,
        request: shapes.SelectRequest | shapes.SelectManyRequest,
        read: Callable[[bytes], list[Selected]],
        contexts: Sequence[Context],
        ids: Sequence[str],
        fallback: Fallback | None,
    ) -> Call[list[Selected]]:
        """Ask the service, or choose by the fallback where no answer comes."""

        def read_all(body: bytes) -> list[Selected]:
            found = read(body)
            if len(found) != len(ids):
                raise ValueError(f"{len(found)} decisions for {len(ids)} contexts")
            if not all(selected.arms for selected in found):
                raise ValueError("a decision without an arm")
            return found

        body = shapes.encode(request)
        try:
            return (yield from self.requester.request("POST", "/v1/select", body, read=read_all))
        except ServiceUnavailable:
            fallback = self.fallback if fallback is None else fallback
            if fallback is None:
                raise
        return [self._fall_back(fallback, *of) for of in zip(contexts, ids, strict=True)]

    def _fall_back(self, fallback: Fallback, context: Context, decision: str) -> Selected:
        given = fallback(context) if callable(fallback) else fallback
        arms = [given] if isinstance(given, str | int) else list(given)
        self.requester.count("fallbacks")
        return Selected(shapes.FALLBACK + decision, arms, [0.0] * len(arms), is_fallback=True)

    def reward(
        self, decision: Selected | str, value: float, *, arm: ArmId | None = None, part: str = ""
    ) -> Call[str]:
        """Deliver the reward of a decision; return what became of it.

        That is what the service says ("counted", "duplicate", "late" …), or "spooled", or "not
        sent: fallback decision" for one that the service knows nothing of.
        """
        id = decision.decision if isinstance(decision, Selected) else decision
        (became,) = yield from self.delivery.rewards([Reward(id, value, arm, part)])
        return became

    def rewards(self, rewards: Sequence[Reward]) -> Call[list[str]]:
        """Deliver rewards, up to 1,000 in a request; return what became of each."""
        return self.delivery.rewards(rewards)

    def flush(self, deadline_seconds: float | None = None) -> Call[Flushed]:
        """Send the rewards that wait in the spool, until none is left or the time is over."""
        return self.delivery.flush(deadline_seconds)

    def upsert_arms(
        self, arms: Sequence[shapes.ArmUpsert], *, deadline_seconds: float | None = None
    ) -> Call[shapes.UpsertArmsAnswer]:
        """Add arms, or change those of the same ids."""
        answer = shapes.UpsertArmsAnswer
        return self._ask("PUT", "/v1/arms", answer, deadline_seconds, {"arms": arms})

    def discard_arms(
        self, ids: Sequence[ArmId], *, deadline_seconds: float | None = None
    ) -> Call[shapes.DiscardArmsAnswer]:
        """Remove arms: none of them is chosen again."""
        answer = shapes.DiscardArmsAnswer
        return self._ask("DELETE", "/v1/arms", answer, deadline_seconds, {"ids": ids})

    def explanation(
        self,
        decision: Selected | str,
        *,
        arm: ArmId | None = None,
        deadline_seconds: float | None = None,
    ) -> Call[dict[str, Any]]:
        """Ask why a decision took its first arm, or another of its arms (needs the scope admin)."""
        id = decision.decision if isinstance(decision, Selected) else decision
        query = "" if arm is None else f"?arm={quote(str(arm), safe='')}"
        path = f"/v1/decisions/{quote(id, safe='')}/explanation{query}"
        return self._ask("GET", path, dict[str, Any], deadline_seconds)

    def status(self, *, deadline_seconds: float | None = None) -> Call[dict[str, Any]]:
        """Ask what the service is doing."""
        return self._ask("GET", "/v1/status", dict[str, Any], deadline_seconds)

    def _ask(
        self, method: str, path: str, answer: type[_T], seconds: float | None, body: Any = None
    ) -> Call[_T]:
        sent = None if body is None else shapes.encode(body)
        read, end = json.Decoder(answer).decode, self.requester.end(seconds)
        return self.requester.request(method, path, sent, read=read, end=end)


def _read_one(body: bytes) -> list[Selected]:
    return [json.decode(body, type=Selected)]


def _read_many(body: bytes) -> list[Selected]:
    return json.decode(body, type=shapes.SelectedMany).decisions
