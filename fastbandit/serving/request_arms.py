"""Arms that come with a request: read, checked, and set in place of the catalogue for it alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fastbandit.arms.offers import PLACEHOLDER, with_id
from fastbandit.errors import FastbanditError, ValueOfColumnError
from fastbandit.features.schema import Schema
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Offer, unchanged
from fastbandit.serving.problems import rejection_of_error, wrong_field
from fastbandit.serving.schemas import MOST_OFFERED, OfferedArm, SelectRequest
from fastbandit.storage.arm_changes import by_name, features_of
from fastbandit.storage.events import Arm

_ENCODE = msgspec.json.Encoder().encode


def check_only_arms(request: SelectRequest) -> None:
    """Reject a request that says in two ways what it may choose, or brings too much."""
    if request.eligible is not None:
        raise wrong_field(
            "A request needs either arms of its own, or eligible ones of the catalogue: got both.",
            fix="List the arms in arms, without features where the catalogue has them.",
            field="eligible",
            value=request.eligible,
        )
    many = request.contexts if isinstance(request.contexts, list) else [None]
    if request.arms is not None and len(request.arms) * len(many) > 10 * MOST_OFFERED:
        raise wrong_field(
            f"A request may log at most {10 * MOST_OFFERED:,} arms: {len(many)} contexts with "
            f"{len(request.arms)} arms each are more.",
            fix="Ask for fewer contexts at a time, or PUT the arms to /v1/arms.",
            field="arms",
            value=len(request.arms),
        )


def check_has_arms(bandit: FrozenBandit) -> None:
    """Reject a request without arms where there is no catalogue to choose from."""
    if PLACEHOLDER in bandit:
        raise wrong_field(
            "A request needs arms of its own: this service has no catalogue.",
            fix="Send arms, each with an id and features, or PUT some to /v1/arms.",
            field="arms",
        )


def offered_to(
    bandit: FrozenBandit, arms: Sequence[OfferedArm], schema: Schema | None
) -> tuple[FrozenBandit, list[Arm]]:
    """Return a bandit of these arms alone, and those that the log needs to hold.

    The schema says what the features of arms mean, and which of them are secret.
    """
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        twice = next(n for n, id in enumerate(ids) if id in ids[:n])
        raise wrong_field(
            "Each arm of a request needs an id of its own.",
            fix="Send each arm once.",
            field=f"arms[{twice}].id",
            value=ids[twice],
        )
    if schema is not None and schema.others is not None:
        arms = [_named(arm, bandit) for arm in arms]
    given = [arm for arm in arms if arm.features is not None or arm.id not in bandit]
    offered = [Arm(arm.id, [] if arm.features is None else arm.features) for arm in given]
    featured = [arm for arm in offered if arm.features]
    try:
        offers = [_offer_of(arm) for arm in arms]
        seen = bandit.parts[2].offers
        known = {one.id for one in offers if one.key in seen}
        featured = [arm for arm in featured if arm.id not in known]
        are_named = schema is not None and all(type(arm.features) is dict for arm in featured)
        if featured and not are_named:  # those that are named are checked where they are encoded
            by_name(featured, schema, wanted=())
            features_of(featured)
        few = bandit.offering(offers)
        same = unchanged(bandit.parts[1], few.parts[1], [arm.id for arm in offered if arm.features])
        return few, [arm for arm in offered if arm.id not in same]
    except ValueOfColumnError as error:
        arm = featured[error.row or 0]
        at = f"arms[{ids.index(arm.id)}].features"
        if not (schema and schema.others and error.column == schema.others.name):
            at = f"{at}.{error.column}"
        value = arm.features.get(error.column) if isinstance(arm.features, dict) else None
        raise rejection_of_error(error, field=at, value=value) from error
    except FastbanditError as error:
        raise rejection_of_error(error, field="arms", value=ids[:3]) from error


def _named(arm: OfferedArm, bandit: FrozenBandit) -> OfferedArm:
    """Return an arm of any names with its id among its features, if it came with some."""
    is_known = arm.features is None and arm.id in bandit
    if is_known or isinstance(arm.features, list):
        return arm
    return OfferedArm(arm.id, with_id(arm.id, arm.features))


def _offer_of(arm: OfferedArm) -> Offer:
    """Return an arm as it is scored, and remembered where its features have names."""
    is_named = type(arm.features) is dict and arm.features
    key = _ENCODE((arm.id, arm.features)) if is_named else b""
    return Offer(arm.id, arm.features or None, key)


def offering(bandit: FrozenBandit, arms: Sequence[Arm]) -> FrozenBandit:
    """Return a bandit of these arms alone; without features they are those of the catalogue."""
    return bandit.offering([Offer(arm.id, arm.features or None) for arm in arms])
