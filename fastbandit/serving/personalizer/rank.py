"""A rank is a select with arms of its own: which of some actions, and how likely each was."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, structs

from fastbandit.features.mapping_columns import merged
from fastbandit.runtime.offered_arms import Known
from fastbandit.serving.decider import Decider
from fastbandit.serving.personalizer.events import decision_id
from fastbandit.serving.personalizer.schemas import (
    RankableAction,
    RankedAction,
    RankRequest,
    RankResponse,
    UnreadRankRequest,
)
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.serving.request_arms import KeyedArm, known_arm
from fastbandit.serving.schemas import Baseline, OfferedArm, SelectRequest
from fastbandit.serving.select_reader import new_id
from fastbandit.storage.events import DecisionMade

_UNREAD = msgspec.json.Decoder(UnreadRankRequest, strict=True).decode
_WHOLE = msgspec.json.Decoder(RankRequest, strict=True).decode
_ARM = re.compile(r"arms\[(\d+)\]")
_ACTION = msgspec.json.Decoder(RankableAction, strict=True).decode


class Rank(msgspec.Struct, frozen=True):
    """A rank that was read, and its actions as arms.

    For each of them `known` holds the bytes that it is, where they came before, or none.
    """

    request: UnreadRankRequest
    arms: list[KeyedArm]
    known: list[bytes]


def read_rank(body: bytes, seen: Mapping[bytes, Known]) -> Rank:
    """Read a rank; an action whose bytes came before, which are in `seen`, needs no reading."""
    try:
        request = _UNREAD(body)
        both = [(key, seen.get(key)) for key in map(bytes, request.actions)]
        arms = [_new_arm(key) if one is None else known_arm(key, one) for key, one in both]
        return Rank(request, arms, [b"" if one is None else key for key, one in both])
    except msgspec.MsgspecError:
        _WHOLE(body)  # which says where it is wrong
        raise


def _new_arm(key: bytes) -> KeyedArm:
    action = _ACTION(key)
    return KeyedArm(action.id, merged(action.features), key)


def check_actions(actions: Sequence[Any], most: int) -> None:
    """Reject too many actions, and two of one id."""
    if len(actions) > most:
        raise wrong_field(
            f"A rank may bring at most {most} actions: got {len(actions)}.",
            fix="Send fewer, or raise personalizer.max_actions.",
            field="actions",
            value=len(actions),
        )
    ids = [action.id for action in actions]
    if len({*ids}) < len(ids):
        twice = next(n for n, id in enumerate(ids) if id in ids[:n])
        raise wrong_field(
            "Each action needs an id of its own.",
            fix="Send each action once.",
            field=f"actions[{twice}].id",
            value=ids[twice],
        )


def to_select(rank: Rank, decider: Decider) -> SelectRequest:
    """Return a rank as a select; the first action that may be chosen is the baseline."""
    request, eligible = rank.request, rank.arms
    if excluded := {*(request.excluded_actions or ())}:
        eligible = [arm for arm in rank.arms if arm.id not in excluded]
    if not eligible:
        raise wrong_field(
            "A rank needs an action that is not excluded: all of them are.",
            fix="Exclude fewer of them.",
            field="excludedActions",
            value=len(excluded),
        )
    return select_of(
        eligible,
        decider,
        id=new_id() if request.event_id is None else decision_id(request.event_id),
        context=merged(request.context_features),
        baseline=str(eligible[0].id),
        subject=request.subject,
    )


def select_of(
    arms: Sequence[OfferedArm],
    decider: Decider,
    *,
    id: str,
    context: dict[str, object],
    baseline: str,
    subject: str | None,
) -> SelectRequest:
    """Return the select of one of some arms."""
    return SelectRequest(
        context=context if context or decider.schema is not None else UNSET,
        arms=[*arms],
        id=id,
        subject=subject,
        baseline=None if decider.shadow is None else Baseline(baseline, 1.0),
    )


def decide(
    asked: SelectRequest, decider: Decider, *, draws: int, actions: Sequence[Any]
) -> tuple[DecisionMade, dict[str, float]]:
    """Choose one of the arms; a rejection counts them as the actions that the request brought."""
    try:
        return decider.rank(asked, draws=draws)
    except Rejection as rejection:
        field = rejection.problem.field or ""
        if (found := _ARM.match(field)) and asked.arms:
            wrong, ids = asked.arms[int(found[1])].id, [action.id for action in actions]
            field = f"arms[{ids.index(wrong)}]{field[found.end() :]}"
            rejection.problem = structs.replace(rejection.problem, field=field)
        raise


def response(
    rank: Rank, made: DecisionMade, shares: dict[str, float], *, event: str
) -> RankResponse:
    """Return the answer to a rank, of a decision as it stands in the log."""
    chosen = str(made.arms[0])
    excluded = {*(rank.request.excluded_actions or ())}
    ids: list[Any] = [arm.id for arm in rank.arms]
    eligible = [id for id in ids if id not in excluded] if excluded else [*ids]
    if len(shares) < len(eligible):  # a baseline decided
        shares = {id: shares.get(id, 0.0) for id in eligible}
    shares = _as_logged(shares, chosen, made)
    eligible.sort(key=shares.__getitem__, reverse=True)
    if chosen in eligible:
        eligible.remove(chosen)
        eligible.insert(0, chosen)
    ranked = _at_their_place(eligible, ids, excluded) if excluded else eligible
    shares |= dict.fromkeys(excluded, 0.0)
    ranking = [*map(RankedAction, ranked, map(shares.__getitem__, ranked))]
    return RankResponse(ranking, event, chosen)


def _as_logged(shares: dict[str, float], chosen: str, made: DecisionMade) -> dict[str, float]:
    """Return probabilities that agree with the log: it has that of the action that was chosen."""
    own = 1.0 if made.propensities is None else made.propensities[0]
    if shares.get(chosen) == own:
        return shares
    others = {id: share for id, share in shares.items() if id != chosen}
    if not any(others.values()):  # another would decide now, and for this one alone
        others = dict.fromkeys(others, 1.0)
    scale = (1.0 - own) / (sum(others.values()) or 1.0)
    return {id: scale * share for id, share in others.items()} | {chosen: own}


def _at_their_place(ranked: list[str], ids: list[str], excluded: Collection[str]) -> list[str]:
    """Return a ranking with the excluded ones where the request had them."""
    others = iter(ranked)
    return [id if id in excluded else next(others) for id in ids]
