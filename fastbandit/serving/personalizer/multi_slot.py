"""A rank of several slots: one decision each, without the actions of the slots before it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import structs

from fastbandit.errors import LogError
from fastbandit.features.mapping_columns import merged
from fastbandit.serving.decider import Decider
from fastbandit.serving.personalizer import rank
from fastbandit.serving.personalizer.events import decision_id, slot_id
from fastbandit.serving.personalizer.schemas import (
    MultiSlotRankRequest,
    MultiSlotRankResponse,
    SlotRequest,
    SlotResponse,
)
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.serving.request_limits import check_size
from fastbandit.serving.schemas import Baseline, OfferedArm, SelectRequest
from fastbandit.serving.service import Service
from fastbandit.settings.limits import LimitsConfig
from fastbandit.storage.deferral import deferred, deferred_id, revealed
from fastbandit.storage.events import DecisionMade


def check_slots(request: MultiSlotRankRequest) -> None:
    """Reject slots that cannot be filled, or whose baseline no one could take."""
    if len(request.slots) > len(request.actions):
        raise _wrong(
            f"{len(request.slots)} slots need as many actions: got {len(request.actions)}.",
            "slots",
            len(request.slots),
        )
    ids, known = set[str](), {action.id for action in request.actions}
    taken = set[str]()
    for n, slot in enumerate(request.slots):
        if slot.id in ids:
            raise _wrong("Each slot needs an id of its own.", f"slots[{n}].id", slot.id)
        if slot.baseline_action not in known - taken - {*(slot.excluded_actions or ())}:
            raise _wrong(
                "A slot needs a baselineAction of its own, one of the actions and not excluded.",
                f"slots[{n}].baselineAction",
                slot.baseline_action,
            )
        ids.add(slot.id)
        taken.add(slot.baseline_action)


def check_written(request: MultiSlotRankRequest, limits: LimitsConfig, size: int) -> None:
    """Reject a request of so many bytes whose decisions are too much: each holds all actions."""
    shared = merged(request.context_features)
    asked = SelectRequest(
        contexts=[shared] * len(request.slots),
        arms=[OfferedArm(action.id, merged(action.features)) for action in request.actions],
    )
    more = (len(request.slots) - 1) * len(msgspec.json.encode(shared))
    check_size(asked, limits, size + more)


def decide(
    request: MultiSlotRankRequest,
    decider: Decider,
    *,
    event: str,
    draws: int,
    stored: Sequence[str],
) -> list[DecisionMade]:
    """Choose an action for each slot, or reject the request.

    A retry has actions that are `stored` for its first slots: another version may choose others,
    and what is left for the slots behind them needs to be the same.
    """
    found: list[DecisionMade] = []
    for n, slot in enumerate(request.slots):
        before = [*stored[:n], *(one.arms[0] for one in found[len(stored) :])]
        taken = {*before, *(slot.excluded_actions or ())}
        actions = [action for action in request.actions if action.id not in taken]
        if not actions:
            raise _wrong("A slot needs an action that is left for it.", "slots", slot.id)
        asked = rank.select_of(
            [OfferedArm(action.id, merged(action.features)) for action in actions],
            decider,
            id=slot_id(event, slot.id),
            context=merged([*(request.context_features or ()), *(slot.features or ())]),
            baseline=slot.baseline_action,
            subject=request.subject,
        )
        if slot.baseline_action in taken:  # of an earlier slot: there is none to compare with
            asked = structs.replace(asked, baseline=_stand_in(stored[n : n + 1], decider))
        made, _ = rank.decide(asked, decider, draws=draws, actions=request.actions)
        found.append(made)
    return found


def _stand_in(stored: Sequence[str], decider: Decider) -> Baseline | None:
    """Return what was taken before where the baseline decides by now: it needs to name some."""
    is_needed = decider.shadow is not None and decider.shadow.decides == "baseline"
    return Baseline(stored[0], 1.0) if stored and is_needed else None


def stored_actions(service: Service, request: MultiSlotRankRequest) -> list[str]:
    """Return what an event of this id chose before, for its first slots: nothing where it is new.

    A log that cannot be asked now says nothing.
    """
    found: list[str] = []
    if request.event_id is None:
        return found
    with suppress(LogError):
        for n, slot in enumerate(request.slots):
            id = slot_id(request.event_id, slot.id)
            if request.defer_activation:
                id = deferred_id(_name_of(request.event_id, n))
            one = service.decision(id)
            if one is None:
                break
            found.append(str(revealed(one).arms[0]))
    return found


def as_deferred(made: list[DecisionMade], event: str) -> list[DecisionMade]:
    """Return the decisions of an event as they stand in the log until it is activated."""
    return [deferred(one, _name_of(event, n)) for n, one in enumerate(made)]


def _name_of(event: str, slot: int) -> str:
    return f"{decision_id(event)} {slot}"


def response(
    slots: list[SlotRequest], made: list[DecisionMade], event: str
) -> MultiSlotRankResponse:
    """Return the answer, of decisions as they stand in the log."""
    both = zip(slots, made, strict=True)
    return MultiSlotRankResponse(
        [SlotResponse(slot.id, str(one.arms[0])) for slot, one in both], event
    )


def _wrong(said: str, field: str, value: object) -> Rejection:
    return wrong_field(said, fix="Correct the slots.", field=field, value=value)
